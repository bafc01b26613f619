"""Whether Chroma says what Postgres says; and bringing it back into step.

Two comparisons: what should stand there with `index_entry`, and `index_entry` with Chroma itself.
Whatever looks wrong is looked at again while the index is not being written, after the changes
before it are applied: what is merely under way is no fault. A repair corrects `index_entry` and
leaves the rest to the one writer.
"""

import random
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field

from memory_core.index.chroma import NoSuchCollection
from memory_core.index.expected import difference
from memory_core.index.generation import CollectionName, Generation, serving
from memory_core.index.parts import Parts
from memory_core.index.writing import holding_index, settle_now
from memory_core.kernel.database import Session
from memory_core.kernel.errors import ChromaUnavailable
from memory_core.log.change import Position
from memory_core.log.waiting import wait_until

_PAGE = 500
_CATCH_UP_SECONDS = 10.0
# The owner of entries that no artifact or memory has: nothing is expected of it.
_STRAY = "(unknown)"


@dataclass(slots=True)
class Comparison:
    """Counts by collection, and what is wrong: in Postgres by owner, in Chroma by id."""

    postgres: dict[str, int] = field(default_factory=dict)
    chroma: dict[str, int] = field(default_factory=dict)
    behind: list[str] = field(default_factory=list)  # owners whose entries are not up to date
    missing: dict[CollectionName, list[str]] = field(default_factory=dict)
    stray: dict[CollectionName, list[str]] = field(default_factory=dict)
    other: dict[CollectionName, list[str]] = field(default_factory=dict)

    def told(self) -> Iterable[str]:
        yield from (f"entries of {owner} are not up to date" for owner in self.behind)
        for kind, text in (
            (self.missing, "is missing"),
            (self.stray, "is not in Postgres"),
            (self.other, "was made of another text"),
        ):
            for name, ids in kind.items():
                yield from (f"{name.value}: {id_} {text}" for id_ in ids)


async def compare(runtime: Parts, *, sample: int | None = None) -> Comparison:
    """With `sample`: counts, and that many entries of either side; only where these differ, all."""
    generation = await _generation(runtime)
    found = Comparison()
    behind: dict[str, None] = {}
    async for owners in _owners(runtime, generation):
        behind |= dict.fromkeys(await _behind(runtime, generation, owners))
    found.behind += behind
    async with runtime.database.session() as session:
        rows = await session.all("count_entries", generation=generation.generation)
    counted = {row["collection"]: row["entries"] for row in rows}
    for name in CollectionName:
        found.postgres[name.value] = counted.get(name.value, 0)
        found.chroma[name.value] = await runtime.vectors.size(generation, name)
        if sample is None or await _seems_wrong(runtime, generation, name, found, sample):
            await _compare(runtime, generation, name, found)
    return found


async def repair(runtime: Parts) -> int:
    """How many entries were written again or deleted. Chroma that has lost its collections gets a
    new generation."""
    try:
        found = await compare(runtime)
    except NoSuchCollection:
        async with runtime.database.session() as session:
            rows = await session.all("owners_of_index", after="", limit=1)
        return await settle_now(runtime, [row["owner"] for row in rows])
    generation = await _generation(runtime)
    owners = dict.fromkeys(found.behind)
    async with holding_index(runtime) as session:
        for name in CollectionName:
            wrong = [
                id_
                for kind in (found.missing, found.stray, found.other)
                for id_ in kind.get(name, [])
            ]
            owners |= dict.fromkeys(await _doubt(session, generation, name, wrong))
    mended, everything = 0, list(owners)
    for start in range(0, len(everything), _PAGE):
        mended += await settle_now(runtime, everything[start : start + _PAGE])
    return mended


async def _catch_up(runtime: Parts) -> None:
    """The changes until now are applied, if a worker lives."""
    async with runtime.database.session() as session:
        last = await session.one("last_change")
    if last is not None:
        await wait_until(runtime.database, "index", Position.of(last), _CATCH_UP_SECONDS)


async def _generation(runtime: Parts) -> Generation:
    async with runtime.database.session() as session:
        found = await serving(session)
    if found is None:
        raise ChromaUnavailable(
            "The index is not made yet. The worker makes it: is one running (`mcp-memory up`)?"
        )
    return found


