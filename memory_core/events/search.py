"""Searching events: by words, by meaning, by who, what, when and where.

Full text over narratives and quotes, and vectors of narratives, each rank; reciprocal rank fusion
makes one ranking of them. Postgres has the last word on what exists.
"""

import asyncio
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from heapq import merge
from typing import Any, Literal
from uuid import UUID

from memory_core.database import Row, Session
from memory_core.embedding import Vector
from memory_core.events.names import Person, Resolution, resolve_name
from memory_core.events.reading import evidence_by_event
from memory_core.events.typed import Asked, understand
from memory_core.fusion import fuse
from memory_core.runtime import Runtime
from memory_core.vectors import CollectionName, Hit

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
    if query is None or not query.strip():
        async with runtime.database.session() as session:
            resolution = await _actor(session, filters)
            if resolution.candidates:
                return EventPage([], 0, candidates=resolution.candidates)
            parameters = filters.for_sql(_keys(filters, resolution))
            total = await _count(session, parameters)
            newest = await _newest(session, parameters, total, limit, offset)
            ids = [row["event_id"] for row in newest]
            return await _page(session, ids, total, include_evidence)
    # Chroma is asked first: it answers while Postgres works.
    (vector, hits), (resolution, words) = await asyncio.gather(
        _nearest(runtime, query, filters),
        _words_by_actor(runtime, query, filters, rank=sort == "relevance"),
    )
    if words is None:
        return EventPage([], 0, candidates=resolution.candidates)
    meant = await _meant(runtime, vector, hits, words, filters, farthest)
    total = words.total + sum(not row["has_words"] for row in meant)
    async with runtime.database.session() as session:
        if sort == "time":
            ids = await _by_time(session, words, meant, limit, offset)
        else:
            constant = runtime.settings.rrf_constant
            ids = await _by_relevance(session, words, meant, constant, total, limit, offset)
        return await _page(session, ids, total, include_evidence)


async def _actor(session: Session, filters: EventFilters) -> Resolution:
    return await resolve_name(session, filters.actor) if filters.actor else Resolution()


def _keys(filters: EventFilters, resolution: Resolution) -> list[str] | None:
    return resolution.keys if filters.actor else None


async def _words_by_actor(
    runtime: Runtime, query: str, filters: EventFilters, *, rank: bool
) -> tuple[Resolution, "_Words | None"]:
    """No words where it is not clear who is meant."""
    resolution = Resolution()
    if filters.actor:
        async with runtime.database.session() as session:
            resolution = await _actor(session, filters)
    if resolution.candidates:
        return resolution, None
    parameters = filters.for_sql(_keys(filters, resolution))
    return resolution, await _words(runtime, query, parameters, rank=rank)


async def _by_relevance(
    session: Session,
    words: "_Words",
    meant: list[Row],
    constant: int,
    total: int,
    limit: int,
    offset: int,
) -> list[UUID]:
    """What the words and the meaning rank; then the other matches, newest first."""
    rankings = {"full_text": words.ranked, "dense": [row["event_id"] for row in meant]}
    ranked = [item.key for item in fuse(rankings, constant=constant)]
    page = ranked[offset : offset + limit]
    if len(page) < limit and len(ranked) < total:
        rest = await _newest(
            session,
            words.parameters,
            words.total,
            limit - len(page),
            max(offset - len(ranked), 0),
            without=ranked,
            open_ended=words.asked.all_but is not None,
        )
        page += [row["event_id"] for row in rest]
    return page


async def _by_time(
    session: Session, words: "_Words", meant: list[Row], limit: int, offset: int
) -> list[UUID]:
    """The same matches, newest first: those by their words, and between them those by meaning."""
    others = sorted((row for row in meant if not row["has_words"]), key=_newest_first)
    # At most all the others come before: further back the page cannot begin.
    start = max(min(offset - len(others), words.total - 1), 0)
    matches = []
    if words.total:
        matches = await _newest(
            session,
            words.parameters,
            words.total,
            offset + limit - start,
            start,
            open_ended=words.asked.all_but is not None,
        )
    before = 0
    if start and matches:
        first = _newest_first(matches[0])
        before = sum(_newest_first(row) < first for row in others)
    merged = list(merge(matches, others[before:], key=_newest_first))
    begin = offset - start - before
    return [row["event_id"] for row in merged[begin : begin + limit]]


def _newest_first(row: Row) -> tuple[bool, timedelta, timedelta, UUID]:
    """As Postgres orders them."""
    time = row["event_time"]
    age = _LATEST - time if time is not None else timedelta(0)
    return time is None, age, _LATEST - row["created_at"], row["event_id"]


_LATEST = datetime.max.replace(tzinfo=UTC)


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


async def _nearest(runtime: Runtime, query: str, filters: EventFilters) -> tuple[Vector, list[Hit]]:
    [vector] = await runtime.embedder.embed([query])
    where = _where(_of_the_event(filters))
    return vector, await runtime.vectors.query(
        CollectionName.EVENTS, vector, limit=_DENSE_HITS, where=where
    )


async def _meant(
    runtime: Runtime,
    vector: Vector,
    hits: list[Hit],
    words: _Words,
    filters: EventFilters,
    farthest: float | None,
) -> list[Row]:
    """Events by their meaning, nearest first: those that exist, pass the filters and are near."""
    near = _NEAR if farthest is None else farthest
    widest = _FARTHEST if farthest is None and words.total else near
    found = await _passing(runtime, hits, words, widest)
    asked_for = _DENSE_HITS
    for where in _wider(filters):
        if len(found) >= _ENOUGH_HITS or len(hits) < asked_for or hits[-1].distance > near:
            break
        asked_for = _MORE_HITS
        hits = await runtime.vectors.query(
            CollectionName.EVENTS, vector, limit=asked_for, where=where
        )
        found = await _passing(runtime, hits, words, widest)
    if not found:
        return []
    reach = min(widest, found[0][0].distance + _BEHIND_THE_NEAREST)
    meant: list[Row] = []
    total = words.total
    for hit, row in found[:_DENSE_HITS]:
        surely = hit.distance <= near
        if surely or (hit.distance <= reach and (row["has_words"] or total < _FEW_FOUND)):
            meant.append(row)
            total += not row["has_words"]
    return meant


async def _passing(
    runtime: Runtime, hits: list[Hit], words: _Words, widest: float
) -> list[tuple[Hit, Row]]:
    ids = [UUID(hit.id) for hit in hits if hit.distance <= widest]
    if not ids:
        return []
    async with runtime.database.session() as session:
        rows = await session.all(
            "filter_events",
            ids=ids,
            asked=words.asked.words or None,
            **{**words.parameters, "words": None},
        )
    by_id = {
        str(row["event_id"]): row
        for row in rows
        if row["has_words"] or not words.asked.to_the_letter
    }
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


async def _page(session: Session, ids: list[UUID], total: int, include_evidence: bool) -> EventPage:
    wanted = [("events_by_id", {"ids": ids})]
    if include_evidence:
        wanted.append(("evidence_of_events", {"ids": ids}))
    rows, *proofs = await session.several(*wanted) if ids else [[]]
    by_id = {row["event_id"]: row for row in rows}
    events = [by_id[id_] for id_ in ids if id_ in by_id]
    evidence = evidence_by_event(events, proofs[0]) if proofs else {}
    return EventPage(events, total, evidence)
