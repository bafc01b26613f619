"""The vector store: one collection to its users; inside, the latest are apart from the rest."""

import random
from typing import Any

import pytest

from memory_core import agreement
from memory_core.chroma import ChromaRefusal, Collection
from memory_core.errors import ChromaUnavailable
from memory_core.indexed import Artifacts, Events
from memory_core.runtime import Runtime
from memory_core.vectors import CollectionName, Entry, VectorStore
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
    assert set(looked.difference.mismarked) == {old, new}
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
