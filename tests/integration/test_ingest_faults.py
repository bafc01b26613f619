"""A dependency of the index fails for real, in the middle: documents are stored and found by their
words all the same, and the index catches up.

The servers of this module are its own, so that they can be killed and frozen.
"""

import asyncio
import signal

import pytest
from mcp import Client

from mcp_server.server import build_server
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from stack.connection import joined_runtime
from tests.indexing import assert_exact, caught_up, counts
from tests.integration.failing_servers import LONG, NOTE, Server, stored_rows, visible
from tests.scripted_provider import ScriptedProvider, ServerError
from tests.tool_client import Json, ToolClient


@pytest.fixture
def own_settings(own_settings: Settings) -> Settings:
    """A call that cannot be indexed is answered soon."""
    return own_settings.model_copy(update={"index_wait_ms": 100})


# --- the embedder ----------------------------------------------------------------------------


@pytest.mark.parametrize("content", [NOTE["content"], LONG], ids=["short", "long"])
async def test_an_embedder_that_fails_delays_the_index_alone(
    openai_tools: ToolClient,
    openai_settings: Settings,
    provider: ScriptedProvider,
    content: str,
) -> None:
    provider.enqueue(*[ServerError(500)] * 50)

    stored = await openai_tools("artifact_ingest", **{**NOTE, "content": content})
    shown = await visible(openai_tools)
    provider.reset()

    assert (stored["status"], stored["indexed"]) == ("created", False)
    assert shown
    runtime = joined_runtime(openai_settings, unasked="a test looks at what is stored")
    await runtime.open()
    try:
        await caught_up(runtime)
        await assert_exact(runtime)
    finally:
        await runtime.close()


# --- Chroma ----------------------------------------------------------------------------------


async def test_chroma_killed(fragile: ToolClient, own_runtime: Runtime, chroma: Server) -> None:
    chroma.stop()

    stored = await fragile("artifact_ingest", **{**NOTE, "content": LONG})
    assert (stored["status"], stored["indexed"]) == ("created", False)
    assert await visible(fragile)

    chroma.start()
    await chroma.ready()
    await caught_up(own_runtime)
    await assert_exact(own_runtime)
    again = await fragile("artifact_ingest", **{**NOTE, "content": LONG})
    assert again["status"] == "unchanged"


async def test_chroma_killed_before_the_first_call_of_a_server(
    own_settings: Settings, own_runtime: Runtime, chroma: Server
) -> None:
    chroma.stop()
    async with Client(build_server(own_settings)) as client:
        tools = ToolClient(client)
        assert (await tools("artifact_ingest", **NOTE))["status"] == "created"
        assert await visible(tools) == [NOTE["content"]]

    chroma.start()
    await chroma.ready()
    await assert_exact(own_runtime)


async def test_chroma_frozen(
    fragile: ToolClient, own_runtime: Runtime, chroma: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fragile("embedding_health")
    monkeypatch.setattr("memory_core.index.store.ANSWER_SECONDS", 0.5)
    chroma.send(signal.SIGSTOP)
    try:
        stored = await fragile("artifact_ingest", **NOTE)
        assert (stored["status"], stored["indexed"]) == ("created", False)
        assert await visible(fragile) == [NOTE["content"]]
    finally:
        chroma.send(signal.SIGCONT)
    await assert_exact(own_runtime)


async def test_a_frozen_chroma_keeps_no_writer_and_no_reader_from_postgres(
    fragile: ToolClient, own_runtime: Runtime, chroma: Server
) -> None:
    """More writers at once than there are connections."""
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
    await caught_up(own_runtime)
    chroma.send(signal.SIGSTOP)
    try:
        answers = await asyncio.gather(*(fragile(tool, **given) for tool, given in writes))

        assert not any(answer["indexed"] for answer in answers)
        assert (await fragile("artifact_get", artifact_uid=uid))["content"] == NOTE["content"]
        assert (await fragile("job_status", artifact_uid=uid))["status"] == "PENDING"
        listed = await fragile("event_list_for_revision", artifact_uid=uid, revision_id=revision)
        assert listed["events"] == []
        assert (await fragile("memory_list"))["total"] == 4
    finally:
        chroma.send(signal.SIGCONT)

    await assert_exact(own_runtime)
    counted = await counts(own_runtime)
    assert (counted["artifacts"], counted["memory"]) == (5, 4)


async def test_a_revision_without_chroma_is_found_by_its_words_and_the_old_one_no_more(
    fragile: ToolClient, own_runtime: Runtime, chroma: Server
) -> None:
    await fragile("artifact_ingest", **NOTE)
    await caught_up(own_runtime)
    chroma.stop()

    revised = await fragile("artifact_ingest", **{**NOTE, "content": "Otters left."})

    assert (revised["status"], revised["indexed"]) == ("revised", False)
    assert await visible(fragile) == ["Otters left."]
    chroma.start()
    await chroma.ready()
    assert await visible(fragile) == ["Otters left."], "whether the index has caught up or not"
    await assert_exact(own_runtime)


async def test_a_deletion_without_chroma_hides_at_once_and_deletes_the_vectors_later(
    fragile: ToolClient, own_runtime: Runtime, chroma: Server, own_settings: Settings
) -> None:
    stored = await fragile("artifact_ingest", **NOTE)
    await caught_up(own_runtime)
    chroma.stop()

    deleted = await fragile("artifact_delete", artifact_uid=stored["artifact_uid"])

    assert (deleted["revisions"], deleted["vectors"], deleted["indexed"]) == (1, 1, False)
    assert stored_rows(own_settings.dsn) == 0
    chroma.start()
    await chroma.ready()
    await assert_exact(own_runtime)
    assert set((await counts(own_runtime)).values()) == {0}


async def test_only_the_tool_that_asks_after_the_index_fails_without_chroma(
    own_settings: Settings, own_runtime: Runtime, chroma: Server
) -> None:
    chroma.stop()
    calls: list[tuple[str, Json]] = [
        ("memory_store", {"content": "x", "type": "fact", "confidence": 1}),
        ("memory_search", {"query": "x"}),
        ("artifact_search", {"query": "x"}),
        ("hybrid_search", {"query": "x"}),
        ("event_search", {"query": "x"}),
        ("timeline", {"query": "x"}),
    ]
    async with Client(build_server(own_settings)) as client:
        for tool, arguments in calls:
            await ToolClient(client)(tool, **arguments)
        error = await ToolClient(client).refusal("embedding_health")
    assert error["error_code"] == "CHROMA_CONNECTION_ERROR"
    assert "mcp-memory up" in error["error"]
