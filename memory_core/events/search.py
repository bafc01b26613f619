"""Searching events: by words, by meaning, by who, what, when and where.

Full text over narratives and quotes, and vectors of narratives, each rank; reciprocal rank fusion
makes one ranking of them. Postgres has the last word on what exists.
"""

import asyncio
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from memory_core.database import Row, Session
from memory_core.events.names import Person, resolve_name
from memory_core.events.reading import evidence_by_event
from memory_core.events.typed import Asked, understand
from memory_core.fusion import fuse
from memory_core.runtime import Runtime
from memory_core.vectors import CollectionName

Sort = Literal["relevance", "time"]
# How many of the newest matches are ranked by their words. All matches of a rare word; of a
# common one the newest, after which the others follow in the order of time.
_RANKED_MATCHES = 300
# Finding the newest few of many matches: going back in time takes the longer the fewer matches
# there are, looking at all of them the longer the more. They take the same time at about this
# many, times the square root of how many are wanted.
_FEW_MATCHES = 4_000
# How far back the newest are looked for when it is not known how many matches there are: far enough
# for those of which there are not few.
_LOOKED_BACK = 20_000
# Of more than this many, it pays to count them while the newest are found.
_MANY_MATCHES = 3_000
_DENSE_HITS = 60
# Narratives farther away than this (cosine distance) have nothing to do with the question. Among
# events that a filter has already narrowed down, what is less near may still be meant.
_DENSE_DISTANCE = 0.72
_DENSE_DISTANCE_NARROWED = 0.95


@dataclass(frozen=True, slots=True)
class EventFilters:
    category: str | None = None
    time_from: datetime | None = None
    time_to: datetime | None = None
    artifact_uid: str | None = None
    actor: str | None = None
    subject: str | None = None
    min_confidence: float = 0.0
    artifact_type: str | None = None
    source_system: str | None = None
    include_superseded: bool = False

    def for_sql(self, actor_keys: list[str] | None) -> dict[str, Any]:
        return {
            "words": None,
            "facets": self._facets() or None,
            "actor_facets": actor_facets(actor_keys),
            "time_from": self.time_from,
            "time_to": self.time_to,
            "subject": self.subject,
            "min_confidence": self.min_confidence,
            "include_superseded": self.include_superseded,
        }

    def _facets(self) -> list[str]:
        """The marks of `facets_of_event` that an event must have."""
        wanted = {
            "category": self.category,
            "artifact": self.artifact_uid,
            "type": self.artifact_type,
            "source": self.source_system,
        }
        return [f"{name}:{value}" for name, value in wanted.items() if value is not None]


def actor_facets(keys: list[str] | None) -> list[str] | None:
    """The marks of `facets_of_event` for these actors, of which an event must have one."""
    return None if keys is None else [f"actor:{key}" for key in keys]


@dataclass(frozen=True, slots=True)
class EventPage:
    events: list[Row]
    total: int
    evidence: dict[UUID, list[Row]] = field(default_factory=dict)
    # When `actor` may mean several people: who. Nothing is guessed, so there are no events then.
    candidates: list[Person] = field(default_factory=list)


