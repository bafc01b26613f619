"""`reindex`: the index made anew from Postgres, while the old one serves."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from memory_core import agreement, indexed, memories, reindex
from memory_core.embedding import Vector
from memory_core.errors import EmbeddingMismatch, ErrorCode, ProviderFault
from memory_core.memories import MemoryType
from memory_core.runtime import Runtime
from memory_core.settings import Settings
from memory_core.vectors import CollectionName, Entry
from tests.pipeline_client import SMALL_CHUNKS, Pipeline
from tests.scripted_provider import ScriptedProvider

LONG = " ".join(f"Decision: plan {number} of the programme is accepted." for number in range(40))


@pytest.fixture
async def pipeline(runtime: Runtime) -> Pipeline:
    pipeline = Pipeline(runtime, **SMALL_CHUNKS)
    await pipeline.remember("Decision: the zebra plan is accepted.", "first")
    await pipeline.remember("Decision: the okapi plan is accepted.", "first")
    await pipeline.remember(LONG, "second")
    await pipeline.extract()
    await memories.store(
        runtime,
        content="Likes tea",
        memory_type=MemoryType.FACT,
        confidence=1.0,
        conversation_id=None,
    )
    return pipeline


async def everything(runtime: Runtime) -> None:
    for rebuild in (reindex.rebuild_text, reindex.rebuild_memories, reindex.rebuild_events):
        await rebuild(runtime, lambda done: None)


async def differences(runtime: Runtime) -> list[str]:
    found = [await agreement.compare(runtime, shelf) for shelf in indexed.SHELVES]
    return [line for difference in found for line in difference.told()]


async def counts(runtime: Runtime) -> dict[CollectionName, int]:
    return {name: await runtime.vectors.count(name) for name in CollectionName}


async def test_everything_is_as_ingest_and_runs_had_written_it(pipeline: Pipeline) -> None:
    store = pipeline.runtime.vectors
    before = {name: await store.page(name, 0, 1000) for name in CollectionName}
    assert all(before.values())
    [vector] = await pipeline.runtime.embedder.embed(["nothing"])
    stray = Entry("stray", vector, "nothing", {"artifact_uid": "uid_gone"})
    await store.upsert(CollectionName.CHUNKS, [stray])

    await everything(pipeline.runtime)

    for name, stored in before.items():
        now = await store.page(name, 0, 1000)
        assert {id_: entry.document for id_, entry in now.items()} == {
            id_: entry.document for id_, entry in stored.items()
        }
        for id_, entry in now.items():
            told = stored[id_].metadata
            mark = {} if "latest" in told or "latest" not in entry.metadata else {"latest": True}
            assert entry.metadata == pytest.approx({**told, **mark})
    assert await differences(pipeline.runtime) == []


async def test_a_failure_half_way_leaves_the_index_as_it_was(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await counts(pipeline.runtime)
    monkeypatch.setattr(reindex, "_PAGE", 2)
    embedder = type(pipeline.runtime.embedder)
    embed, calls = embedder.embed, 0

    async def fails_at_last(self: Any, texts: Sequence[str]) -> list[Vector]:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise ProviderFault("down", code=ErrorCode.OPENAI_CONNECTION_ERROR)
        vectors: list[Vector] = await embed(self, texts)
        return vectors

    with monkeypatch.context() as patched:
        patched.setattr(embedder, "embed", fails_at_last)
        with pytest.raises(ProviderFault):
            await reindex.rebuild_text(pipeline.runtime, lambda done: None)

    assert await counts(pipeline.runtime) == before
    assert await differences(pipeline.runtime) == []
    # What was left half-done is no hindrance.
    await everything(pipeline.runtime)
    assert await differences(pipeline.runtime) == []


async def test_what_is_ingested_meanwhile_is_not_lost(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled, go_on = asyncio.Event(), asyncio.Event()
    fill = reindex._fill_text

    async def held_up(*arguments: Any) -> None:
        await fill(*arguments)
        filled.set()
        await go_on.wait()

    monkeypatch.setattr(reindex, "_fill_text", held_up)
    rebuilding = asyncio.create_task(everything(pipeline.runtime))
    await filled.wait()
    await pipeline.remember("Decision: the gnu plan is accepted.", "first")
    await pipeline.extract("run-2")
    go_on.set()
    await rebuilding

    assert await differences(pipeline.runtime) == []


async def test_a_server_that_knows_the_old_collection_goes_on_with_the_new(
    pipeline: Pipeline, runtime: Runtime
) -> None:
    elsewhere = Runtime(runtime.settings)
    await elsewhere.open()
    await everything(elsewhere)
    await elsewhere.close()

    [hit, *_] = await runtime.vectors.query(
        CollectionName.EVENTS, (await runtime.embedder.embed(["okapi"]))[0], limit=1
    )
    assert hit.distance < 1
    await pipeline.remember("Decision: the gnu plan is accepted.", "third")
    assert await differences(runtime) == []


@pytest.fixture
async def another_model(
    openai_settings: Settings, runtime: Runtime, provider: ScriptedProvider
) -> AsyncIterator[Runtime]:
    other = Runtime(openai_settings)
    await other.open()
    yield other
    await other.close()
    for name in CollectionName:
        await runtime.vectors.recreate(name)


async def test_after_a_change_of_model_the_collections_are_of_the_new_one(
    pipeline: Pipeline, another_model: Runtime
) -> None:
    with pytest.raises(EmbeddingMismatch):
        await another_model.vectors.count(CollectionName.CHUNKS)

    await everything(another_model)

    assert await differences(another_model) == []
