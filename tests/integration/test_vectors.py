"""The vector store: one collection to its users; inside, the latest are apart from the rest."""

import random
from typing import Any
from unittest.mock import AsyncMock

import pytest

from memory_core import agreement
from memory_core.artifacts.deletion import delete_artifact
from memory_core.chroma import ChromaRefusal, Collection
from memory_core.errors import ChromaUnavailable
from memory_core.events import index
from memory_core.indexed import Artifacts, Events
from memory_core.runtime import Runtime
from memory_core.vectors import CollectionName, Entry, VectorStore
from tests.pipeline_client import Pipeline
from tests.tool_client import ToolClient

NAME = CollectionName.EVENTS


def direction(seed: str) -> list[float]:
    dice = random.Random(seed)
    return [dice.gauss(0, 1) for _ in range(256)]


def entry(id_: str, *, latest: bool = True, seed: str | None = None) -> Entry:
    return Entry(id_, direction(seed or id_), f"text of {id_}", {"of": "us", "latest": latest})


@pytest.fixture
def store(runtime: Runtime) -> VectorStore:
    return runtime.vectors


async def ids(store: VectorStore, **options: Any) -> set[str]:
    return {hit.id for hit in await store.query(NAME, direction("x"), limit=50, **options)}


async def test_only_the_latest_are_found_unless_asked_for(store: VectorStore) -> None:
    await store.upsert(NAME, [entry("new"), entry("old", latest=False)])

    assert await ids(store) == {"new"}
    assert await ids(store, superseded=True) == {"new", "old"}
    assert await store.count(NAME) == 2
    assert await store.present(NAME, ["new", "old", "none"]) == {"new", "old"}


async def test_the_copies_in_old_revisions_are_in_nobody_s_way(store: VectorStore) -> None:
    copies = [entry(f"old-{number}", latest=False, seed="x") for number in range(100)]
    await store.upsert(NAME, [*copies, entry("new")])

    assert [hit.id for hit in await store.query(NAME, direction("x"), limit=5)] == ["new"]


async def test_both_parts_are_ranked_as_one(store: VectorStore) -> None:
    wanted = [entry(str(number), latest=number % 2 == 0) for number in range(20)]
    await store.upsert(NAME, wanted)

    hits = await store.query(NAME, direction("x"), limit=10, superseded=True)

    assert len(hits) == 10
    assert [hit.distance for hit in hits] == sorted(hit.distance for hit in hits)
    exact = await store.compare(NAME, direction("x"), [e.id for e in wanted], superseded=True)
    assert [hit.id for hit in hits] == [hit.id for hit in exact][:10]


async def test_comparing_measures_as_searching_does(store: VectorStore) -> None:
    wanted = [entry(str(number)) for number in range(30)]
    await store.upsert(NAME, wanted)

    found = await store.query(NAME, direction("x"), limit=30)
    compared = await store.compare(NAME, direction("x"), [*(e.id for e in wanted), "none"])

    assert [hit.id for hit in compared] == [hit.id for hit in found]
    for one, other in zip(compared, found, strict=True):
        assert one.distance == pytest.approx(other.distance, abs=1e-4)


async def test_searching_among_named_entries(store: VectorStore) -> None:
    await store.upsert(NAME, [entry(str(number), latest=number < 8) for number in range(12)])

    async def among(*names: str) -> set[str] | None:
        hits = await store.among(NAME, direction("x"), names, limit=50)
        return None if hits is None else {hit.id for hit in hits}

    assert await among("1", "2") == {"1", "2"}
    assert await among("1", "none") is None
    assert await among("1", "9") is None, "which is superseded"
    assert await among() == set()


async def test_comparing_with_nothing(store: VectorStore) -> None:
    nothing = Entry("zero", [0.0] * 256, "", {"latest": True})
    await store.upsert(NAME, [nothing])

    assert await store.compare(NAME, direction("x"), []) == []
    [hit] = await store.compare(NAME, direction("x"), ["zero"])
    assert hit.distance == 1.0


