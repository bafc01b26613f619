"""Whether Chroma says what Postgres says; and bringing it back into step.

Two comparisons: what should stand there with `index_entry`, and `index_entry` with Chroma itself.
Whatever looks wrong is looked at again while the index is not being written, after the changes
before it are applied: what is merely under way is no fault. A repair corrects `index_entry` and
leaves the rest to the one writer.
"""

import random
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from memory_core.index.chroma import NoSuchCollection
from memory_core.index.expected import difference
from memory_core.index.generation import CollectionName, Generation, serving
from memory_core.index.parts import Parts
from memory_core.index.writing import holding_index, settle_now
from memory_core.kernel.database import Row, Session
from memory_core.kernel.errors import ChromaUnavailable
from memory_core.log.reading import newest
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
    behind: dict[str, None] = field(default_factory=dict)  # owners that are not up to date
    wrong: dict[tuple[CollectionName, str], str] = field(default_factory=dict)

    def told(self) -> Iterable[str]:
        yield from (f"entries of {owner} are not up to date" for owner in self.behind)
        for (name, id_), problem in self.wrong.items():
            yield f"{name.value}: {id_} {problem}"


async def compare(runtime: Parts, *, sample: int | None = None) -> Comparison:
    """With `sample`: counts, and that many entries of either side; only where these differ, all."""
    return await _Check(runtime, await _generation(runtime)).run(sample)


async def repair(runtime: Parts) -> int:
    """How many entries were written again or deleted. Chroma that has lost its collections gets a
    new generation."""
    generation = await _generation(runtime)
    try:
        found = await _Check(runtime, generation).run(None)
    except NoSuchCollection:
        async with runtime.database.session() as session:
            rows = await session.all("owners_of_index", after="", limit=1)
        return await settle_now(runtime, [row["owner"] for row in rows])
    owners = list(found.behind | await _doubt(runtime, generation, found))
    pages = [owners[start : start + _PAGE] for start in range(0, len(owners), _PAGE)]
    return sum([await settle_now(runtime, page) for page in pages])


async def _doubt(runtime: Parts, generation: Generation, found: Comparison) -> dict[str, None]:
    """Note that what stands of these in Chroma is not known; their owners."""
    async with holding_index(runtime) as session:
        rows = await session.all(
            "doubt_entries",
            generation=generation.generation,
            collections=[name.value for name, _ in found.wrong],
            ids=[id_ for _, id_ in found.wrong],
            owner=_STRAY,
        )
    return dict.fromkeys(row["owner"] for row in rows)


async def _generation(runtime: Parts) -> Generation:
    async with runtime.database.session() as session:
        found = await serving(session)
    if found is None:
        raise ChromaUnavailable(
            "The index is not made yet. The worker makes it: is one running (`mcp-memory up`)?"
        )
    return found


class _Check:
    def __init__(self, runtime: Parts, generation: Generation) -> None:
        self._runtime, self._generation = runtime, generation
        self._found = Comparison()

    async def run(self, sample: int | None) -> Comparison:
        found = self._found
        for query in ("owners_of_index", "owners_with_entries"):
            async for rows in self._pages(query, "owner"):
                found.behind |= await self._behind([row["owner"] for row in rows])
        counted = {row["collection"]: row["entries"] for row in await self._rows("count_entries")}
        for name in CollectionName:
            found.postgres[name.value] = counted.get(name.value, 0)
            found.chroma[name.value] = await self._runtime.vectors.size(self._generation, name)
            if sample is None or await self._seems_wrong(name, sample):
                async for suspects in self._suspects(name):
                    await self._judge(name, suspects)
        return found

    async def _behind(self, owners: Sequence[str]) -> dict[str, None]:
        async with self._runtime.database.session() as session:
            suspects = await self._differing(session, owners)
        if not suspects:
            return {}
        await self._catch_up()
        async with holding_index(self._runtime) as session:
            return await self._differing(session, list(suspects))

    async def _differing(self, session: Session, owners: Sequence[str]) -> dict[str, None]:
        found = await difference(session, self._generation.generation, owners)
        return dict.fromkeys(key.owner for key in [*found.fresh, *found.stale])

    async def _catch_up(self) -> None:
        """The changes until now are applied, if a worker lives."""
        async with self._runtime.database.session() as session:
            position = await newest(session)
        if position is not None:
            await wait_until(self._runtime.database, "index", position, _CATCH_UP_SECONDS)

    async def _seems_wrong(self, name: CollectionName, sample: int) -> bool:
        there = self._found.chroma[name.value]
        if there != self._found.postgres[name.value]:
            return True
        rows = await self._rows("sample_of_entries", collection=name.value, limit=sample)
        hashes = await self._hashes(name, ids=[row["id"] for row in rows])
        place = random.randrange(max(there - sample, 0) + 1)
        page = await self._hashes(name, offset=place, limit=sample)
        differs = any(hashes.get(row["id"]) != row["hash"] for row in rows)
        return differs or await self._known(name, list(page)) != page

    async def _suspects(self, name: CollectionName) -> AsyncIterator[list[str]]:
        async for rows in self._pages("entries_of_collection", "id", collection=name.value):
            there = await self._hashes(name, ids=[row["id"] for row in rows])
            yield [row["id"] for row in rows if there.get(row["id"]) != row["hash"]]
        offset = 0
        while page := await self._hashes(name, offset=offset, limit=_PAGE):
            known = await self._known(name, list(page))
            yield [id_ for id_ in page if id_ not in known]
            offset += len(page)

    async def _judge(self, name: CollectionName, suspects: list[str]) -> None:
        """What of these is wrong while nothing writes."""
        if not suspects:
            return
        async with holding_index(self._runtime):
            known = await self._known(name, suspects)
            there = await self._hashes(name, ids=suspects)
        for id_ in suspects:
            problem = None
            if id_ not in known:
                problem = "is not in Postgres" if id_ in there else None
            elif known[id_] is None:
                continue  # Announced and not written yet: a change that was begun comes again.
            elif id_ not in there:
                problem = "is missing"
            elif known[id_] != there[id_]:
                problem = "was made of another text"
            if problem:
                self._found.wrong[name, id_] = problem

    async def _known(self, name: CollectionName, ids: list[str]) -> dict[str, str | None]:
        rows = await self._rows("entries_by_id", collection=name.value, ids=ids)
        return {row["id"]: row["hash"] for row in rows}

    async def _hashes(self, name: CollectionName, **which: Any) -> dict[str, str | None]:
        return await self._runtime.vectors.hashes(self._generation, name, **which)

    async def _rows(self, query: str, **more: Any) -> list[Row]:
        async with self._runtime.database.session() as session:
            return await session.all(query, generation=self._generation.generation, **more)

    async def _pages(self, query: str, by: str, **more: Any) -> AsyncIterator[list[Row]]:
        after = ""
        while rows := await self._rows(query, after=after, limit=_PAGE, **more):
            yield rows
            after = rows[-1][by]
