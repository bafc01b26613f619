"""What one principal stores, another sees only where the visibility says so; tenants never meet."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from mcp import Client

from mcp_server.server import build_server
from memory_core.kernel.principal import LOCAL, Principal, asking
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from memory_core.webhooks import subscriptions
from memory_core.webhooks.messages import OutboxMessage, assemble
from tests.tool_client import ToolClient, in_one_task

ACME, OTHER = UUID(int=0xACE), UUID(int=0x07E)
ALICE = Principal(ACME, "alice", frozenset({"sales"}))
BOB = Principal(ACME, "bob", frozenset({"sales", "legal"}))
CAROL = Principal(ACME, "carol", frozenset())
EVE = Principal(OTHER, "alice", frozenset({"sales"}))


@pytest.fixture
def tenants(settings: Settings) -> Iterator[None]:
    with psycopg.connect(settings.dsn, autocommit=True) as connection:
        for name, id_ in (("acme", ACME), ("other", OTHER)):
            connection.execute(
                "INSERT INTO tenant (tenant_id, name) VALUES (%s, %s) ON CONFLICT DO NOTHING",
                (id_, name),
            )
        yield
        connection.execute("DELETE FROM tenant WHERE name <> 'default'")


class Caller(ToolClient):
    def __init__(self, client: Client, who: Principal) -> None:
        super().__init__(client)
        self._who = who

    async def __call__(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        with asking(self._who):
            return await super().__call__(tool, **arguments)

    async def refusal(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        with asking(self._who):
            return await super().refusal(tool, **arguments)

    async def answers(self, tool: str, /, **arguments: Any) -> bool:
        with asking(self._who):
            result = await self.client.call_tool(tool, arguments)
        return not result.is_error


class Callers:
    """A client for each principal, on one server."""

    def __init__(self, runtime: Runtime, stack: AsyncExitStack) -> None:
        self._runtime, self._stack = runtime, stack
        self._clients: dict[Principal, Caller] = {}

    async def __call__(self, who: Principal) -> Caller:
        if who not in self._clients:
            server = build_server(self._runtime.settings, every_tool=True, runtime=self._runtime)
            with asking(who):
                client = await self._stack.enter_async_context(in_one_task(Client(server)))
            self._clients[who] = Caller(client, who)
        return self._clients[who]


@pytest.fixture
async def tools(runtime: Runtime, tenants: None) -> AsyncIterator[Callers]:
    async with AsyncExitStack() as stack:
        yield Callers(runtime, stack)


async def stored(
    tools: Callers, who: Principal, scope: str, *listed: str, source: str | None = None
) -> str:
    call = await tools(who)
    answer = await call(
        "artifact_ingest",
        artifact_type="note",
        source_system="notes",
        source_id=source or uuid4().hex,
        title=f"Zebra plans of {who.user}",
        content=f"Decision: {who.user} keeps zebras, {scope}.",
        visibility_scope=scope,
        **({"visible_to": list(listed)} if listed else {}),
    )
    uid: str = answer["artifact_uid"]
    return uid


async def found(tools: Callers, who: Principal) -> set[str]:
    call = await tools(who)
    answer = await call("hybrid_search", query="zebras", limit=50)
    return {hit["artifact_uid"] for hit in answer["results"]}


async def reads(tools: Callers, who: Principal, uid: str) -> bool:
    caller = await tools(who)
    return await caller.answers("artifact_get", artifact_uid=uid)


@pytest.mark.parametrize(
    ("scope", "listed", "seers"),
    [
        ("me", (), {"alice"}),
        ("team", (), {"alice", "bob"}),
        ("org", (), {"alice", "bob", "carol"}),
        ("custom", ("carol",), {"alice", "carol"}),
        ("custom", ("group:legal",), {"alice", "bob"}),
    ],
)
async def test_a_document_is_seen_by_those_of_its_scope(
    tools: Callers, scope: str, listed: tuple[str, ...], seers: set[str]
) -> None:
    uid = await stored(tools, ALICE, scope, *listed)

    for who in (ALICE, BOB, CAROL):
        sees = who.user in seers
        assert (uid in await found(tools, who), await reads(tools, who, uid)) == (sees, sees), who
    assert uid not in await found(tools, EVE)
    assert not await reads(tools, EVE, uid)


async def test_the_same_source_is_another_document_in_each_tenant_and_for_those_who_do_not_see_it(
    tools: Callers,
) -> None:
    uids = [
        await stored(tools, ALICE, "me", source="plan.md"),
        await stored(tools, EVE, "me", source="plan.md"),
        await stored(tools, CAROL, "me", source="plan.md"),
    ]

    assert len(set(uids)) == 3
    assert await found(tools, ALICE) == {uids[0]}


async def test_the_local_user_does_not_meet_documents_of_others_in_its_tenant(
    tools: Callers,
) -> None:
    dan = Principal(user="dan")
    of_dan = await stored(tools, dan, "me", source="plan.md")
    own = [await stored(tools, LOCAL, "me", source="plan.md") for _ in range(2)]

    assert len({of_dan, *own}) == 2
    assert await found(tools, LOCAL) == set(own)
    assert await found(tools, dan) == {of_dan}


@pytest.mark.parametrize("who", [CAROL, LOCAL], ids=["a user", "the local user"])
async def test_an_own_document_is_meant_also_when_another_of_its_source_comes_into_sight(
    tools: Callers, who: Principal
) -> None:
    neighbour = Principal(who.tenant_id, "neighbour")
    await stored(tools, neighbour, "me", source="plan.md")
    own = await stored(tools, who, "me", source="plan.md")
    await stored(tools, neighbour, "org", source="plan.md")

    assert await stored(tools, who, "me", source="plan.md") == own


async def test_a_session_without_a_principal_sees_nothing(
    tools: Callers, settings: Settings
) -> None:
    await stored(tools, ALICE, "org")

    with psycopg.connect(settings.dsn, autocommit=True) as connection:
        connection.execute("SET ROLE memory_app")
        for table in ("artifact_revision", "revision_text", "visible_chunk", "log.events"):
            row = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
            assert row == (0,), table
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT 1 FROM chunk_entry")


async def test_memories_and_conversations_are_their_owners(tools: Callers) -> None:
    for who in (ALICE, BOB, EVE):
        call = await tools(who)
        await call("memory_store", content="I like zebras.", type="preference", confidence=1)
        await call(
            "history_append", conversation_id="c", role="user", content=who.user, turn_index=0
        )

    for who in (ALICE, BOB, EVE):
        call = await tools(who)
        memories = await call("memory_list")
        turns = await call("history_get", conversation_id="c")
        assert memories["total"] == 1
        assert [turn["content"] for turn in turns["turns"]] == [who.user]


async def test_only_those_who_see_a_document_delete_it(tools: Callers) -> None:
    uid = await stored(tools, ALICE, "me")

    for who in (BOB, EVE):
        call = await tools(who)
        refused = await call.refusal("artifact_delete", artifact_uid=uid)
        unknown = await call.refusal("artifact_delete", artifact_uid="uid_0123456789abcdef")
        assert str(refused).replace(uid, "uid_0123456789abcdef") == str(unknown)
    assert await reads(tools, ALICE, uid)


async def test_the_owner_of_a_document_takes_all_of_its_revisions_back(tools: Callers) -> None:
    call, bob = await tools(ALICE), await tools(BOB)
    note = {"artifact_type": "note", "source_system": "notes", "source_id": "plan"}
    first = await call("artifact_ingest", **note, content="Zebras in May.", visibility_scope="org")
    old = {"artifact_uid": first["artifact_uid"], "revision_id": first["revision_id"]}
    await call("artifact_ingest", **note, content="Zebras in June.", visibility_scope="org")
    assert await bob.answers("artifact_get", **old)

    await call("artifact_ingest", **note, content="Zebras in June.", visibility_scope="me")
    assert not await bob.answers("artifact_get", **old)
    assert await call.answers("artifact_get", **old)

    await call("artifact_ingest", **note, content="Zebras in July.", visibility_scope="team")
    assert await bob.answers("artifact_get", **old)


async def test_a_message_that_waits_is_not_sent_to_one_who_may_no_longer_see_it(
    tools: Callers, runtime: Runtime
) -> None:
    with asking(BOB):
        async with runtime.database.transaction() as session:
            types = ["artifact.created"]
            await subscriptions.add(session, "https://hook.example/", types, include_content=True)
    call = await tools(ALICE)
    note = {"artifact_type": "note", "source_system": "notes", "source_id": "plan"}
    note |= {"title": "Zebras", "content": "In May."}
    await call("artifact_ingest", **note, visibility_scope="org")
    async with runtime.database.session() as session:
        claim = {"leader": "test", "seconds": 60, "for_each": 10, "limit": 10}
        [waiting] = await session.rows(OutboxMessage, "claim_messages", **claim)
        before = await assemble(session, waiting)
        await call("artifact_ingest", **note, visibility_scope="me")
        after = await assemble(session, waiting)

    assert before is not None
    assert b"Zebras" in before.body
    assert after is None
