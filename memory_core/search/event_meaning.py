"""Events by the meaning of a query: the nearest narratives that are near enough, exist and pass the
filters.

Chroma is not given filters here, since it would look at every entry. If the filters leave few
events, their vectors are compared with the query one by one; if they leave some thousands, the
query to Chroma names them; otherwise the nearest of all are requested, and Postgres says which of
them pass.
"""

import asyncio
from dataclasses import dataclass

from memory_core.embedding import Vector
from memory_core.index.generation import CollectionName
from memory_core.index.store import Hit
from memory_core.kernel.ids import is_uuid
from memory_core.runtime import Runtime
from memory_core.search.event_filters import EventFilters
from memory_core.search.event_matching import Dated, Matches, Parameters
from memory_core.search.query_text import Asked
from memory_core.search.similarity import LEAST_SIMILARITY

DENSE_HITS = 60
# How many events should pass the filters. As many of the nearest are requested as that should need,
# at most MORE_HITS.
_ENOUGH_HITS = 20
MORE_HITS = 600
# How many ids a request to Chroma may name. If filters leave more, the nearest are requested, at
# most MOST_HITS.
_NAMED = 10_000
MOST_HITS = 3_000
# The planner's row estimate can be this many times too high.
_OVERESTIMATE = 3
# Narratives up to this cosine distance count as relevant, even without the query's words.
NEAR = 1 - LEAST_SIMILARITY
# If a filter says what is wanted (a category, a person, a subject, a document) and few of these
# events match the words, other events count as well, if they are not much farther than the nearest.
# Without such a filter they would be noise.
_FEW_FOUND = 10
_BEHIND_THE_NEAREST = 0.22
FARTHEST = 0.95


@dataclass(frozen=True, slots=True)
class Near(Dated):
    """An event that is near in meaning."""

    has_words: bool


@dataclass(frozen=True, slots=True)
class Meant:
    event: Near
    cosine: float


# Nearest first, each with its row from Postgres.
Passing = list[tuple[Hit, Near]]


