"""Whether Chroma says what Postgres says, and bringing it back into step.

Nothing is ever dropped that is right: what is missing is added, what Postgres does not know is
deleted, what differs is written again. Writers of an entry hold the lock of its artifact until they
have written to both stores, and a run holds the job of its revision; so whatever looks wrong is
looked at again under these, and what is merely under way is nobody's fault.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from memory_core import indexed
from memory_core.database import Session
from memory_core.indexed import Expected, Shelf
from memory_core.jobs import HEARTBEAT_SECONDS
from memory_core.runtime import Runtime
from memory_core.vectors import CollectionName, Metadata, Stored

_PAGE = 500
# Looked at again, and mended, in one transaction: writers of these wait for so long.
_BATCH = 100


@dataclass(slots=True)
class Difference:
    """Ids of entries that are not as they should be."""

    missing: list[str] = field(default_factory=list)  # Postgres has them, Chroma does not
    stray: list[str] = field(default_factory=list)  # the other way round
    other: list[str] = field(default_factory=list)  # with another text
    misplaced: list[str] = field(default_factory=list)  # among the latest or not, wrongly

    def __len__(self) -> int:
        return len(self.missing) + len(self.stray) + len(self.other) + len(self.misplaced)

    def __iadd__(self, more: "Difference") -> "Difference":
        self.missing += more.missing
        self.stray += more.stray
        self.other += more.other
        self.misplaced += more.misplaced
        return self

    def told(self) -> Iterable[str]:
        yield from (f"{id_} is missing" for id_ in self.missing)
        yield from (f"{id_} is not in Postgres" for id_ in self.stray)
        yield from (f"{id_} has another text" for id_ in self.other)
        yield from (f"{id_} is wrongly among the latest, or not" for id_ in self.misplaced)

    def ids(self) -> list[str]:
        return [*self.missing, *self.stray, *self.other, *self.misplaced]


@dataclass(frozen=True, slots=True)
class Agreement:
    postgres: int  # entries that there should be
    chroma: int
    difference: Difference


async def look(runtime: Runtime, shelf: Shelf, sample: int) -> Agreement:
    """Counts, and a random sample of either side. Only where these differ everything is compared:
    then each offender is named."""
    async with runtime.database.session() as session:
        wanted = await shelf.counts(session)
        ids = await shelf.sample(session, sample)
    counted = await runtime.vectors.counts(shelf.collection)
    there = sum(counted)
    suspects = await _suspects(runtime, shelf, ids)
    if there:
        place = random.randrange(max(there - sample, 0) + 1)
        page = await runtime.vectors.page(shelf.collection, place, sample)
        suspects |= await _suspects(runtime, shelf, list(page))
    if wanted == counted and not suspects:
        return Agreement(there, there, Difference())
    return Agreement(sum(wanted), there, await compare(runtime, shelf))


async def compare(runtime: Runtime, shelf: Shelf) -> Difference:
    """Everything, in pages."""
    return await _settle(runtime, shelf, await _all_suspects(runtime, shelf), mend=False)


async def mend(runtime: Runtime, shelf: Shelf) -> int:
    """How many entries were added, deleted or written again."""
    if not (suspects := await _all_suspects(runtime, shelf)):
        return 0
    # Without it nothing could be added; so nothing is deleted either.
    await runtime.embedder.embed(["Is anybody there?"])
    return len(await _settle(runtime, shelf, suspects, mend=True))


async def mend_artifact(runtime: Runtime, uid: str) -> int:
    """The entries of one artifact's text."""
    async with runtime.database.session() as session:
        rows = await session.all("artifact_vector_ids", uid=uid)
    ids = {
        CollectionName.ARTIFACTS: [row["artifact_id"] for row in rows],
        CollectionName.CHUNKS: [
            id_ for row in rows if row["is_chunked"] for id_ in row["chunk_ids"]
        ],
    }
    mended = 0
    for shelf in indexed.SHELVES:
        suspects = dict.fromkeys(ids.get(shelf.collection, []), uid)
        mended += len(await _settle(runtime, shelf, suspects, mend=True))
    return mended


async def mend_events(runtime: Runtime, uid: str, ids: Sequence[str]) -> int:
    """The entries of these events of one artifact."""
    return len(await _settle(runtime, indexed.Events(), dict.fromkeys(ids, uid), mend=True))


async def _all_suspects(runtime: Runtime, shelf: Shelf) -> dict[str, str]:
    """Ids with whoever may be writing them."""
    suspects: dict[str, str] = {}
    offset = 0
    while page := await runtime.vectors.page(shelf.collection, offset, _PAGE):
        async with runtime.database.session() as session:
            expected = await shelf.expected(session, list(page))
        suspects |= _writers(shelf, _differ(list(page), expected, page).ids(), expected, page)
        offset += len(page)
    async for ids in shelf.pages(runtime):
        suspects |= await _missing(runtime, shelf, ids)
    return suspects


