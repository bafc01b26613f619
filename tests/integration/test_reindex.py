"""`reindex`: the index made anew from Postgres, while the old one serves."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

import pytest

from memory_core import agreement, indexed, memories, reindex
from memory_core.artifacts.deletion import delete_artifact
from memory_core.chroma import ChromaClient
from memory_core.embedding import Vector
from memory_core.embedding.local import LocalEmbedder
from memory_core.errors import ChromaUnavailable, EmbeddingMismatch, ErrorCode, ProviderFault
from memory_core.events import store
from memory_core.extraction import pipeline as extraction
from memory_core.memories import MemoryType
from memory_core.runtime import Runtime
from memory_core.settings import Settings
from memory_core.vectors import CollectionName, Entry, VectorStore
from tests.pipeline_client import SMALL_CHUNKS, Pipeline
from tests.scripted_provider import ScriptedProvider

GNU = "Decision: the gnu plan is accepted."
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


Held = Callable[..., tuple[asyncio.Event, asyncio.Event]]


@pytest.fixture
def held_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    """Makes the first such call not return: when it is done, and how it goes on."""
    gates: list[asyncio.Event] = []

    def hold(
        owner: Any, name: str, when: Callable[..., bool] = lambda *_, **__: True
    ) -> tuple[asyncio.Event, asyncio.Event]:
        done, go_on = asyncio.Event(), asyncio.Event()
        call = getattr(owner, name)

        async def held_up(*arguments: Any, **named: Any) -> Any:
            held = not done.is_set() and when(*arguments, **named)
            result = await call(*arguments, **named)
            if held:
                done.set()
                await go_on.wait()
            return result

        monkeypatch.setattr(owner, name, held_up)
        gates.append(go_on)
        return done, go_on

    yield hold
    for gate in gates:
        gate.set()


def is_in_use(*_: Any, beside: bool = False) -> bool:
    return not beside


async def waits(pipeline: Pipeline, task: "asyncio.Task[None]") -> bool:
    """Whether it comes to wait for a lock of somebody else, before it ends."""
    while not task.done():
        if await pipeline.rows("SELECT 1 FROM pg_locks WHERE NOT granted"):
            return True
        await asyncio.sleep(0)
    return False


async def nearest(runtime: Runtime, name: CollectionName, text: str) -> str:
    [vector] = await runtime.embedder.embed([text])
    [hit, *_] = await runtime.vectors.query(name, vector, limit=1)
    return hit.id


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


async def test_what_is_ingested_meanwhile_is_not_lost(pipeline: Pipeline, held_once: Held) -> None:
    filled, go_on = held_once(reindex, "_fill_text")
    rebuilding = asyncio.create_task(everything(pipeline.runtime))
    await filled.wait()
    await pipeline.remember("Decision: the gnu plan is accepted.", "first")
    await pipeline.extract("run-2")
    go_on.set()
    await rebuilding

    assert await differences(pipeline.runtime) == []


# --- writers between their two stores ------------------------------------------------------------


async def ingest_a_gnu(pipeline: Pipeline) -> str:
    return (await pipeline.remember(GNU, "third")).artifact_id


async def remember_a_gnu(pipeline: Pipeline) -> str:
    stored = await memories.store(
        pipeline.runtime,
        content=GNU,
        memory_type=MemoryType.FACT,
        confidence=1.0,
        conversation_id=None,
    )
    return stored.memory_id


@pytest.mark.parametrize(
    ("write", "name", "rebuild"),
    [
        (ingest_a_gnu, CollectionName.ARTIFACTS, reindex.rebuild_text),
        (remember_a_gnu, CollectionName.MEMORY, reindex.rebuild_memories),
    ],
    ids=["document", "memory"],
)
async def test_what_is_written_but_not_committed_is_waited_for(
    pipeline: Pipeline, held_once: Held, write: Any, name: Any, rebuild: Any
) -> None:
    written, go_on = held_once(VectorStore, "upsert", is_in_use)
    writing = asyncio.create_task(write(pipeline))
    await written.wait()
    rebuilding = asyncio.create_task(rebuild(pipeline.runtime, lambda done: None))
    assert await waits(pipeline, rebuilding)
    go_on.set()
    stored = await writing
    await rebuilding

    assert await nearest(pipeline.runtime, name, GNU) == stored
    assert await differences(pipeline.runtime) == []


async def test_who_never_ends_is_not_waited_for_for_ever(
    pipeline: Pipeline,
    held_once: Held,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """All other writers would wait behind."""
    monkeypatch.setattr(reindex, "_PATIENCE_MS", 100)
    written, go_on = held_once(VectorStore, "upsert", is_in_use)
    writing = asyncio.create_task(ingest_a_gnu(pipeline))
    await written.wait()
    await reindex.rebuild_text(pipeline.runtime, lambda done: None)

    assert "doctor --repair" in caplog.text
    await pipeline.remember("Another one may write.", "fourth")
    go_on.set()
    await writing
    assert await agreement.mend(pipeline.runtime, indexed.Artifacts()) == 1
    assert await differences(pipeline.runtime) == []


async def test_what_is_written_to_a_collection_that_is_about_to_go_is_waited_for(
    pipeline: Pipeline, runtime: Runtime, held_once: Held
) -> None:
    """Who knows it by its id does not notice that it has another name."""
    elsewhere = Runtime(runtime.settings)
    await elsewhere.open()
    renamed, drop = held_once(ChromaClient, "rename", lambda _, old, name: name == "artifacts")
    rebuilding = asyncio.create_task(reindex.rebuild_text(elsewhere, lambda done: None))
    await renamed.wait()
    written, go_on = held_once(VectorStore, "upsert", is_in_use)
    writing = asyncio.create_task(ingest_a_gnu(pipeline))
    await written.wait()
    drop.set()
    assert await waits(pipeline, rebuilding)
    go_on.set()
    stored = await writing
    await rebuilding
    await elsewhere.close()

    assert await nearest(runtime, CollectionName.ARTIFACTS, GNU) == stored
    assert await differences(runtime) == []


async def test_what_is_being_deleted_does_not_come_back(
    pipeline: Pipeline, held_once: Held
) -> None:
    gone = await pipeline.remember(GNU, "third")
    deleted, go_on = held_once(
        VectorStore, "delete", lambda _, name, ids: name is CollectionName.EVENTS
    )
    deleting = asyncio.create_task(
        delete_artifact(pipeline.runtime, artifact_uid=gone.artifact_uid)
    )
    await deleted.wait()
    rebuilding = asyncio.create_task(reindex.rebuild_text(pipeline.runtime, lambda done: None))
    assert await waits(pipeline, rebuilding)
    go_on.set()
    await deleting
    await rebuilding

    assert await differences(pipeline.runtime) == []


@pytest.mark.parametrize("superseded", [False, True], ids=["latest", "superseded"])
async def test_a_run_that_wrote_to_the_old_collection_writes_again(
    pipeline: Pipeline, held_once: Held, superseded: bool
) -> None:
    """It is not waited for: a model may take its time."""
    await pipeline.remember(GNU, "third")
    written, go_on = held_once(VectorStore, "upsert", is_in_use)
    extracting = asyncio.create_task(pipeline.extract("run-2"))
    await written.wait()
    await reindex.rebuild_events(pipeline.runtime, lambda done: None)
    if superseded:
        await pipeline.remember("Nothing was said.", "third")
    go_on.set()
    await extracting

    [event] = await pipeline.rows("SELECT * FROM semantic_event WHERE narrative LIKE '%%gnu%%'")
    assert event["is_latest"] is not superseded
    assert await differences(pipeline.runtime) == []


async def test_events_are_stored_also_when_their_vectors_cannot_be_written_again(
    pipeline: Pipeline,
    held_once: Held,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def down(*_: Any) -> None:
        raise ChromaUnavailable("Chroma does not answer.")

    await pipeline.remember(GNU, "third")
    written, go_on = held_once(VectorStore, "upsert", is_in_use)
    extracting = asyncio.create_task(pipeline.extract("run-2"))
    await written.wait()
    await reindex.rebuild_events(pipeline.runtime, lambda done: None)
    monkeypatch.setattr(VectorStore, "stored", down)
    go_on.set()
    [outcome] = await extracting

    assert outcome.failure is None
    assert "missing until a repair" in caplog.text
    monkeypatch.undo()
    assert await agreement.mend(pipeline.runtime, indexed.Events()) == 1
    assert await differences(pipeline.runtime) == []


async def test_events_that_are_replaced_while_they_are_copied_do_not_come_back(
    pipeline: Pipeline, held_once: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    await pipeline.remember(f"{GNU} Decision: the yak plan is accepted.", "third")
    await pipeline.extract("run-2")
    read, go_on = held_once(LocalEmbedder, "embed")
    rebuilding = asyncio.create_task(reindex.rebuild_events(pipeline.runtime, lambda done: None))
    await read.wait()
    monkeypatch.setattr(extraction, "canonicalise", all_but_the_first(extraction.canonicalise))
    await pipeline.extract("run-3", redo_as="ui")
    go_on.set()
    await rebuilding

    monkeypatch.setattr(agreement, "HEARTBEAT_SECONDS", 0)
    assert await differences(pipeline.runtime) == []


async def test_what_is_stored_again_stays_although_a_run_before_had_replaced_it(
    pipeline: Pipeline, held_once: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    await pipeline.remember(f"{GNU} Decision: the yak plan is accepted.", "third")
    await pipeline.extract("run-2")
    stored, go_on = held_once(store, "replace_events")
    with monkeypatch.context() as patched:
        patched.setattr(extraction, "canonicalise", all_but_the_first(extraction.canonicalise))
        late = asyncio.create_task(pipeline.extract("run-3", redo_as="ui"))
        await stored.wait()
    await pipeline.extract("run-4", redo_as="ui")
    go_on.set()
    await late

    monkeypatch.setattr(agreement, "HEARTBEAT_SECONDS", 0)
    assert await differences(pipeline.runtime) == []


def all_but_the_first(canonicalise: Any) -> Any:
    async def fewer(*arguments: Any, **named: Any) -> Any:
        return (await canonicalise(*arguments, **named))[1:]

    return fewer


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
