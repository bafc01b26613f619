"""A dependency fails for real, in the middle: nothing half-written shows, and a retry works.

The servers of this module are its own, so that they can be killed, frozen, cut off and filled.
"""

import asyncio
import signal
from contextlib import AbstractAsyncContextManager

import pytest
from mcp import Client

from mcp_server.server import build_server
from memory_core import vectors as vectors_module
from memory_core.artifacts import ingest as ingest_module
from memory_core.database import Database, Row, Session
from memory_core.runtime import Runtime
from memory_core.settings import Settings
from tests.integration.failing_servers import LONG, NOTE, Server, stored_rows, until, visible
from tests.scripted_provider import ScriptedProvider, ServerError
from tests.tool_client import Json, ToolClient

# --- the embedder ----------------------------------------------------------------------------


@pytest.mark.parametrize("content", [NOTE["content"], LONG], ids=["short", "long"])
async def test_no_embedding_no_document(
    openai_tools: ToolClient, provider: ScriptedProvider, settings: Settings, content: str
) -> None:
    provider.enqueue(*[ServerError(500)] * 50)

    error = await openai_tools.refusal("artifact_ingest", **{**NOTE, "content": content})
    provider.reset()

    assert error["error_code"] == "OPENAI_CONNECTION_ERROR"
    assert stored_rows(settings.dsn) == 0
    assert await visible(openai_tools) == []
    health = await openai_tools("embedding_health")
    assert set(health["collections"].values()) == {0}
    again = await openai_tools("artifact_ingest", **{**NOTE, "content": content})
    assert again["status"] == "created"


async def test_the_last_batch_fails_and_nothing_of_the_first_stays(
    openai_tools: ToolClient, provider: ScriptedProvider, settings: Settings
) -> None:
    last = LONG[-40:]
    provider.enqueue(
        *[ServerError(500, only=lambda body: any(last in text for text in body["input"]))] * 3
    )

    error = await openai_tools.refusal("artifact_ingest", **{**NOTE, "content": LONG})

    assert error["error_code"] == "OPENAI_CONNECTION_ERROR"
    assert stored_rows(settings.dsn) == 0
    assert await visible(openai_tools) == []


# --- Chroma ----------------------------------------------------------------------------------


async def test_chroma_killed(fragile: ToolClient, chroma: Server, own_settings: Settings) -> None:
    chroma.stop()

    for content in (NOTE["content"], LONG):
        error = await fragile.refusal("artifact_ingest", **{**NOTE, "content": content})
        assert error["error_code"] == "CHROMA_CONNECTION_ERROR"
        assert stored_rows(own_settings.dsn) == 0

    chroma.start()
    await chroma.ready()
    assert await visible(fragile) == []
    again = await fragile("artifact_ingest", **{**NOTE, "content": LONG})
    assert again["status"] == "created"
    assert await visible(fragile)


async def test_chroma_killed_before_the_first_call_of_a_server(
    own_settings: Settings, chroma: Server
) -> None:
    chroma.stop()
    async with Client(build_server(own_settings)) as client:
        tools = ToolClient(client)
        error = await tools.refusal("artifact_ingest", **NOTE)
        assert error["error_code"] == "CHROMA_CONNECTION_ERROR"
        assert stored_rows(own_settings.dsn) == 0

        chroma.start()
        await chroma.ready()
        assert (await tools("artifact_ingest", **NOTE))["status"] == "created"


