"""What each person hears of changes: by /changes, resource notifications and webhooks."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
from mcp.client.subscriptions import ResourceUpdated

from mcp_server.resource_notifications import addresses_of
from memory_core.kernel.principal import asking
from memory_core.log.change import Change, ChangeType
from memory_core.webhooks import subscriptions
from tests.isolation.asking import Leak
from tests.isolation.filling import Filled
from tests.isolation.principals import ASKING, TENANTS, Person
from tests.isolation.world import Document, Memory
from tests.patience import PATIENCE
from tests.webhook_receiver import Receiver


def changes_since(filled: Filled, number: int) -> Iterator[Change]:
    """As Postgres has them, past all policies."""
    names = (
        *("event_id", "aggregate_type", "aggregate_id", "event_type", "version", "timestamp"),
        *("payload", "tenant_id", "actor_id"),
    )
    rows = filled.sql.execute(
        f"SELECT {', '.join(names)} FROM log.events WHERE sequence_number > %s "
        "ORDER BY transaction_id, sequence_number",
        [number],
    ).fetchall()
    for row in rows:
        yield Change(0, 0, **dict(zip(names, row, strict=True)))


def is_seen(filled: Filled, change: Change, who: Person) -> bool:
    """By those who see what changed; what concerns no document, by the tenant."""
    for item in filled.world.items:
        if isinstance(item, Document) and item.uid == change.payload.get("artifact_uid"):
            return item.is_seen_by(who)
        if isinstance(item, Memory) and item.memory_id == change.payload.get("memory_id"):
            return item.is_seen_by(who)
    is_own = change.tenant_id == TENANTS[who.tenant]
    if change.aggregate_type == "conversation":
        return is_own and change.actor_id == who.user
    assert change.aggregate_type in {"tenant", "key", "backfill"}, change
    return is_own


def last_number(filled: Filled) -> int:
    row = filled.sql.execute("SELECT coalesce(max(sequence_number), 0) FROM log.events").fetchone()
    assert row is not None
    return int(row[0])


class Stream:
    """What has come to one person, each in its order."""

    def __init__(self, who: Person) -> None:
        self.who = who
        self.change_ids: list[str] = []
        self.addresses: set[str] = set()

    async def read_changes(self, lines: AsyncIterator[str]) -> None:
        async for line in lines:
            if line.startswith("data: "):
                self.change_ids.append(json.loads(line[6:])["data"]["change_id"])

    async def read_notifications(self, events: AsyncIterator[Any]) -> None:
        async for event in events:
            if isinstance(event, ResourceUpdated):
                self.addresses.add(event.uri)


@asynccontextmanager
async def streams(filled: Filled, addresses: set[str]) -> AsyncIterator[dict[Person, Stream]]:
    """Each person follows the log, and subscribes to all addresses: its own, and guessed ones."""
    followed = {who: Stream(who) for who in ASKING}
    async with AsyncExitStack() as stack:
        tasks = []
        for who, stream in followed.items():
            headers = {"authorization": f"Bearer {filled.keys[who]}"}
            client = await stack.enter_async_context(
                httpx.AsyncClient(headers=headers, timeout=PATIENCE, trust_env=False)
            )
            response = await stack.enter_async_context(
                client.stream("GET", f"{filled.server.url}/changes")
            )
            assert response.status_code == 200
            lines = response.aiter_lines()
            await anext(lines)  # it is followed from here on
            tasks.append(asyncio.create_task(stream.read_changes(lines)))
            listening = filled.tools[who].client.listen(resource_subscriptions=sorted(addresses))
            events = await stack.enter_async_context(listening)
            tasks.append(asyncio.create_task(stream.read_notifications(events)))
        try:
            yield followed
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def subscribe_all(filled: Filled, receivers: dict[Person, Receiver]) -> None:
    """A webhook of each person, for all types of changes."""
    for who, receiver in receivers.items():
        with asking(who.principal):
            async with filled.runtime.database.transaction() as session:
                types = [kind.value for kind in ChangeType]
                await subscriptions.add(
                    session, receiver.url, types, include_content=True, allow_private=True
                )


async def compare(
    filled: Filled,
    followed: dict[Person, Stream],
    receivers: dict[Person, Receiver],
    since: int,
    subscribed: set[str],
) -> None:
    """First all has come that must; then nothing has come that must not."""
    changes = list(changes_since(filled, since))
    ever = list(changes_since(filled, 0))
    seen = {who: [one for one in changes if is_seen(filled, one, who)] for who in followed}
    ids = {who: {str(change.event_id) for change in seen[who]} for who in followed}
    addresses = {
        who: {one for change in seen[who] for one in _addresses(ever, change)} & subscribed
        for who in followed
    }
    for who, stream in followed.items():
        await _until(lambda s=stream, w=ids[who]: w <= set(s.change_ids), f"changes to {who}")
        await _until(lambda s=stream, w=addresses[who]: w <= s.addresses, f"addresses to {who}")
    await _until(lambda: not _outbox(filled), "an empty outbox")

    for who, stream in followed.items():
        _within(who, "changes", set(stream.change_ids), ids[who], ids[who])
        _within(who, "notifications", stream.addresses, addresses[who], addresses[who])
        received = _change_ids(receivers[who])
        lasting = {str(one.event_id) for one in seen[who] if _has_a_message(filled, one)}
        _within(who, "messages", received, lasting, ids[who])
        bodies = [got.body.decode() for got in receivers[who].received]
        if leaked := filled.world.leaks(who, " ".join(bodies)):
            raise Leak(f"messages to {who} have {leaked}")


def _outbox(filled: Filled) -> list[Any]:
    """The messages that are not sent yet, and why."""
    query = "SELECT event_type, retry_count, last_error FROM log.event_outbox"
    return filled.sql.execute(query).fetchall()


def _addresses(ever: Iterable[Change], change: Change) -> set[str]:
    """With a document go its revisions and events, which earlier changes name."""
    if change.event_type != ChangeType.ARTIFACT_DELETED:
        return addresses_of(change)
    same = (one for one in ever if one.aggregate_id == change.aggregate_id)
    return {address for one in same for address in addresses_of(one)}


def _change_ids(receiver: Receiver) -> set[str]:
    return {json.loads(got.body)["data"]["change_id"] for got in list(receiver.received)}


def _has_a_message(filled: Filled, change: Change) -> bool:
    """A message about what is gone is sent or not, whichever was quicker, it or the deletion. The
    events of a superseded revision have none."""
    for item in filled.world.items:
        if isinstance(item, Document) and item.uid == change.payload.get("artifact_uid"):
            is_latest = change.payload.get("revision_id") == item.latest
            return not item.is_gone and (
                is_latest or change.event_type != ChangeType.EVENTS_REPLACED
            )
    return True


def _within(who: Person, what: str, got: set[str], least: set[str], most: set[str]) -> None:
    if not least <= got <= most:
        raise Leak(f"{what} to {who}: too many {got - most}, missing {least - got}")


async def _until(condition: Callable[[], bool], what: str) -> None:
    try:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"{what} did not come") from None
