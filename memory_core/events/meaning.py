"""Events by the meaning of a query: the nearest narratives, as far as they are near, exist and
pass the filters."""

import asyncio
from dataclasses import dataclass
from typing import Any

from memory_core.database import Row
from memory_core.embedding import Vector
from memory_core.events.filters import EventFilters
from memory_core.events.matching import Matches, Parameters
from memory_core.events.typed import Asked
from memory_core.runtime import Runtime
from memory_core.vectors import CollectionName, Hit

_DENSE_HITS = 60
# When fewer than these are left by the filters, and the next narrative might be near as well, so
# many are asked for.
_ENOUGH_HITS = 20
_MORE_HITS = 600
# Narratives up to this cosine distance are taken to be about the question.
_NEAR = 0.72
# How near is near depends on the question: a short one is far from every narrative. Where its
# words are found at all, but there are only few matches, it is measured from the nearest narrative
# that the filters leave; without the words, the nearest may be as far as anything.
_FEW_FOUND = 10
_BEHIND_THE_NEAREST = 0.22
_FARTHEST = 0.95

_Passing = list[tuple[Hit, Row]]


@dataclass(frozen=True, slots=True)
class Reach:
    """Up to which cosine distances a narrative is taken to be about the query: surely, and where
    its words are found as well."""

    near: float
    farthest: float

    @classmethod
    def of(cls, farthest: float | None) -> "Reach":
        return cls(_NEAR, _FARTHEST) if farthest is None else cls(farthest, farthest)


@dataclass(frozen=True, slots=True)
class Nearest:
    """The narratives nearest to a query, whatever else they are."""

    vector: Vector
    hits: list[Hit]


async def nearest(runtime: Runtime, query: str, filters: EventFilters) -> Nearest:
    [vector] = await runtime.embedder.embed([query])
    where = _where(_of_the_event(filters))
    hits = await runtime.vectors.query(
        CollectionName.EVENTS, vector, limit=_DENSE_HITS, where=where
    )
    return Nearest(vector, hits)


async def passing(
    runtime: Runtime,
    coming: asyncio.Future[Nearest],
    asked: Asked,
    parameters: Parameters,
    reach: Reach,
) -> _Passing:
    """Those that exist and pass the filters."""
    return await _passing(runtime, (await coming).hits, asked, parameters, reach)


async def meant(
    runtime: Runtime,
    nearest: Nearest,
    found: _Passing,
    matches: Matches,
    filters: EventFilters,
    reach: Reach,
) -> list[Row]:
    """Events by their meaning, nearest first."""
    widest = reach.farthest if matches.total else reach.near
    hits, asked_for = nearest.hits, _DENSE_HITS
    found = _within(found, widest)
    for where in _wider(filters):
        if len(found) >= _ENOUGH_HITS or len(hits) < asked_for or hits[-1].distance > reach.near:
            break
        asked_for = _MORE_HITS
        hits = await runtime.vectors.query(
            CollectionName.EVENTS, nearest.vector, limit=asked_for, where=where
        )
        passing = await _passing(runtime, hits, matches.asked, matches.parameters, reach)
        found = _within(passing, widest)
    if not found:
        return []
    limit = min(widest, found[0][0].distance + _BEHIND_THE_NEAREST)
    meant: list[Row] = []
    total = matches.total
    for hit, row in found[:_DENSE_HITS]:
        surely = hit.distance <= reach.near
        if surely or (hit.distance <= limit and (row["has_words"] or total < _FEW_FOUND)):
            meant.append(row)
            total += not row["has_words"]
    return meant


def _within(found: _Passing, distance: float) -> _Passing:
    return [(hit, row) for hit, row in found if hit.distance <= distance]


async def _passing(
    runtime: Runtime, hits: list[Hit], asked: Asked, parameters: Parameters, reach: Reach
) -> _Passing:
    ids = [hit.id for hit in hits if hit.distance <= reach.farthest]
    if not ids:
        return []
    async with runtime.database.session() as session:
        rows = await session.all(
            "filter_events",
            ids=",".join(ids),
            asked=asked.words or None,
            **{**parameters, "words": None},
        )
    by_id = {row["event_id"]: row for row in rows if row["has_words"] or not asked.to_the_letter}
    return [(hit, by_id[hit.id]) for hit in hits if hit.id in by_id]


def _wider(filters: EventFilters) -> list[dict[str, Any] | None]:
    """How to ask for more than the nearest: first for more of the same, then without superseded
    events. That one comes last: Chroma looks at the marks of all entries."""
    conditions = _of_the_event(filters)
    asked = [_where(conditions)]
    if not filters.include_superseded:
        # Entries that were never marked may be latest.
        asked.append(_where([*conditions, {"latest": {"$ne": False}}]))
    return asked


def _of_the_event(filters: EventFilters) -> list[dict[str, Any]]:
    return [
        {name: value}
        for name in ("category", "artifact_uid")
        if (value := getattr(filters, name)) is not None
    ]


def _where(conditions: list[dict[str, Any]]) -> dict[str, Any] | None:
    if len(conditions) > 1:
        return {"$and": conditions}
    return conditions[0] if conditions else None