async def test_chroma_frozen(
    fragile: ToolClient,
    chroma: Server,
    own_settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await fragile("embedding_health")
    monkeypatch.setattr(vectors_module, "_CALL_SECONDS", 0.5)
    chroma.send(signal.SIGSTOP)

    error = await fragile.refusal("artifact_ingest", **NOTE)

    assert error["error_code"] == "CHROMA_CONNECTION_ERROR"
    assert stored_rows(own_settings.dsn) == 0
    monkeypatch.undo()
    chroma.send(signal.SIGCONT)
    assert (await fragile("artifact_ingest", **NOTE))["status"] == "created"
    assert await visible(fragile) == [NOTE["content"]]


async def test_a_frozen_chroma_leaves_connections_to_who_needs_only_postgres(
    fragile: ToolClient, chroma: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many write as there are connections, and more: each waits for Chroma in a transaction."""
    kept = await fragile("artifact_ingest", **NOTE)
    uid, revision = kept["artifact_uid"], kept["revision_id"]
    writes: list[tuple[str, Json]] = []
    for number in range(4):
        note = {**NOTE, "source_id": f"doomed-{number}"}
        memory = {"content": f"doomed {number}", "type": "fact", "confidence": 1}
        doomed = (await fragile("artifact_ingest", **note))["artifact_uid"]
        forgotten = (await fragile("memory_store", **memory))["memory_id"]
        writes += [
            ("artifact_ingest", {**NOTE, "source_id": f"new-{number}"}),
            ("memory_store", {**memory, "content": f"new {number}"}),
            ("artifact_delete", {"artifact_uid": doomed}),
            ("memory_delete", {"memory_id": forgotten}),
        ]
    begun = 0
    long_transaction = Database.long_transaction

    def seen(self: Database) -> AbstractAsyncContextManager[Session]:
        nonlocal begun
        begun += 1
        return long_transaction(self)

    monkeypatch.setattr(Database, "long_transaction", seen)
    chroma.send(signal.SIGSTOP)
    writing = [asyncio.create_task(fragile(tool, **arguments)) for tool, arguments in writes]
    try:
        await until(lambda: begun == len(writes))

        assert (await fragile("artifact_get", artifact_uid=uid))["content"] == NOTE["content"]
        assert (await fragile("job_status", artifact_uid=uid))["status"] == "PENDING"
        told = await fragile("event_list_for_revision", artifact_uid=uid, revision_id=revision)
        assert told["events"] == []
        assert (await fragile("memory_list"))["total"] == 4
        assert not any(task.done() for task in writing)
    finally:
        chroma.send(signal.SIGCONT)
        await asyncio.gather(*writing)

    counted = (await fragile("embedding_health"))["collections"]
    assert (counted["artifacts"], counted["memory"]) == (5, 4)


async def test_a_revision_without_chroma_leaves_the_old_one_in_place(
    fragile: ToolClient, chroma: Server, own_settings: Settings
) -> None:
    await fragile("artifact_ingest", **NOTE)
    chroma.stop()

    error = await fragile.refusal("artifact_ingest", **{**NOTE, "content": "Otters left."})

    assert error["error_code"] == "CHROMA_CONNECTION_ERROR"
    chroma.start()
    await chroma.ready()
    assert await visible(fragile) == [NOTE["content"]]
    revised = await fragile("artifact_ingest", **{**NOTE, "content": "Otters left."})
    assert revised["status"] == "revised"
    assert await visible(fragile) == ["Otters left."]


async def test_chroma_killed_right_after_the_commit_does_not_undo_it(
    fragile: ToolClient, chroma: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old revision stays marked as latest in Chroma; Postgres knows better."""
    await fragile("artifact_ingest", **NOTE)
    retire = ingest_module._retire

    async def without_chroma(runtime: Runtime, superseded: list[Row]) -> None:
        chroma.stop()
        await retire(runtime, superseded)

    monkeypatch.setattr(ingest_module, "_retire", without_chroma)
    revised = await fragile("artifact_ingest", **{**NOTE, "content": "Otters left."})

    assert revised["status"] == "revised"
    chroma.start()
    await chroma.ready()
    assert await visible(fragile) == ["Otters left."]


NEEDS_CHROMA: list[tuple[str, Json]] = [
    ("memory_store", {"content": "x", "type": "fact", "confidence": 1}),
    ("memory_search", {"query": "x"}),
    ("artifact_search", {"query": "x"}),
    ("hybrid_search", {"query": "x"}),
    ("embedding_health", {}),
]


async def test_every_tool_that_needs_chroma_says_that_it_is_missing(
    own_settings: Settings, chroma_server: Server
) -> None:
    chroma_server.stop()
    async with Client(build_server(own_settings)) as client:
        for tool, arguments in NEEDS_CHROMA:
            error = await ToolClient(client).refusal(tool, **arguments)
            assert error["error_code"] == "CHROMA_CONNECTION_ERROR", tool
            assert "mcp-memory up" in error["error"]
    assert stored_rows(own_settings.dsn) == 0


async def test_a_deletion_without_chroma_deletes_nothing_and_can_be_repeated(
    fragile: ToolClient, chroma: Server, own_settings: Settings
) -> None:
    stored = await fragile("artifact_ingest", **NOTE)
    before = stored_rows(own_settings.dsn)
    chroma.stop()

    error = await fragile.refusal("artifact_delete", artifact_uid=stored["artifact_uid"])

    assert error["error_code"] == "CHROMA_CONNECTION_ERROR"
    assert stored_rows(own_settings.dsn) == before
    chroma.start()
    await chroma.ready()
    deleted = await fragile("artifact_delete", artifact_uid=stored["artifact_uid"])
    assert (deleted["revisions"], deleted["vectors"]) == (1, 1)
    assert stored_rows(own_settings.dsn) == 0
