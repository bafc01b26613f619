"""Events by the meaning of a query: the nearest narratives, as far as they are near, exist and
pass the filters.

Chroma knows nothing of filters here, since it would look at every entry. Where they leave few
events, the vectors of these are compared with the query one by one; else the nearest of all are
asked for, and Postgres says which of them pass.
"""

import asyncio
from dataclasses import dataclass

from memory_core.database import Row
from memory_core.embedding import Vector
from memory_core.events.filters import EventFilters
from memory_core.events.matching import Matches, Parameters, expected
from memory_core.events.typed import Asked
from memory_core.runtime import Runtime
from memory_core.vectors import CollectionName, Hit

_DENSE_HITS = 60
# When fewer than these are left by the filters, and the next narrative might be near as well, as
# many are asked for as should do, and so many at most.
_ENOUGH_HITS = 20
_MORE_HITS = 600
# Postgres may expect so many times as many events as there are.
_OVERESTIMATE = 10
# Narratives up to this cosine distance are taken to be about the question.
_NEAR = 0.72
# How near is near depends on the question: a short one is far from every narrative. Where its
# words are found at all, but there are only few matches, it is measured from the nearest narrative
# that the filters leave; without the words, the nearest may be as far as anything.
_FEW_FOUND = 10
_BEHIND_THE_NEAREST = 0.22
_FARTHEST = 0.95

# Nearest first, each with what Postgres says of it.
_Passing = list[tuple[Hit, Row]]


@dataclass(frozen=True, slots=True)
class _Nearest:
    """The narratives nearest to a query, whatever else they are."""

    vector: Vector
    hits: list[Hit]


class Meaning:
    """What a query means: asked of Chroma from the beginning, so that it answers while Postgres
    works."""

    def __init__(
        self, runtime: Runtime, query: str, filters: EventFilters, farthest: float | None
    ) -> None:
        """`farthest`: up to which cosine distance a narrative is taken to be about the query."""
        self._runtime, self._query = runtime, query
        self._superseded = filters.include_superseded
        self._near = _NEAR if farthest is None else farthest
        self._farthest = _FARTHEST if farthest is None else farthest
        self._filtered = filters != EventFilters(include_superseded=self._superseded)
        ask = self._embed if self._filtered else self._nearest
        self._coming: asyncio.Future[_Nearest] = asyncio.ensure_future(ask())

    def cancel(self) -> None:
        self._coming.cancel()

    async def passing(self, asked: Asked, filters: Parameters) -> _Passing:
        """The nearest events that exist and pass the filters."""
        if self._filtered:
            few = await self._few(asked, filters)
            if few is not None:
                hits = await self._compare(list(few))
                return [(hit, few[hit.id]) for hit in hits]
            self._coming = asyncio.ensure_future(self._nearest())
        return await self._those_that_pass((await self._coming).hits, asked, filters)

    async def meant(self, passing: _Passing, matches: Matches) -> list[Row]:
        """Events by their meaning, nearest first."""
        widest = self._farthest if matches.total else self._near
        found = _within(passing, widest)
        nearest = await self._coming
        hits, asked_for = nearest.hits, _DENSE_HITS
        if len(hits) == asked_for and hits[-1].distance <= self._near and len(found) < _ENOUGH_HITS:
            enough = 2 * asked_for * _ENOUGH_HITS // (len(found) + 1)
            hits = await self._ask(nearest.vector, min(enough, _MORE_HITS))
            more = await self._those_that_pass(hits, matches.asked, matches.parameters)
            found = _within(more, widest)
        if not found:
            return []
        limit = min(widest, found[0][0].distance + _BEHIND_THE_NEAREST)
        meant: list[Row] = []
        total = matches.total
        for hit, row in found[:_DENSE_HITS]:
            surely = hit.distance <= self._near
            if surely or (hit.distance <= limit and (row["has_words"] or total < _FEW_FOUND)):
                meant.append(row)
                total += not row["has_words"]
        return meant

    async def _embed(self) -> _Nearest:
        [vector] = await self._runtime.embedder.embed([self._query])
        return _Nearest(vector, [])

    async def _nearest(self) -> _Nearest:
        vector = (await self._embed()).vector
        return _Nearest(vector, await self._ask(vector, _DENSE_HITS))

    async def _ask(self, vector: Vector, limit: int) -> list[Hit]:
        return await self._runtime.vectors.query(
            CollectionName.EVENTS, vector, limit=limit, superseded=self._superseded
        )

    async def _compare(self, ids: list[str]) -> list[Hit]:
        vector = (await self._coming).vector
        return await self._runtime.vectors.compare(
            CollectionName.EVENTS, vector, ids, superseded=self._superseded
        )

    async def _few(self, asked: Asked, filters: Parameters) -> dict[str, Row] | None:
        """What passes the filters, by id; None if that is too much."""
        most = self._runtime.vectors.comparable
        async with self._runtime.database.session() as session:
            if await expected(session, filters) > _OVERESTIMATE * most:
                return None
            rows = await session.all(
                "few_events", asked=asked.words or None, limit=most + 1, **filters
            )
        return None if len(rows) > most else _by_id(rows, asked)

    async def _those_that_pass(
        self, hits: list[Hit], asked: Asked, filters: Parameters
    ) -> _Passing:
        ids = [hit.id for hit in hits if hit.distance <= self._farthest]
        if not ids:
            return []
        async with self._runtime.database.session() as session:
            rows = await session.all(
                "filter_events",
                ids=",".join(ids),
                asked=asked.words or None,
                **{**filters, "words": None},
            )
        by_id = _by_id(rows, asked)
        return [(hit, by_id[hit.id]) for hit in hits if hit.id in by_id]


def _by_id(rows: list[Row], asked: Asked) -> dict[str, Row]:
    """What the query excludes must not come back by its meaning."""
    return {row["event_id"]: row for row in rows if row["has_words"] or not asked.to_the_letter}


def _within(found: _Passing, distance: float) -> _Passing:
    return [(hit, row) for hit, row in found if hit.distance <= distance]