class Meaning:
    """The meaning of a query. Chroma is asked at the start, so that it answers while Postgres
    works."""

    def __init__(
        self, runtime: Runtime, query: str, filters: EventFilters, farthest: float | None
    ) -> None:
        """`farthest`: the maximum cosine distance of a relevant narrative."""
        self._runtime, self._query = runtime, query
        self._superseded = filters.include_superseded
        self._near = NEAR if farthest is None else farthest
        self._farthest = FARTHEST if farthest is None else farthest
        self._vector = asyncio.ensure_future(self._embed())
        # The cosine of the farthest narrative that was looked at: others are no nearer.
        self.lowest = 0.0
        # How many of the nearest were requested without filters; none yet if there are filters.
        self._asked_for = DENSE_HITS
        self._hits: asyncio.Future[list[Hit]] | None = None
        # How many events pass the filters, by Postgres' estimate. A document has few events.
        self._likely: int | None = None
        self._in_document = filters.artifact_uid is not None
        self._says_what = any(
            (filters.category, filters.actor, filters.subject, filters.artifact_uid)
        )
        self._filtered = filters != EventFilters(include_superseded=self._superseded)
        if not self._filtered:
            self._hits = asyncio.ensure_future(self._nearest(DENSE_HITS))

    def cancel(self) -> None:
        for task in (self._vector, self._hits):
            if task is not None and not task.cancel() and not task.cancelled():
                task.exception()  # its answer is no longer needed

    async def passing(self, asked: Asked, filters: Parameters) -> Passing:
        """The nearest events that exist and pass the filters."""
        if self._hits is None:
            few, enough = await self._few(asked, filters)
            if few is not None:
                compared = await self._compare(list(few))
                return [(hit, few[hit.id]) for hit in compared]
            if enough > MORE_HITS and (passing := await self._named(asked, filters)) is not None:
                return passing
            self._asked_for = min(max(enough, DENSE_HITS), MORE_HITS)
            self._hits = asyncio.ensure_future(self._nearest(self._asked_for))
        return await self._those_that_pass(await self._hits, asked, filters)

    async def meant(self, passing: Passing, matches: Matches) -> list[Meant]:
        """Events by their meaning, nearest first."""
        near = self._about(passing, matches.total)
        if len(near) < _ENOUGH_HITS and await self._may_be_more():
            more = await self._more(len(near), matches.asked, matches.parameters)
            near = self._about(more, matches.total) if more is not None else near
        if passing:
            self.lowest = 1.0 - passing[-1][0].distance
        return [Meant(row, 1.0 - hit.distance) for hit, row in near[:DENSE_HITS]]

    def _about(self, passing: Passing, matches: int) -> Passing:
        """Filters only add to what is near enough: what is found without them is found with those
        that it passes."""
        widest = self._near
        if matches and self._says_what and passing:
            widest = min(self._farthest, passing[0][0].distance + _BEHIND_THE_NEAREST)
        about, total = [], matches
        for hit, row in passing:
            is_near = hit.distance <= self._near
            if row.has_words or is_near or (hit.distance <= widest and total < _FEW_FOUND):
                about.append((hit, row))
                total += not row.has_words
        return about

    async def _embed(self) -> Vector:
        [vector] = await self._runtime.embedder.embed([self._query])
        return vector

    async def _nearest(self, number: int) -> list[Hit]:
        return await self._runtime.vectors.query(
            CollectionName.EVENTS, await self._vector, limit=number
        )

    async def _may_be_more(self) -> bool:
        """Whether the next narrative might be near as well."""
        if self._hits is None:
            return False
        hits = await self._hits
        return len(hits) == self._asked_for and hits[-1].distance <= self._near

    async def _more(self, passing_so_far: int, asked: Asked, filters: Parameters) -> Passing | None:
        """Used when too few of the nearest pass; None if there are no more to request."""
        if (named := await self._named(asked, filters)) is not None:
            return named
        enough = min(self._asked_for * 2 * _ENOUGH_HITS // (passing_so_far + 1), MORE_HITS)
        # A query with operators leaves few events, however many are requested.
        most = MOST_HITS if self._filtered and not asked.to_the_letter else enough
        if most <= self._asked_for:
            return None
        return await self._those_that_pass(await self._nearest(most), asked, filters)

    async def _named(self, asked: Asked, filters: Parameters) -> Passing | None:
        """The nearest of all that pass the filters; None if these are too many, or some have no
        vector, as superseded ones."""
        if self._superseded or self._likely is None or self._likely > _NAMED:
            return None
        self._likely = None  # once is enough
        async with self._runtime.database.session() as session:
            ids = await session.values(str, "ids_passing", limit=_NAMED + 1, **_wordless(filters))
        if len(ids) > _NAMED:
            return None
        hits = await self._runtime.vectors.among(
            CollectionName.EVENTS,
            await self._vector,
            ids,
            limit=DENSE_HITS,
        )
        return None if hits is None else await self._those_that_pass(hits, asked, filters)

    async def _compare(self, ids: list[str]) -> list[Hit]:
        return await self._runtime.vectors.compare(CollectionName.EVENTS, await self._vector, ids)

    async def _few(self, asked: Asked, filters: Parameters) -> tuple[dict[str, Near] | None, int]:
        """The events that pass the filters, by id, if there are few; and how many of the nearest
        are needed so that enough pass."""
        most = self._runtime.vectors.comparable
        async with self._runtime.database.session() as session:
            if not self._in_document:
                self._likely = await session.expect("expected_matches", **filters)
            if self._likely is None or self._likely <= _OVERESTIMATE * most:
                rows = await session.rows(
                    Near, "few_events", asked=asked.words or None, limit=most + 1, **filters
                )
                if len(rows) <= most:
                    return _by_id(rows, asked), 0
            every = await session.value(int, "number_of_events")
            if self._likely is None:
                self._likely = await session.expect("expected_matches", **filters)
        return None, 2 * _ENOUGH_HITS * every // max(self._likely, 1)

    async def _those_that_pass(self, hits: list[Hit], asked: Asked, filters: Parameters) -> Passing:
        # An id that is no UUID is not one of our events.
        near = (hit.id for hit in hits if hit.distance <= self._farthest)
        ids = [id_ for id_ in near if is_uuid(id_)]
        if not ids:
            return []
        async with self._runtime.database.session() as session:
            rows = await session.rows(
                Near,
                "filter_events",
                ids=",".join(ids),
                asked=asked.words or None,
                **_wordless(filters),
            )
        by_id = _by_id(rows, asked)
        return [(hit, by_id[hit.id]) for hit in hits if hit.id in by_id]


def _by_id(rows: list[Near], asked: Asked) -> dict[str, Near]:
    """By id, without events that the query excludes: they must not return by their meaning."""
    return {row.event_id: row for row in rows if row.has_words or not asked.to_the_letter}


def _wordless(filters: Parameters) -> Parameters:
    return {**filters, "words": None, "letters": None}
