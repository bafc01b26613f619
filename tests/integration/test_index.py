"""The index follows the log: whatever is away, killed, deleted or rebuilt meanwhile."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from mcp import Client

from mcp_server.server import build_server
from memory_core.index import consistency, new_generation
from memory_core.index.chroma import ChromaClient
from memory_core.index.expected import EntryKey, pieces
from memory_core.index.generation import CollectionName, Generation
from memory_core.index.index_projection import IndexProjection
from memory_core.index.writer import settle_now
from memory_core.kernel.principal import DEFAULT_TENANT
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from memory_core.upkeep import integrity
from stack.connection import joined_runtime
from tests.conftest import IndexHost
from tests.indexing import (
    assert_exact,
    caught_up,
    counts,
    ids,
    plant,
    remove,
    serving,
    upsert_texts,
)
from tests.integration.failing_servers import LONG, Server
from tests.integration.planted_events import Event, Garden
from tests.patience import PATIENCE
from tests.scripted_provider import ScriptedProvider
from tests.tool_client import Json, ToolClient, in_one_task

OTTERS = "Otters moved into the boathouse by the river."


async def note(tools: ToolClient, content: str, source_id: str = "otters", **fields: Any) -> Json:
    values = {"artifact_type": "note", "source_system": "notes", "source_id": source_id, **fields}
    return await tools("artifact_ingest", content=content, **values)


async def found(tools: ToolClient, query: str) -> list[Json]:
    return (await tools("hybrid_search", query=query, limit=50))["results"]


async def test_an_ingest_returns_when_its_text_is_found_by_meaning(
    tools: ToolClient, runtime: Runtime
) -> None:
    stored = await note(tools, OTTERS)

    assert stored["indexed"] is True
    assert await ids(runtime, CollectionName.ARTIFACTS) == {stored["artifact_id"]}
    [hit] = await found(tools, "otters boathouse")
    assert "dense_artifacts" in hit["sources"]


async def test_chroma_holds_no_text(tools: ToolClient, garden: Garden, runtime: Runtime) -> None:
    token = "Zanzibarquokka"
    await garden.document(
        Event(f"{token} decided."), source_id="minutes", title=f"About {token}", content=None
    )
    await note(tools, f"{LONG}\n{token}", source_id="long", title=token)
    await tools("memory_store", content=f"Likes {token}", type="fact", confidence=0.9)

    generation = await serving(runtime)
    for name in CollectionName:
        answer = await runtime.vectors.on(
            generation.name_in_chroma(name), "get", include=["documents", "metadatas"]
        )
        assert answer["ids"]
        assert token not in json.dumps(answer)
        assert set(answer["documents"]) == {None}


async def test_only_the_latest_revision_is_indexed_and_older_ones_are_found_by_words(
    tools: ToolClient, garden: Garden, runtime: Runtime
) -> None:
    first = await garden.document(Event("Dana chose the red boat."), source_id="minutes")
    second = await garden.document(Event("Dana chose the blue boat."), source_id="minutes")
    await caught_up(runtime)

    assert await ids(runtime, CollectionName.EVENTS) == set(second.ids)
    old = await tools("event_search", query="red boat", include_superseded=True)
    assert first.ids[0] in [event["event_id"].removeprefix("evt_") for event in old["events"]]

    await tools(
        "artifact_ingest",
        artifact_type="note",
        source_system="test",
        source_id="minutes",
        content="Dana chose the red boat.",
    )
    assert await ids(runtime, CollectionName.EVENTS) == set(first.ids)
    await assert_exact(runtime)


async def test_a_deleted_document_leaves_no_entry(tools: ToolClient, runtime: Runtime) -> None:
    kept = await note(tools, OTTERS, source_id="kept")
    gone = await note(tools, LONG, source_id="gone")

    deleted = await tools("artifact_delete", artifact_uid=gone["artifact_uid"])

    assert deleted["indexed"] is True
    assert deleted["vectors"] == 1 + gone["num_chunks"]
    assert await ids(runtime, CollectionName.ARTIFACTS) == {kept["artifact_id"]}
    assert await ids(runtime, CollectionName.CHUNKS) == set()
    await assert_exact(runtime)


@pytest.fixture
async def hasty(own_settings: Settings, own_runtime: Runtime) -> AsyncIterator[ToolClient]:
    """Every tool over a Chroma that may be stopped; calls do not wait for the index."""
    settings = own_settings.model_copy(update={"index_wait_ms": 0})
    async with in_one_task(Client(build_server(settings))) as client:
        yield ToolClient(client)


async def test_without_chroma_documents_are_stored_found_by_words_and_indexed_later(
    hasty: ToolClient, own_runtime: Runtime, chroma: Server
) -> None:
    chroma.stop()
    stored = [
        await note(hasty, f"Otter number {n} of boathouse{n} sleeps.", source_id=f"otter-{n}")
        for n in range(200)
    ]
    memory = await hasty("memory_store", content="Likes otters", type="fact", confidence=0.8)
    gone = stored.pop()
    await hasty("artifact_delete", artifact_uid=gone["artifact_uid"])

    assert not any(one["indexed"] for one in stored)
    for n in (0, 77, 198):
        hits = await found(hasty, f"boathouse{n}")
        assert hits[0]["artifact_uid"] == stored[n]["artifact_uid"]
        assert hits[0]["sources"] == ["full_text"]
    remembered = await hasty("memory_search", query="otters")
    assert [one["memory_id"] for one in remembered["memories"]] == [memory["memory_id"]]
    assert (await hasty("event_search", query="otters"))["events"] == []

    chroma.start()
    await chroma.ready()

    await caught_up(own_runtime)
    await assert_exact(own_runtime)
    assert await ids(own_runtime, CollectionName.ARTIFACTS) == {
        one["artifact_id"] for one in stored
    }
    hits = await found(hasty, "boathouse77")
    assert "dense_artifacts" in hits[0]["sources"]
    check = next(one for one in integrity.CHECKS if one.name == "index_agrees")
    assert (await check.examine(own_runtime)).passed


async def test_a_chroma_that_lost_everything_is_filled_again(
    hasty: ToolClient, own_runtime: Runtime
) -> None:
    await note(hasty, LONG, source_id="long")
    await caught_up(own_runtime)
    before = await serving(own_runtime)
    await own_runtime.vectors.drop(before.names_of(DEFAULT_TENANT))

    await note(hasty, OTTERS)
    await caught_up(own_runtime)
    await filled(own_runtime, after=before.generation)

    await assert_exact(own_runtime)
    assert (await counts(own_runtime))["artifacts"] == 2


async def filled(runtime: Runtime, *, after: int) -> None:
    """A later generation than this one serves, and is complete."""
    async with asyncio.timeout(PATIENCE):
        while True:
            row = await new_generation.progress(runtime)
            if row is not None and row.generation > after and row.is_filled:
                return
            await asyncio.sleep(0.02)


async def rebuild(runtime: Runtime) -> None:
    async with runtime.database.transaction() as session:
        await session.run("set_projection_status", name="index", status="rebuilding")


async def test_searches_are_answered_and_documents_stored_while_the_index_is_rebuilt(
    tools: ToolClient, runtime: Runtime
) -> None:
    for n in range(60):
        await note(tools, f"Otter {n} sleeps in boathouse {n}.", source_id=f"before-{n}")
    before = await serving(runtime)
    await rebuild(runtime)

    rebuilding = asyncio.create_task(filled(runtime, after=before.generation))
    round_ = 0
    while not rebuilding.done() or round_ < 10:
        stored = await note(tools, f"Heron {round_} stands there.", source_id=f"during-{round_}")
        if round_ % 3 == 0:
            await tools("artifact_delete", artifact_uid=stored["artifact_uid"])
        hits = await found(tools, "otter in a boathouse")
        assert any("dense_artifacts" in hit["sources"] for hit in hits)
        round_ += 1
    await rebuilding

    await assert_exact(runtime)
    assert (await serving(runtime)).generation > before.generation
    labels = await runtime.vectors.labels()
    async with asyncio.timeout(PATIENCE):
        while before.name_in_chroma(CollectionName.EVENTS) in labels:
            await asyncio.sleep(0.02)
            labels = await runtime.vectors.labels()


async def test_a_rebuild_that_was_cut_off_goes_on_where_it_was(
    tools: ToolClient, runtime: Runtime, index_host: IndexHost
) -> None:
    for n in range(120):
        await note(tools, f"Otter {n} sleeps.", source_id=f"{n}")
    await index_host.stop()
    from memory_core.index import generation as generations

    async with runtime.database.transaction() as session:
        begun = await generations.begin(session, runtime.embedder)
    assert await new_generation.fill_page(runtime)
    async with runtime.database.session() as session:
        [row] = await session.rows(Generation, "unfilled_generation")
    assert row.filled_after > ""

    await new_generation.rebuild(runtime)

    assert (await serving(runtime)).generation == begun.generation
    difference = await consistency.compare(runtime)
    assert list(difference.differences()) == []
    assert difference.chroma["artifacts"] == 120


async def test_what_differs_in_chroma_is_found_and_repaired(
    tools: ToolClient, garden: Garden, runtime: Runtime
) -> None:
    planted = await garden.document(Event("Dana chose the boat."), source_id="minutes")
    long = await note(tools, LONG, source_id="long")
    chunk, other = long["stored_ids"][1:3]
    await remove(runtime, CollectionName.CHUNKS, [chunk])
    await plant(runtime, CollectionName.CHUNKS, other, "quite another text")
    await plant(runtime, CollectionName.EVENTS, "00000000-0000-4000-8000-000000000001", "ghost")

    check = next(one for one in integrity.CHECKS if one.name == "index_agrees")
    finding = await check.examine(runtime)
    assert sorted(finding.offenders) == [
        f"artifact_chunks: {chunk} is missing",
        f"artifact_chunks: {other} was made of another text",
        "events: 00000000-0000-4000-8000-000000000001 is not in Postgres",
    ]

    assert (await check.repair(runtime)).repaired == 3
    assert (await check.examine(runtime)).passed
    await assert_exact(runtime)
    assert await ids(runtime, CollectionName.EVENTS) == set(planted.ids)


async def test_what_postgres_says_otherwise_without_a_change_is_found_and_repaired(
    tools: ToolClient, runtime: Runtime, sql: psycopg.Connection
) -> None:
    stored = await tools("memory_store", content="Likes otters", type="fact", confidence=0.8)
    sql.execute("UPDATE memory SET content = 'Likes herons'")

    check = next(one for one in integrity.CHECKS if one.name == "index_agrees")
    finding = await check.examine(runtime)
    assert finding.offenders == [f"entries of {stored['memory_id']} are not up to date"]

    assert (await check.repair(runtime)).repaired == 1
    await assert_exact(runtime)


async def test_an_entry_that_was_announced_and_never_written_goes_with_its_document(
    tools: ToolClient, runtime: Runtime, index_host: IndexHost, sql: psycopg.Connection
) -> None:
    """The writer died between Chroma and Postgres, and the document was deleted meanwhile."""
    stored = await note(tools, OTTERS)
    await caught_up(runtime)
    sql.execute("UPDATE index_entry SET hash = NULL")
    await index_host.stop()
    sql.execute("DELETE FROM artifact_revision")

    await settle_now(runtime, [stored["artifact_uid"]])

    assert await ids(runtime, CollectionName.ARTIFACTS) == set()
    assert sql.execute("SELECT count(*) FROM index_entry").fetchone() == (0,)


async def test_a_paid_embedder_is_asked_once_for_each_text(
    openai_tools: ToolClient, provider: ScriptedProvider, sql: psycopg.Connection
) -> None:
    stored = await note(openai_tools, LONG, source_id="long")
    assert stored["indexed"] is True
    asked = embedded(provider)
    assert len(asked) == stored["num_chunks"]

    edited = await note(openai_tools, LONG + " One more sentence at the end.", source_id="long")
    assert edited["indexed"] is True
    again = embedded(provider)[len(asked) :]
    assert 1 <= len(again) < stored["num_chunks"] / 2, "unchanged chunks are not paid for again"

    await openai_tools("artifact_delete", artifact_uid=stored["artifact_uid"])
    assert sql.execute("SELECT count(*) FROM embedding_cache").fetchone() == (0,)


async def test_a_rebuild_with_a_paid_embedder_costs_nothing(
    openai_tools: ToolClient,
    openai_settings: Settings,
    provider: ScriptedProvider,
) -> None:
    await note(openai_tools, LONG, source_id="long")
    await openai_tools("memory_store", content="Likes otters", type="fact", confidence=0.8)
    asked = len(embedded(provider))
    runtime = joined_runtime(openai_settings, unasked="a test looks at what is stored")
    await runtime.open()
    try:
        before = await serving(runtime)
        await rebuild(runtime)
        await filled(runtime, after=before.generation)

        assert len(embedded(provider)) == asked
        await assert_exact(runtime)
    finally:
        await runtime.close()


async def test_a_text_that_two_documents_share_stays_paid_for_when_one_goes(
    openai_tools: ToolClient, provider: ScriptedProvider, sql: psycopg.Connection
) -> None:
    first = await note(openai_tools, OTTERS, source_id="first")
    await note(openai_tools, OTTERS, source_id="second")
    assert len(embedded(provider)) == 1

    await openai_tools("artifact_delete", artifact_uid=first["artifact_uid"])

    assert sql.execute("SELECT count(*) FROM embedding_cache").fetchone() == (1,)


def embedded(provider: ScriptedProvider) -> list[str]:
    """Every text that was sent to be embedded, queries left out."""
    return [text for call in provider.embeddings for text in call.body["input"]]


async def test_another_embedder_searches_by_words_until_the_index_is_rebuilt(
    tools: ToolClient,
    runtime: Runtime,
    openai_settings: Settings,
    index_host: IndexHost,
) -> None:
    await note(tools, OTTERS)
    await index_host.stop()
    other = joined_runtime(openai_settings, unasked="a test looks at what is stored")
    await other.open()
    try:
        async with in_one_task(Client(build_server(openai_settings))) as client:
            changed = ToolClient(client)
            [hit] = await found(changed, "otters boathouse")
            assert hit["sources"] == ["full_text"]

            before = await serving(other)
            await index_host.host(other)
            await rebuild(other)
            await filled(other, after=before.generation)

            await asyncio.sleep(0)
            assert (await serving(other)).model == "scripted-embedding"
            hits = await found(changed, "otters boathouse")
            assert "dense_artifacts" in hits[0]["sources"]
    finally:
        await index_host.stop()
        await other.close()


async def test_vectors_of_an_older_version_are_taken_over_without_their_texts(
    openai_settings: Settings,
    runtime: Runtime,
    index_host: IndexHost,
    provider: ScriptedProvider,
    openai_tools: ToolClient,
    sql: psycopg.Connection,
) -> None:
    """Collections as the version before left them, with documents in them."""
    stored = await note(openai_tools, LONG, source_id="long")
    memory = await openai_tools("memory_store", content="Likes otters", type="fact", confidence=0.8)
    await index_host.stop()
    assert openai_settings.chroma_host is not None
    client = ChromaClient(openai_settings.chroma_host, openai_settings.chroma_port)
    other = joined_runtime(openai_settings, unasked="a test looks at what is stored")
    await other.open()
    label = {"provider": "openai", "model": "scripted-embedding", "dimension": 64}
    try:
        await older_collections(other, client, label, stored, memory)
        foreign = await client.make("events_old", {"made_by": "another product"})
        await foreign.call("upsert", ids=["x"], embeddings=[[0.5] * 64], metadatas=[{"kind": "x"}])
        await other.vectors.drop((await serving(other)).names_of(DEFAULT_TENANT))
        sql.execute("DELETE FROM embedding_cache; DELETE FROM index_generation")
        asked = len(embedded(provider))

        await new_generation.rebuild(other)

        assert len(embedded(provider)) == asked, "nothing is embedded twice"
        difference = await consistency.compare(other)
        assert list(difference.differences()) == []
        assert difference.chroma["artifact_chunks"] == stored["num_chunks"]
        names = set(await client.labels())
        assert {"artifacts", "artifact_chunks", "memory", "events"}.isdisjoint(names)
        assert "events_old" in names, "what is not ours is left alone"
    finally:
        await client.drop("events_old")
        await client.close()
        await other.close()


async def older_collections(
    runtime: Runtime, client: ChromaClient, label: dict[str, Any], stored: Json, memory: Json
) -> None:
    keys = [
        EntryKey(DEFAULT_TENANT, CollectionName.CHUNKS, id_, stored["artifact_uid"], None)
        for id_ in stored["stored_ids"][1:]
    ]
    async with runtime.database.transaction() as session:
        [page] = [page async for page in pieces(session, keys)]
    texts = {piece.id: piece.text for piece in page} | {memory["memory_id"]: "Likes otters"}
    for name, wanted in (
        ("artifact_chunks", stored["stored_ids"][1:]),
        ("memory", [memory["memory_id"]]),
        ("artifacts", []),
        ("events", []),
    ):
        collection = await client.make(name, label)
        if wanted:
            vectors = await runtime.embedder.embed([texts[id_] for id_ in wanted])
            answered = {id_: texts[id_] for id_ in wanted}
            await upsert_texts(collection, answered, vectors, [{"latest": True}] * len(wanted))


async def test_what_a_dead_writer_undoes_late_is_seen_and_repaired(
    tools: ToolClient, runtime: Runtime, index_host: IndexHost, sql: psycopg.Connection
) -> None:
    stored = await note(tools, OTTERS)
    await index_host.stop()
    sql.execute("UPDATE index_entry SET hash = NULL")  # announced by a writer that died
    projection = IndexProjection(runtime, look_again_seconds=0)

    await plant(runtime, CollectionName.ARTIFACTS, "art_late", OTTERS)
    await projection.apply([], runtime.database.transaction)

    async with asyncio.timeout(PATIENCE):
        while await ids(runtime, CollectionName.ARTIFACTS) != {stored["artifact_id"]}:
            await asyncio.sleep(0.05)
    await index_host.host(runtime)
    await assert_exact(runtime)