async def search_events(
    runtime: Runtime,
    query: str | None,
    filters: EventFilters,
    *,
    limit: int,
    offset: int = 0,
    sort: Sort = "relevance",
    include_evidence: bool = True,
    farthest: float | None = None,
) -> EventPage:
    """`farthest`: the cosine distance up to which a narrative is taken to be about the query."""
    actor_keys: list[str] | None = None
    if filters.actor:
        async with runtime.database.session() as session:
            resolution = await resolve_name(session, filters.actor)
        if resolution.candidates:
            return EventPage([], 0, candidates=resolution.candidates)
        actor_keys = resolution.keys
    parameters = filters.for_sql(actor_keys)
    if query is None or not query.strip():
        async with runtime.database.session() as session:
            total = await _count(session, parameters)
            ids = _ids(await _newest(session, parameters, total, limit, offset))
            return await _page(session, ids, total, include_evidence)
    words, dense = await asyncio.gather(
        _words(runtime, query, parameters, rank=sort == "relevance"),
        _dense(runtime, query, filters, farthest),
    )
    async with runtime.database.session() as session:
        if sort == "time" and words.total:
            ids = _ids(
                await _newest(
                    session,
                    words.parameters,
                    words.total,
                    limit,
                    offset,
                    open_ended=words.asked.all_but is not None,
                )
            )
            return await _page(session, ids, words.total, include_evidence)
        ids, total = await _fused(session, words, dense, runtime.settings.rrf_constant, sort)
        if sort == "time" or len(ids) == total:
            return await _page(session, ids[offset : offset + limit], total, include_evidence)
        page = ids[offset : offset + limit]
        if len(page) < limit:
            rest = await _newest(
                session,
                words.parameters,
                words.total,
                limit - len(page),
                max(offset - len(ids), 0),
                without=ids,
                open_ended=words.asked.all_but is not None,
            )
            page += _ids(rest)
        return await _page(session, page, total, include_evidence)


def _ids(rows: list[Row]) -> list[UUID]:
    return [row["event_id"] for row in rows]


async def _count(session: Session, parameters: dict[str, Any]) -> int:
    row = await session.one("count_events", **parameters)
    assert row is not None
    total: int = row["total"]
    return total


async def _newest(
    session: Session,
    parameters: dict[str, Any],
    total: int,
    limit: int,
    offset: int = 0,
    *,
    without: Iterable[UUID] = (),
    open_ended: bool = False,
) -> list[Row]:
    """The newest of so many matches, without those that are ranked before them."""
    few = _few(parameters, total, limit + offset, open_ended)
    return await session.all(
        "newest_of_few" if few else "newest_of_many",
        limit=limit,
        offset=offset,
        without=list(without),
        **parameters,
    )


def _few(parameters: dict[str, Any], total: int, wanted: int, open_ended: bool) -> bool:
    """Whether an index should lead to all matches. It can when some filter is about what the row of
    an entry does not have; words that must not be there lead nowhere."""
    names = ["facets", "actor_facets", "subject"] + ([] if open_ended else ["words"])
    indexed = any(parameters[name] for name in names)
    return indexed and total <= _FEW_MATCHES * math.sqrt(wanted)


@dataclass(frozen=True, slots=True)
class _Words:
    """What the query says to Postgres, how many events match it, and the newest of them."""

    asked: Asked
    # The filters of the search, and the words as one of them.
    parameters: dict[str, Any]
    total: int
    ranked: list[UUID]


async def _words(runtime: Runtime, query: str, parameters: dict[str, Any], *, rank: bool) -> _Words:
    async with runtime.database.session() as session:
        asked = await understand(
            session, query, include_superseded=parameters["include_superseded"]
        )
        if not asked.words:
            return _Words(asked, parameters, 0, [])
        parameters = {**parameters, "words": asked.words}
        expected = await _expected(session, parameters)
        if expected <= _MANY_MATCHES:
            limit = _RANKED_MATCHES if rank else 1
            rows = await session.all("newest_with_total", limit=limit, **parameters)
            total = rows[0]["total"] if rows else 0
            ranked = await _ranked(session, asked, rows) if rank else []
            return _Words(asked, parameters, total, ranked)

    async def newest() -> list[UUID]:
        if not rank:
            return []
        async with runtime.database.session() as session:
            return await _ranked(
                session, asked, await _to_rank(session, asked, parameters, expected)
            )

    # Each with a connection of its own, which nobody may wait for while holding another one.
    total, ranked = await asyncio.gather(_total(runtime, asked, parameters), newest())
    return _Words(asked, parameters, total, ranked)


async def _to_rank(
    session: Session, asked: Asked, parameters: dict[str, Any], expected: int
) -> list[Row]:
    """The newest of as many matches as Postgres expects, which may be wrong about words that seldom
    or never stand together."""
    many, open_ended = _RANKED_MATCHES, asked.all_but is not None
    if not _few(parameters, expected, many, open_ended):
        rows = await session.all("newest_of_last", last=_LOOKED_BACK, limit=many, **parameters)
        if len(rows) == many or open_ended:
            return rows
        expected = 0
    return await _newest(session, parameters, expected, many, open_ended=open_ended)