async def _missing(runtime: Runtime, shelf: Shelf, ids: list[str]) -> dict[str, str]:
    there = await runtime.vectors.present(shelf.collection, ids)
    if not (lacking := [id_ for id_ in ids if id_ not in there]):
        return {}
    async with runtime.database.session() as session:
        expected = await shelf.expected(session, lacking)
    return {id_: entry.writer for id_, entry in expected.items()}


async def _suspects(runtime: Runtime, shelf: Shelf, ids: list[str]) -> dict[str, str]:
    if not ids:
        return {}
    stored = await runtime.vectors.stored(shelf.collection, ids)
    async with runtime.database.session() as session:
        expected = await shelf.expected(session, ids)
    return _writers(shelf, _differ(ids, expected, stored).ids(), expected, stored)


def _writers(
    shelf: Shelf, ids: list[str], expected: Mapping[str, Expected], stored: Mapping[str, Stored]
) -> dict[str, str]:
    return {
        id_: expected[id_].writer if id_ in expected else shelf.writer(id_, stored[id_].metadata)
        for id_ in ids
    }


def _differ(
    ids: Sequence[str], expected: Mapping[str, Expected], stored: Mapping[str, Stored]
) -> Difference:
    found = Difference()
    for id_ in ids:
        wanted, told = expected.get(id_), stored.get(id_)
        if wanted is None:
            if told is not None:
                found.stray.append(id_)
        elif wanted.document is None:
            pass  # Chroma may have the last copy of a text: nothing is known better
        elif told is None:
            found.missing.append(id_)
        elif wanted.document != told.document:
            found.other.append(id_)
        elif _is_misplaced(wanted.metadata, told.metadata):
            found.misplaced.append(id_)
    return found


def _is_misplaced(wanted: Metadata, told: Metadata) -> bool:
    return "latest" in told and told["latest"] != wanted.get("latest")


async def _settle(
    runtime: Runtime, shelf: Shelf, suspects: Mapping[str, str], *, mend: bool
) -> Difference:
    """What of these is wrong when nobody is writing it; and, if that is wanted, no longer."""
    total = Difference()
    everything = list(suspects)
    for start in range(0, len(everything), _BATCH):
        ids = everything[start : start + _BATCH]
        async with runtime.database.long_transaction() as session:
            await session.run("lock_artifacts", uids=[suspects[id_] for id_ in ids])
            expected = await shelf.expected(session, ids)
            stored = await runtime.vectors.stored(shelf.collection, ids)
            if shelf.collection is CollectionName.EVENTS:
                moment = 0 if mend else HEARTBEAT_SECONDS
                ids = await _at_rest(session, ids, expected, stored, moment)
            found = _differ(ids, expected, stored)
            if mend:
                await _mend(runtime, session, shelf, found, expected, stored)
        total += found
    return total


async def _at_rest(
    session: Session,
    ids: Sequence[str],
    expected: Mapping[str, Expected],
    stored: Mapping[str, Stored],
    moment: float,
) -> list[str]:
    """Without those of revisions that a run works on: it writes vectors first and rows last, and
    clears away what it replaced after that, for which it has a moment."""
    told = {id_: stored[id_].metadata for id_ in ids if id_ in stored}
    told |= {id_: entry.metadata for id_, entry in expected.items()}
    owners = {
        id_: (str(metadata.get("artifact_uid")), str(metadata.get("revision_id")))
        for id_, metadata in told.items()
    }
    named = {
        "uids": [uid for uid, _ in owners.values()],
        "revisions": [revision for _, revision in owners.values()],
    }
    rows = await session.all("revisions_at_rest", **named, moment=moment)
    free = await session.all("revisions_without_job", **named)
    ended = {(row["artifact_uid"], row["revision_id"]): row["just_now"] for row in rows}
    ended |= {(row["artifact_uid"], row["revision_id"]): False for row in free}
    return [
        id_
        for id_, owner in owners.items()
        if owner in ended and (id_ in expected or not ended[owner])
    ]


async def _mend(
    runtime: Runtime,
    session: Session,
    shelf: Shelf,
    found: Difference,
    expected: Mapping[str, Expected],
    stored: Mapping[str, Stored],
) -> None:
    store, name = runtime.vectors, shelf.collection
    # Of two copies either may be the stale one.
    twice = [id_ for id_ in found.misplaced if stored[id_].metadata["latest"] is None]
    if anew := [expected[id_] for id_ in (*found.missing, *found.other, *twice)]:
        vectors = await shelf.vectors(runtime, session, anew)
        if wrong := [*found.other, *twice]:
            await store.delete(name, wrong)
        await store.upsert(name, indexed.entries(anew, vectors))
    for latest in (True, False):
        moved = [
            id_
            for id_ in found.misplaced
            if id_ not in twice and expected[id_].metadata["latest"] is latest
        ]
        if moved:
            await store.set_latest(name, moved, latest=latest)
    if found.stray:
        await store.delete(name, found.stray)
