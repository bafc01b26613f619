"""Comparing Chroma with Postgres, and repairing the difference.

There are two comparisons: the expected entries with `index_entry`, and `index_entry` with Chroma
itself. Each runs while the index is not being written; the first one waits until all earlier
changes are applied, so that a pending change is no fault. A repair only corrects `index_entry`; the
one writer does the rest.
"""

import random
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from memory_core.index.chroma import NoSuchCollection
from memory_core.index.expected import difference
from memory_core.index.generation import CollectionName, Generation, serving
from memory_core.index.store import IndexParts
from memory_core.index.writer import holding_index, lose, settle_now
from memory_core.kernel.database import Session
from memory_core.kernel.errors import ChromaUnavailable
from memory_core.log.log_reader import newest
from memory_core.log.projection_wait import wait_until

_PAGE = 500
_CATCH_UP_SECONDS = 10.0
# The owner of entries without an artifact or memory: it has no expected entries.
_STRAY = "(unknown)"


@dataclass(frozen=True, slots=True)
class TenantCollection:
    """A collection of one tenant."""

    tenant_id: UUID
    collection: str


@dataclass(slots=True)
class IndexComparison:
    """Counts by collection over all tenants, and the differences: in Postgres by owner, in Chroma
    by id."""

    postgres: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CollectionName, 0))
    chroma: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CollectionName, 0))
    behind: dict[str, None] = field(default_factory=dict)  # owners that are not up to date
    wrong: dict[tuple[TenantCollection, str], str] = field(default_factory=dict)

    def differences(self) -> Iterable[str]:
        yield from (f"entries of {owner} are not up to date" for owner in self.behind)
        for (place, id_), problem in self.wrong.items():
            yield f"{place.collection}: {id_} {problem}"


@dataclass(frozen=True, slots=True)
class _Standing:
    id: str
    hash: str | None


async def compare(runtime: IndexParts, *, sample: int | None = None) -> IndexComparison:
    """With `sample`: compare the counts and this many entries of either side; if these differ,
    compare all."""
    return await _Check(runtime, await _generation(runtime)).run(sample)


async def repair(runtime: IndexParts) -> int:
    """Returns how many entries were written again or deleted. If Chroma has lost collections, the
    worker fills a new generation."""
    generation = await _generation(runtime)
    try:
        comparison = await _Check(runtime, generation).run(None)
    except NoSuchCollection:
        async with holding_index(runtime):
            await lose(runtime, generation)
        return 0
    async with holding_index(runtime) as session:
        doubted = await session.values(
            str,
            "doubt_entries",
            generation=generation.generation,
            tenants=[place.tenant_id for place, _ in comparison.wrong],
            collections=[place.collection for place, _ in comparison.wrong],
            ids=[id_ for _, id_ in comparison.wrong],
            owner=_STRAY,
        )
    owners = list(comparison.behind | dict.fromkeys(doubted))
    pages = [owners[start : start + _PAGE] for start in range(0, len(owners), _PAGE)]
    return sum([await settle_now(runtime, page) for page in pages])


async def _generation(runtime: IndexParts) -> Generation:
    async with runtime.database.session() as session:
        generation = await serving(session)
    if generation is None:
        raise ChromaUnavailable(
            "The index is not made yet. The worker makes it: is one running (`mcp-memory up`)?"
        )
    return generation


class _Check:
    def __init__(self, runtime: IndexParts, generation: Generation) -> None:
        self._runtime, self._generation = runtime, generation
        self._found = IndexComparison()

    async def run(self, sample: int | None) -> IndexComparison:
        for query in ("owners_of_index", "owners_with_entries"):
            async for owners in self._pages(query):
                self._found.behind |= await self._behind(owners)
        for tenant_id in await self._values("tenants_with_collections"):
            for name in CollectionName:
                await self._compare(TenantCollection(tenant_id, name), sample)
        return self._found

    async def _behind(self, owners: Sequence[str]) -> dict[str, None]:
        async with self._runtime.database.session() as session:
            suspects = await self._differing(session, owners)
            last = await newest(session)
        if not suspects:
            return {}
        if last is not None:  # a live worker has now applied all earlier changes
            await wait_until(self._runtime.database, "index", last, _CATCH_UP_SECONDS)
        async with holding_index(self._runtime) as session:
            return await self._differing(session, list(suspects))

    async def _differing(self, session: Session, owners: Sequence[str]) -> dict[str, None]:
        keys = await difference(session, self._generation.generation, owners)
        return dict.fromkeys(key.owner for key in keys)

    async def _compare(self, place: TenantCollection, sample: int | None) -> None:
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
        while hashes := await self._runtime.vectors.hashes(in_chroma, offset=offset, limit=_PAGE):
            await self._judge(place, in_chroma, list(hashes))
            offset += len(hashes)

    async def _judge(self, place: TenantCollection, in_chroma: str, ids: list[str]) -> bool:
        """Whether any of these entries is wrong while the index is not being written."""
        wrong = {}
        async with holding_index(self._runtime) as session:
            rows = await session.rows(_Standing, "entries_by_id", **self._at(place), ids=ids)
            there = await self._runtime.vectors.hashes(in_chroma, ids=ids) if ids else {}
        stand = {row.id: row.hash for row in rows}
        for id_ in ids:
            if id_ not in stand:
                if id_ in there:  # still there, so not deleted since it was listed
                    wrong[place, id_] = "is not in Postgres"
            elif stand[id_] is None:
                continue  # Announced but not written yet: its change will be applied again.
            elif id_ not in there:
                wrong[place, id_] = "is missing"
            elif stand[id_] != there[id_]:
                wrong[place, id_] = "was made of another text"
        self._found.wrong |= wrong
        return bool(wrong)

    def _at(self, place: TenantCollection | None) -> dict[str, Any]:
        return {
            "generation": self._generation.generation,
            "tenant_id": place and place.tenant_id,
            "collection": place and place.collection,
        }

    async def _values(
        self, query: str, place: TenantCollection | None = None, **more: Any
    ) -> list[Any]:
        async with self._runtime.database.session() as session:
            return await session.values(object, query, **self._at(place), **more)

    async def _pages(
        self, query: str, place: TenantCollection | None = None
    ) -> AsyncIterator[list[str]]:
        after = ""
        while page := await self._values(query, place, after=after, limit=_PAGE):
            yield page
            after = page[-1]