async def test_entries_move_whole_and_back(
    store: VectorStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory_core.vectors._READ_NUMBERS", 3 * 256)  # several at a time
    names = [str(number) for number in range(10)]
    await store.upsert(NAME, [entry(name) for name in names])
    before = await store.vectors(NAME, names)

    await store.set_latest(NAME, [*names, "none"], latest=False)
    assert await ids(store) == set()
    assert await ids(store, superseded=True) == set(names)

    await store.set_latest(NAME, names, latest=True)
    assert await ids(store) == set(names)
    for name, vector in (await store.vectors(NAME, names)).items():
        assert vector == pytest.approx(before[name], rel=1e-5), "but for the last digit"
    stored = await store.stored(NAME, names)
    assert {told.document for told in stored.values()} == {f"text of {name}" for name in names}
    assert all(told.metadata == {"of": "us", "latest": True} for told in stored.values())


async def test_moving_what_has_moved_changes_nothing(store: VectorStore) -> None:
    await store.upsert(NAME, [entry("old", latest=False)])

    await store.set_latest(NAME, ["old"], latest=False)

    assert await store.count(NAME) == 1
    assert await ids(store, superseded=True) == {"old"}


async def test_deleting_and_emptying_reach_both_parts(store: VectorStore) -> None:
    await store.upsert(NAME, [entry("a"), entry("b", latest=False), entry("c", latest=False)])

    assert set(await store.ids_where(NAME, {"of": "us"})) == {"a", "b", "c"}
    await store.delete(NAME, ["a", "b"])
    assert await ids(store, superseded=True) == {"c"}
    await store.recreate(NAME)
    assert await store.count(NAME) == 0


@pytest.mark.parametrize("size", [1, 3, 4, 50])
async def test_pages_go_through_both_parts(store: VectorStore, size: int) -> None:
    await store.upsert(NAME, [entry(str(number), latest=number < 7) for number in range(10)])
    seen: dict[str, Any] = {}
    while page := await store.page(NAME, len(seen), size):
        assert not seen.keys() & page
        seen |= page

    latest = {id_: told.metadata["latest"] for id_, told in seen.items()}
    assert latest == {str(number): number < 7 for number in range(10)}


async def test_what_takes_over_has_both_parts(store: VectorStore) -> None:
    await store.upsert(NAME, [entry("a"), entry("b", latest=False)])

    await store.start_beside(NAME)
    await store.upsert(NAME, [entry("c"), entry("d", latest=False)], beside=True)
    assert await ids(store, superseded=True) == {"a", "b"}
    await store.take_over(NAME)

    assert await ids(store) == {"c"}
    assert await ids(store, superseded=True) == {"c", "d"}


# --- in step with Postgres -------------------------------------------------------------------


async def revised(tools: ToolClient) -> list[str]:
    """The artifact_ids of a document's two revisions, the latest last."""
    note = {"artifact_type": "note", "source_system": "notes", "source_id": "diary"}
    answers = [
        await tools("artifact_ingest", content=content, **note)
        for content in ("The otters moved in.", "The badgers stayed.")
    ]
    return [answer["artifact_id"] for answer in answers]


async def test_a_move_that_broke_off_is_noticed_and_mended(
    tools: ToolClient, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It leaves the entry in both parts: nothing is lost, and searches go by Postgres."""
    old, new = await revised(tools)

    async def fails(*_: object) -> None:
        raise ChromaRefusal("500: out of order")

    for id_, latest in ((old, True), (new, False)):
        with monkeypatch.context() as broken:
            broken.setattr(Collection, "delete", fails)
            with pytest.raises(ChromaUnavailable):
                await runtime.vectors.set_latest(CollectionName.ARTIFACTS, [id_], latest=latest)

    found = await tools("hybrid_search", query="otters badgers")
    assert [hit["text"] for hit in found["results"]] == ["The badgers stayed."]
    looked = await agreement.look(runtime, Artifacts(), 10)
    assert set(looked.difference.misplaced) == {old, new}
    assert await agreement.mend(runtime, Artifacts()) == 2
    assert len((await agreement.look(runtime, Artifacts(), 10)).difference) == 0
    assert await runtime.vectors.count(CollectionName.ARTIFACTS) == 2


async def test_what_was_never_moved_is_noticed_and_mended(
    tools: ToolClient, runtime: Runtime
) -> None:
    old, new = await revised(tools)
    await runtime.vectors.set_latest(CollectionName.ARTIFACTS, [old], latest=True)
    await runtime.vectors.set_latest(CollectionName.ARTIFACTS, [new], latest=False)

    assert await agreement.mend(runtime, Artifacts()) == 2

    stored = await runtime.vectors.stored(CollectionName.ARTIFACTS, [old, new])
    assert [stored[id_].metadata["latest"] for id_ in (old, new)] == [False, True]
    assert len(await agreement.compare(runtime, Events())) == 0


async def test_one_misplaced_among_many_is_noticed(tools: ToolClient, runtime: Runtime) -> None:
    """Its number is right, and a sample would miss it: each part is counted."""
    _, new = await revised(tools)
    await runtime.vectors.set_latest(CollectionName.ARTIFACTS, [new], latest=False)

    looked = await agreement.look(runtime, Artifacts(), 0)

    assert looked.postgres == looked.chroma == 2
    assert looked.difference.misplaced == [new]


async def test_another_text_in_the_wrong_part_is_mended_once(
    tools: ToolClient, runtime: Runtime
) -> None:
    old, new = await revised(tools)
    stale = [
        Entry(id_, direction("stale"), "an older text", {"latest": latest})
        for id_, latest in ((old, True), (new, False))
    ]
    await runtime.vectors.upsert(CollectionName.ARTIFACTS, stale)

    assert await agreement.mend(runtime, Artifacts()) == 2
    assert await agreement.mend(runtime, Artifacts()) == 0
    stored = await runtime.vectors.stored(CollectionName.ARTIFACTS, [old, new])
    assert [stored[id_].document for id_ in (old, new)] == [
        "The otters moved in.",
        "The badgers stayed.",
    ]


async def test_a_page_begins_nowhere_before_the_first(
    store: VectorStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.upsert(NAME, [entry("a"), entry("b", latest=False)])

    async def one_more(_: Collection) -> int:
        return 2

    monkeypatch.setattr(Collection, "count", one_more)
    assert set(await store.page(NAME, 1, 10)) == {"b"}


async def test_superseded_entries_that_never_moved_hide_nothing(
    tools: ToolClient, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as stuck:
        stuck.setattr(VectorStore, "set_latest", AsyncMock())
        for number in range(50):
            await tools(
                "artifact_ingest", artifact_type="note", source_system="notes", source_id="otters",
                content=f"The otters moved into the boathouse {number}.",
            )  # fmt: skip
    wanted = "Otter families live at the boat house."
    await tools("artifact_ingest", artifact_type="note", source_system="notes", content=wanted)

    found = await tools("hybrid_search", query="ottters boathaus moving")

    assert wanted in {hit["text"] for hit in found["results"]}


async def test_nothing_of_a_deleted_document_stays_in_a_reindex_that_broke_off(
    tools: ToolClient, runtime: Runtime
) -> None:
    old, new = await revised(tools)
    [uid] = set(await _uids(runtime, old, new))
    await runtime.vectors.start_beside(CollectionName.ARTIFACTS)
    secret = [entry(old, latest=False), entry(new)]
    await runtime.vectors.upsert(CollectionName.ARTIFACTS, secret, beside=True)

    await tools("artifact_delete", artifact_uid=uid)
    await runtime.vectors.take_over(CollectionName.ARTIFACTS)

    assert await runtime.vectors.count(CollectionName.ARTIFACTS) == 0


async def _uids(runtime: Runtime, *ids: str) -> list[str]:
    stored = await runtime.vectors.stored(CollectionName.ARTIFACTS, ids)
    return [str(told.metadata["artifact_uid"]) for told in stored.values()]


async def test_a_document_is_stored_also_where_its_old_events_are_of_another_model(
    tools: ToolClient, runtime: Runtime
) -> None:
    """Between a reindex of the documents and one of the events."""
    pipeline = Pipeline(runtime)
    await pipeline.remember("Decision: we launch the beta in May.")
    await pipeline.extract()
    client = runtime.vectors._client
    await client.drop("events")
    await client.collection("events", {"provider": "local", "model": "older", "dimension": 1})
    runtime.vectors._collections.clear()
    try:
        assert (await pipeline.remember("Decision: we launch in June.")).status == "revised"
    finally:
        await runtime.vectors.recreate(CollectionName.EVENTS)


async def test_a_document_that_is_deleted_while_it_is_extracted_leaves_no_vectors(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = Pipeline(runtime)
    stored = await pipeline.remember("Decision: we launch the beta in May.")
    add = index.Writer.add

    async def meanwhile(self: index.Writer, *arguments: Any) -> None:
        await delete_artifact(runtime, artifact_uid=stored.artifact_uid)
        await add(self, *arguments)

    monkeypatch.setattr(index.Writer, "add", meanwhile)
    await pipeline.extract()

    assert [await runtime.vectors.count(name) for name in CollectionName] == [0, 0, 0, 0]
