"""Searching events: by words, by meaning, by who, what, when and where.

Full text over narratives and quotes, and vectors of narratives, each rank; reciprocal rank fusion
makes one ranking of them. Postgres has the last word on what exists.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import combinations
from typing import Any, Literal
from uuid import UUID

from memory_core.database import Row, Session
from memory_core.events.names import Person, resolve_name
from memory_core.events.reading import evidence_of
from memory_core.fusion import fuse
from memory_core.runtime import Runtime
from memory_core.vectors import CollectionName

Sort = Literal["relevance", "time"]
# How many of the newest matches are ranked by their words. All matches of a rare word; of a
# common one the newest, after which the others follow in the order of time.
_RANKED_MATCHES = 500
# Up to so many matches are all read to find the newest; of more, the newest are soon met by
# going back in time.
_FEW_MATCHES = 60_000
_DENSE_HITS = 60
# Narratives farther away than this (cosine distance) have nothing to do with the question. Among
# events that a filter has already narrowed down, what is less near may still be meant.
_DENSE_DISTANCE = 0.72
_DENSE_DISTANCE_NARROWED = 0.95
# With more words than this, two of them in common will do.
_MOST_WORDS_COMBINED = 5


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
    async with _session(runtime) as session:
        actor_keys: list[str] | None = None
        if filters.actor:
            resolution = await resolve_name(session, filters.actor)
            if resolution.candidates:
                return EventPage([], 0, candidates=resolution.candidates)
            actor_keys = resolution.keys
        parameters = filters.for_sql(actor_keys)
        if query is None or not query.strip():
            events, total = await _by_time(session, parameters, limit, offset)
            return await _page(session, events, total, include_evidence)
    words, dense = await asyncio.gather(
        _words(runtime, query, parameters, rank=sort == "relevance"),
        _dense(runtime, query, filters, farthest),
    )
    async with _session(runtime) as session:
        if sort == "time" and words.total:
            events = await _matches_by_time(session, words, parameters, [], limit, offset)
            return await _page(session, events, words.total, include_evidence)
        events, total = await _fused(
            session, words, dense, parameters, runtime.settings.rrf_constant, limit, offset, sort
        )
        return await _page(session, events, total, include_evidence)


@asynccontextmanager
async def _session(runtime: Runtime) -> AsyncIterator[Session]:
    async with runtime.database.transaction() as session:
        await session.one("tune_for_search")
        yield session


@dataclass(frozen=True, slots=True)
class _Words:
    """What the query says to Postgres, how many events match it, and the newest of them."""

    tsquery: str
    total: int
    ranked: list[str]
    # It has operators: what it excludes must not come back by its meaning.
    to_the_letter: bool


async def _words(runtime: Runtime, query: str, parameters: dict[str, Any], *, rank: bool) -> _Words:
    async with _session(runtime) as session:
        parsed = await session.one("parse_query", query=query)
        assert parsed is not None
        to_the_letter = any(operator in parsed["strict"] for operator in ("!", "|", "<"))
        tsquery = parsed["strict"] if to_the_letter else _enough_of(parsed["lexemes"])
        if not tsquery:
            return _Words("", 0, [], to_the_letter)
        counted = await session.one("count_events_by_words", words=tsquery, **parameters)
        assert counted is not None
        total: int = counted["total"]
        few = total <= _FEW_MATCHES
        ranked = (
            await session.all(
                "rank_few_events_by_words" if few else "rank_events_by_words",
                words=tsquery,
                each_word=[_quoted(lexeme) for lexeme in parsed["lexemes"]],
                limit=_RANKED_MATCHES,
                **parameters,
            )
            if rank and total
            else []
        )
    return _Words(tsquery, total, [str(row["event_id"]) for row in ranked], to_the_letter)


def _enough_of(lexemes: list[str]) -> str:
    """A tsquery that wants half of the words: people ask in sentences."""
    wanted = (len(lexemes) + 1) // 2 if len(lexemes) <= _MOST_WORDS_COMBINED else 2
    quoted = [_quoted(lexeme) for lexeme in lexemes]
    return " | ".join(" & ".join(some) for some in combinations(quoted, wanted) if some)


def _quoted(lexeme: str) -> str:
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


async def _by_time(
    session: Session, parameters: dict[str, Any], limit: int, offset: int
) -> tuple[list[Row], int]:
    events = await session.all("list_events", limit=limit, offset=offset, **parameters)
    counted = await session.one("count_events", **parameters)
    assert counted is not None
    return events, counted["total"]


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
    session: Session,
    words: _Words,
    dense: list[str],
    parameters: dict[str, Any],
    constant: int,
    limit: int,
    offset: int,
    sort: Sort,
) -> tuple[list[Row], int]:
    rows = await session.all(
        "filter_events", ids=[UUID(id_) for id_ in dense], words=words.tsquery, **parameters
    )
    has_words = {str(row["event_id"]): row["has_words"] for row in rows}
    if words.to_the_letter:
        has_words = {id_: has for id_, has in has_words.items() if has}
    dense = [id_ for id_ in dense if id_ in has_words]
    fused = fuse({"full_text": words.ranked, "dense": dense}, constant=constant)
    ranked = [UUID(item.key) for item in fused]
    total = words.total + sum(not has for has in has_words.values())
    if sort == "time":
        events = sorted(await _in_order(session, ranked), key=_newest_first)
        return events[offset : offset + limit], total
    events = await _in_order(session, ranked[offset : offset + limit])
    unranked = min(total - len(ranked), limit - len(events))
    if unranked > 0:
        beyond = max(offset - len(ranked), 0)
        events += await _matches_by_time(session, words, parameters, ranked, unranked, beyond)
    return events, total


async def _in_order(session: Session, ids: list[UUID]) -> list[Row]:
    rows = await session.all("events_by_id", ids=ids)
    by_id = {row["event_id"]: row for row in rows}
    return [by_id[id_] for id_ in ids if id_ in by_id]


async def _matches_by_time(
    session: Session,
    words: _Words,
    parameters: dict[str, Any],
    ranked: list[UUID],
    limit: int,
    offset: int,
) -> list[Row]:
    """Newest first, without those that are ranked before them."""
    return await session.all(
        "match_events_by_time",
        words=words.tsquery,
        ranked=ranked,
        limit=limit,
        offset=offset,
        **parameters,
    )


def _newest_first(row: Row) -> tuple[bool, float]:
    time = row["event_time"]
    return time is None, -time.timestamp() if time else 0.0


async def _page(
    session: Session, events: list[Row], total: int, include_evidence: bool
) -> EventPage:
    evidence = await evidence_of(session, events) if include_evidence else {}
    return EventPage(events, total, evidence)


async def matching_ids(
    runtime: Runtime, query: str, filters: EventFilters, *, limit: int, farthest: float
) -> list[UUID]:
    """The best events for a question, for tools that then look at them otherwise."""
    page = await search_events(
        runtime, query, filters, limit=limit, include_evidence=False, farthest=farthest
    )
    return [row["event_id"] for row in page.events]
