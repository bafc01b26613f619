"""The actions of `mcp-memory webhooks …`."""

import time
from typing import Any

import httpx
import typer

from mcp_server.cli import terminal_tables
from mcp_server.cli.safe_text import as_json as json_text
from mcp_server.cli.safe_text import shown
from mcp_server.cli.session import OpenMemory, with_operator, with_transaction
from mcp_server.cli.terminal_tables import Column
from memory_core.kernel.database import Session
from memory_core.kernel.errors import InvalidInput
from memory_core.log.change_types import change_types
from memory_core.webhooks import subscriptions
from memory_core.webhooks.addresses import AddressRefused, NameUnknown, checked, parse_url, resolve
from memory_core.webhooks.messages import test_message
from memory_core.webhooks.sender import Sender, SendFault
from memory_core.webhooks.subscriptions import DeliveryState, Subscription


def add(
    url: str,
    types: str,
    *,
    category: str | None,
    actor: str | None,
    include_content: bool,
    as_json: bool,
) -> None:
    chosen = change_types(types)
    assert chosen is not None

    async def work(memory: OpenMemory) -> tuple[Subscription, bool]:
        allowed = memory.runtime.settings.webhook_allow_private
        is_known = await _look_up(parse_url(url, allow_private=allowed), allow_private=allowed)
        async with memory.runtime.database.transaction() as session:
            made = await subscriptions.add(
                session,
                url,
                chosen,
                category=category,
                actor=actor,
                include_content=include_content,
                allow_private=allowed,
            )
        return made, is_known

    made, is_known = with_operator(work)
    if as_json:
        print(json_text({**made.as_json(), "secret": made.secret}))
        return
    print(f"Subscription {made.id} is made. Its secret, shown this once:\n\n  {made.secret}\n")
    if not is_known:
        print("The name in the URL has no address now; messages wait until it has one.")
    print(f"`mcp-memory webhooks test {str(made.id)[:8]}` sends a first message.")


async def _look_up(url: httpx.URL, *, allow_private: bool) -> bool:
    """Whether the name has an address now. A forbidden address raises an error."""
    try:
        await checked(url.raw_host.decode(), url.port or 443, resolve, allow_private=allow_private)
    except NameUnknown:
        return False
    except AddressRefused as refused:
        raise InvalidInput(f"Messages to this address are refused: {refused}.") from None
    return True


def list_(*, as_json: bool) -> None:
    listed = with_transaction(subscriptions.list_subscriptions)
    if as_json:
        print(json_text({"subscriptions": [one.as_json() for one in listed]}))
        return
    if not listed:
        print("There are none: `mcp-memory webhooks add URL --types events.replaced` makes one.")
        return
    names = ("id", "status", "waiting", "types", "only", "content")
    terminal_tables.show(
        [*(Column(name) for name in names), Column("url", 1), Column("trouble", 1)],
        (
            [
                str(one.id),
                one.status,
                str(one.waiting),
                shown(", ".join(one.types)),
                shown(" ".join(filter(None, (one.category, one.actor)))),
                "yes" if one.include_content else "",
                shown(one.url),
                shown(one.disabled_reason or (one.last_error if one.failures else None) or ""),
            ]
            for one in listed
        ),
    )


def remove(id_: str) -> None:
    async def work(session: Session) -> Subscription:
        subscription = await subscriptions.find(session, id_)
        await subscriptions.remove(session, subscription)
        return subscription

    print(f"Subscription {with_transaction(work).id} is removed.")


def test(id_: str, *, as_json: bool) -> None:
    """Exits with 1 if the receiver does not accept the message."""

    async def work(memory: OpenMemory) -> dict[str, Any]:
        async with memory.runtime.database.session() as session:
            subscription = await subscriptions.find(session, id_)
        sender = Sender(allow_private=memory.runtime.settings.webhook_allow_private)
        message = test_message(subscription)
        begun = time.perf_counter()
        outcome: dict[str, Any] = {"webhook_id": message.id, "status": None, "error": None}
        try:
            headers = message.headers(subscription.secret, subscription.previous_secret)
            answer = await sender.send(subscription.url, headers, message.body)
            outcome |= {"status": answer.status, "delivered": answer.is_success}
        except SendFault as fault:
            outcome |= {"delivered": False, "error": str(fault)}
        finally:
            await sender.close()
        return outcome | {"milliseconds": round((time.perf_counter() - begun) * 1000)}

    outcome = with_operator(work)
    if as_json:
        print(json_text(outcome))
    else:
        said = f"answered {outcome['status']}" if outcome["error"] is None else outcome["error"]
        print(f"{outcome['webhook_id']}: {said} ({outcome['milliseconds']} ms)")
    if not outcome["delivered"]:
        raise typer.Exit(1)


def rotate(id_: str, *, as_json: bool) -> None:
    async def work(session: Session) -> Subscription:
        return await subscriptions.rotate(session, await subscriptions.find(session, id_))

    made = with_transaction(work)
    if as_json:
        print(json_text({**made.as_json(), "secret": made.secret}))
        return
    print(f"The new secret of {made.id}, shown this once:\n\n  {made.secret}\n")
    print("For a day the old one signs every message too.")


def deliveries(id_: str | None, limit: int, *, as_json: bool) -> None:
    async def work(session: Session) -> list[DeliveryState]:
        one = await subscriptions.find(session, id_) if id_ is not None else None
        return await subscriptions.deliveries(session, one, limit)

    attempts = with_transaction(work)
    if as_json:
        print(json_text({"deliveries": [row.as_json() for row in attempts]}))
        return
    if not attempts:
        print("There are none.")
        return
    names = ("message", "subscription", "type", "outcome", "tries", "made", "ended or next")
    terminal_tables.show(
        [*(Column(name) for name in names), Column("error", 1)],
        (
            [
                row.webhook_id,
                str(row.subscription_id)[:8],
                shown(row.event_type),
                row.outcome,
                str(row.attempts),
                f"{row.created_at:%Y-%m-%d %H:%M:%S}",
                f"{row.ended_at or row.next_attempt_at:%Y-%m-%d %H:%M:%S}",
                shown(row.error or ""),
            ]
            for row in attempts
        ),
    )