async def _owners(runtime: Parts, generation: Generation) -> AsyncIterator[list[str]]:
    """All that should have entries, and all that have some."""
    for query, more in (
        ("owners_of_index", {}),
        ("owners_with_entries", {"generation": generation.generation}),
    ):
        after = ""
        while True:
            async with runtime.database.session() as session:
                rows = await session.all(query, after=after, limit=_PAGE, **more)
            if not rows:
                break
            yield [row["owner"] for row in rows]
            after = rows[-1]["owner"]


async def _behind(runtime: Parts, generation: Generation, owners: Sequence[str]) -> list[str]:
    async with runtime.database.session() as session:
        suspects = await _differing(session, generation, owners)
    if not suspects:
        return []
    await _catch_up(runtime)
    async with holding_index(runtime) as session:
        return await _differing(session, generation, suspects)


async def _differing(session: Session, generation: Generation, owners: Sequence[str]) -> list[str]:
    found = await difference(session, generation.generation, owners)
    return list(dict.fromkeys(key.owner for key in [*found.fresh, *found.stale]))


async def _seems_wrong(
    runtime: Parts, generation: Generation, name: CollectionName, found: Comparison, sample: int
) -> bool:
    there = found.chroma[name.value]
    if there != found.postgres[name.value]:
        return True
    async with runtime.database.session() as session:
        rows = await session.all(
            "sample_of_entries",
            generation=generation.generation,
            collection=name.value,
            limit=sample,
        )
    hashes = await runtime.vectors.hashes(generation, name, [row["id"] for row in rows])
    if any(hashes.get(row["id"]) != row["hash"] for row in rows):
        return True
    place = random.randrange(max(there - sample, 0) + 1)
    page = await runtime.vectors.page(generation, name, place, sample)
    async with runtime.database.session() as session:
        known = await _known(session, generation, name, list(page))
    return known != page


async def _compare(
    runtime: Parts, generation: Generation, name: CollectionName, found: Comparison
) -> None:
    suspects: dict[str, None] = {}
    async for ids in _entries(runtime, generation, name):
        hashes = await runtime.vectors.hashes(generation, name, list(ids))
        suspects |= dict.fromkeys(id_ for id_ in ids if hashes.get(id_) != ids[id_])
    offset = 0
    while page := await runtime.vectors.page(generation, name, offset, _PAGE):
        async with runtime.database.session() as session:
            known = await _known(session, generation, name, list(page))
        suspects |= dict.fromkeys(id_ for id_ in page if known.get(id_) != page[id_])
        offset += len(page)
    everything = list(suspects)
    for start in range(0, len(everything), _PAGE):
        await _settle_suspects(runtime, generation, name, everything[start : start + _PAGE], found)


async def _settle_suspects(
    runtime: Parts,
    generation: Generation,
    name: CollectionName,
    suspects: list[str],
    found: Comparison,
) -> None:
    """What of these is wrong while nothing writes."""
    async with holding_index(runtime) as session:
        known = await _known(session, generation, name, suspects)
        there = await runtime.vectors.hashes(generation, name, suspects)
    for id_ in suspects:
        if id_ in known and id_ not in there:
            # Announced and not written yet: a change that was begun comes again.
            if known[id_] is not None:
                found.missing.setdefault(name, []).append(id_)
        elif id_ in there and id_ not in known:
            found.stray.setdefault(name, []).append(id_)
        elif known.get(id_) != there.get(id_) and known[id_] is not None:
            found.other.setdefault(name, []).append(id_)


async def _entries(
    runtime: Parts, generation: Generation, name: CollectionName
) -> AsyncIterator[dict[str, str | None]]:
    after = ""
    while True:
        async with runtime.database.session() as session:
            rows = await session.all(
                "entries_of_collection",
                generation=generation.generation,
                collection=name.value,
                after=after,
                limit=_PAGE,
            )
        if not rows:
            return
        yield {row["id"]: row["hash"] for row in rows}
        after = rows[-1]["id"]


async def _known(
    session: Session, generation: Generation, name: CollectionName, ids: list[str]
) -> dict[str, str | None]:
    rows = await session.all(
        "entries_by_id", generation=generation.generation, collection=name.value, ids=ids
    )
    return {row["id"]: row["hash"] for row in rows}


async def _doubt(
    session: Session, generation: Generation, name: CollectionName, ids: list[str]
) -> list[str]:
    """Their owners."""
    if not ids:
        return []
    rows = await session.all(
        "doubt_entries",
        generation=generation.generation,
        collection=name.value,
        ids=ids,
        owners=[_STRAY] * len(ids),
    )
    return [row["owner"] for row in rows]