async def _total(runtime: Runtime, asked: Asked, parameters: dict[str, Any]) -> int:
    async def count(words: str | None) -> int:
        async with runtime.database.session() as session:
            return await _count(session, {**parameters, "words": words})

    if asked.all_but is None:
        return await count(asked.words)
    every, others = await asyncio.gather(count(None), count(asked.all_but))
    return every - others


async def _ranked(session: Session, asked: Asked, rows: list[Row]) -> list[UUID]:
    if not rows:
        return []
    ranked = await session.all(
        "rank_by_words",
        ids=[row["event_id"] for row in rows],
        words=asked.words,
        each_word=list(asked.each_word),
    )
    return [row["event_id"] for row in ranked]


async def _expected(session: Session, parameters: dict[str, Any]) -> int:
    row = await session.one("expected_matches", **parameters)
    assert row is not None
    rows: int = row["QUERY PLAN"][0]["Plan"]["Plan Rows"]
    return rows


async def _dense(
    runtime: Runtime, query: str, filters: EventFilters, farthest: float | None
) -> list[str]:
    [vector] = await runtime.embedder.embed([query])
    hits = await runtime.vectors.query(
        CollectionName.EVENTS, vector, limit=_DENSE_HITS, where=_where(filters)
    )
    if farthest is None:
        narrowed = filters.category is not None or filters.artifact_uid is not None
        farthest = _DENSE_DISTANCE_NARROWED if narrowed else _DENSE_DISTANCE
    return [hit.id for hit in hits if hit.distance <= farthest]


def _where(filters: EventFilters) -> dict[str, Any] | None:
    conditions = [
        {name: value}
        for name in ("category", "artifact_uid")
        if (value := getattr(filters, name)) is not None
    ]
    if len(conditions) > 1:
        return {"$and": conditions}
    return conditions[0] if conditions else None


async def _fused(
    session: Session, words: _Words, dense: list[str], constant: int, sort: Sort
) -> tuple[list[UUID], int]:
    """What the words and the meaning rank, and how many there are with those left unranked."""
    rows = []
    if dense:
        rows = await session.all(
            "filter_events",
            ids=[UUID(id_) for id_ in dense],
            asked=words.parameters["words"],
            **{**words.parameters, "words": None},
        )
    has_words = {
        str(row["event_id"]): row["has_words"]
        for row in rows
        if row["has_words"] or not words.asked.to_the_letter
    }
    rankings = {
        "full_text": [str(id_) for id_ in words.ranked],
        "dense": [id_ for id_ in dense if id_ in has_words],
    }
    ranked = [UUID(item.key) for item in fuse(rankings, constant=constant)]
    if sort == "time":
        events = sorted(await session.all("events_by_id", ids=ranked), key=_newest_first)
        ranked = [row["event_id"] for row in events]
    return ranked, words.total + sum(not has for has in has_words.values())


def _newest_first(row: Row) -> tuple[bool, float]:
    time = row["event_time"]
    return time is None, -time.timestamp() if time else 0.0


async def _page(session: Session, ids: list[UUID], total: int, include_evidence: bool) -> EventPage:
    wanted = [("events_by_id", {"ids": ids})]
    if include_evidence:
        wanted.append(("evidence_of_events", {"ids": ids}))
    rows, *proofs = await session.several(*wanted) if ids else [[]]
    by_id = {row["event_id"]: row for row in rows}
    events = [by_id[id_] for id_ in ids if id_ in by_id]
    evidence = evidence_by_event(events, proofs[0]) if proofs else {}
    return EventPage(events, total, evidence)


async def matching_ids(
    runtime: Runtime, query: str, filters: EventFilters, *, limit: int, farthest: float
) -> list[UUID]:
    """The best events for a question, for tools that then look at them otherwise."""
    page = await search_events(
        runtime, query, filters, limit=limit, include_evidence=False, farthest=farthest
    )
    return [row["event_id"] for row in page.events]
