"""Whether Chroma says what Postgres says; and bringing it back into step.

Two comparisons: what should stand there with `index_entry`, and `index_entry` with Chroma itself.
Each is judged while the index is not being written, the first one after the changes before it are
applied: what is merely under way is no fault. A repair corrects `index_entry` and leaves the rest
to the one writer.
"""

import random
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from memory_core.index.chroma import NoSuchCollection
from memory_core.index.expected import difference
from memory_core.index.generation import CollectionName, Generation, serving
from memory_core.index.store import Parts
from memory_core.index.writing import holding_index, lose, settle_now
from memory_core.kernel.database import Session
from memory_core.kernel.errors import ChromaUnavailable
from memory_core.log.reading import newest
from memory_core.log.waiting import wait_until

_PAGE = 500
_CATCH_UP_SECONDS = 10.0
# The owner of entries that no artifact or memory has: nothing is expected of it.
_STRAY = "(unknown)"


@dataclass(frozen=True, slots=True)
class Place:
    """A collection of one tenant."""

    tenant_id: UUID
    collection: str


@dataclass(slots=True)
class Comparison:
    """Counts by collection, of all tenants; and what is wrong: in Postgres by owner, in Chroma by
    id."""

    postgres: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CollectionName, 0))
    chroma: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CollectionName, 0))
    behind: dict[str, None] = field(default_factory=dict)  # owners that are not up to date
    wrong: dict[tuple[Place, str], str] = field(default_factory=dict)

    def told(self) -> Iterable[str]:
        yield from (f"entries of {owner} are not up to date" for owner in self.behind)
        for (place, id_), problem in self.wrong.items():
            yield f"{place.collection}: {id_} {problem}"


@dataclass(frozen=True, slots=True)
class _Standing:
    id: str
    hash: str | None


async def compare(runtime: Parts, *, sample: int | None = None) -> Comparison:
    """With `sample`: counts, and that many entries of either side; only where these differ, all."""
    return await _Check(runtime, await _generation(runtime)).run(sample)


async def repair(runtime: Parts) -> int:
    """How many entries were written again or deleted. Where Chroma has lost collections, the worker
    fills a new generation."""
    generation = await _generation(runtime)
    try:
        found = await _Check(runtime, generation).run(None)
    except NoSuchCollection:
        async with holding_index(runtime):
            await lose(runtime, generation)
        return 0
    async with holding_index(runtime) as session:
        doubted = await session.values(
            str,
            "doubt_entries",
            generation=generation.generation,
            tenants=[place.tenant_id for place, _ in found.wrong],
            collections=[place.collection for place, _ in found.wrong],
            ids=[id_ for _, id_ in found.wrong],
            owner=_STRAY,
        )
    owners = list(found.behind | dict.fromkeys(doubted))
    pages = [owners[start : start + _PAGE] for start in range(0, len(owners), _PAGE)]
    return sum([await settle_now(runtime, page) for page in pages])


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
        for query in ("owners_of_index", "owners_with_entries"):
            async for owners in self._pages(query):
                self._found.behind |= await self._behind(owners)
        for tenant_id in await self._values("tenants_with_collections"):
            for name in CollectionName:
                await self._compare(Place(tenant_id, name), sample)
        return self._found

    async def _behind(self, owners: Sequence[str]) -> dict[str, None]:
        async with self._runtime.database.session() as session:
            suspects = await self._differing(session, owners)
            last = await newest(session)
        if not suspects:
            return {}
        if last is not None:  # the changes until now are applied, if a worker lives
            await wait_until(self._runtime.database, "index", last, _CATCH_UP_SECONDS)
        async with holding_index(self._runtime) as session:
            return await self._differing(session, list(suspects))

    async def _differing(self, session: Session, owners: Sequence[str]) -> dict[str, None]:
        keys = await difference(session, self._generation.generation, owners)
        return dict.fromkeys(key.owner for key in keys)

    async def _compare(self, place: Place, sample: int | None) -> None:
        in_chroma = self._generation.name_in_chroma(place.collection, place.tenant_id)
        [stand] = await self._values("count_entries", place)
        there = await self._runtime.vectors.size(in_chroma)
        self._found.postgres[place.collection] += stand
        self._found.chroma[place.collection] += there
        if sample is not None and stand == there:
            offset = random.randrange(max(there - sample, 0) + 1)
            ids = await self._values("sample_of_entries", place, limit=sample)
            ids += await self._runtime.vectors.hashes(in_chroma, offset=offset, limit=sample)
            if not await self._judge(place, in_chroma, ids):
                return
        async for page in self._pages("entries_of_collection", place):
            await self._judge(place, in_chroma, page)
        offset = 0
        while found := await self._runtime.vectors.hashes(in_chroma, offset=offset, limit=_PAGE):
            await self._judge(place, in_chroma, list(found))
            offset += len(found)

    async def _judge(self, place: Place, in_chroma: str, ids: list[str]) -> bool:
        """Whether any of these is wrong while nothing writes."""
        wrong = {}
        async with holding_index(self._runtime) as session:
            rows = await session.rows(_Standing, "entries_by_id", **self._at(place), ids=ids)
            there = await self._runtime.vectors.hashes(in_chroma, ids=ids) if ids else {}
        stand = {row.id: row.hash for row in rows}
        for id_ in ids:
            if id_ not in stand:
                if id_ in there:  # and was not deleted since it was seen
                    wrong[place, id_] = "is not in Postgres"
            elif stand[id_] is None:
                continue  # Announced and not written yet: a change that was begun comes again.
            elif id_ not in there:
                wrong[place, id_] = "is missing"
            elif stand[id_] != there[id_]:
                wrong[place, id_] = "was made of another text"
        self._found.wrong |= wrong
        return bool(wrong)

    def _at(self, place: Place | None) -> dict[str, Any]:
        return {
            "generation": self._generation.generation,
            "tenant_id": place and place.tenant_id,
            "collection": place and place.collection,
        }

    async def _values(self, query: str, place: Place | None = None, **more: Any) -> list[Any]:
        async with self._runtime.database.session() as session:
            return await session.values(object, query, **self._at(place), **more)

    async def _pages(self, query: str, place: Place | None = None) -> AsyncIterator[list[str]]:
        after = ""
        while page := await self._values(query, place, after=after, limit=_PAGE):
            yield page
            after = page[-1]
