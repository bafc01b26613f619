"""Searching events: by words, by meaning, by who, what, when and where.

Full text over narratives and quotes, and vectors of narratives, each rank; reciprocal rank fusion
makes one ranking of them. Postgres has the last word on what exists.
"""

from dataclasses import asdict, dataclass, field
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
# common one the newest, since nobody pages through thousands.
_RANKED_MATCHES = 1_000
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
        values = asdict(self)
        del values["actor"]
        return {**values, "actor_keys": actor_keys}


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
    async with runtime.database.session() as session:
        actor_keys: list[str] | None = None
        if filters.actor:
            resolution = await resolve_name(session, filters.actor)
            if resolution.candidates:
                return EventPage([], 0, candidates=resolution.candidates)
            actor_keys = resolution.keys
        parameters = filters.for_sql(actor_keys)
        words = await _words(session, query, parameters) if query and query.strip() else None
        if words is None:
            events, total = await _by_time(session, parameters, limit, offset)
            return await _page(session, events, total, include_evidence)
        if sort == "time" and words.total:
            events = await session.all(
                "match_events_by_time",
                words=words.tsquery,
                limit=limit,
                offset=offset,
                **parameters,
            )
            return await _page(session, events, words.total, include_evidence)
    assert query is not None
    dense = await _dense(runtime, query, filters, farthest)
    async with runtime.database.session() as session:
        events, total = await _fused(
            session, words, dense, parameters, runtime.settings.rrf_constant, limit, offset, sort
        )
        return await _page(session, events, total, include_evidence)


@dataclass(frozen=True, slots=True)
class _Words:
    """What the query says to Postgres, and how many events match it."""

    tsquery: str
    ranked: list[str]
    total: int
    # It has operators: what it excludes must not come back by its meaning.
    to_the_letter: bool


async def _words(session: Session, query: str, parameters: dict[str, Any]) -> _Words:
    parsed = await session.one("parse_query", query=query)
    assert parsed is not None
    to_the_letter = any(operator in parsed["strict"] for operator in ("!", "|", "<"))
    tsquery = parsed["strict"] if to_the_letter else _enough_of(parsed["lexemes"])
    if not tsquery:
        return _Words("", [], 0, to_the_letter)
    ranked = await session.all(
        "rank_events_by_words",
        words=tsquery,
        lexemes=parsed["lexemes"],
        limit=_RANKED_MATCHES,
        **parameters,
    )
    total = len(ranked)
    if total == _RANKED_MATCHES:
        counted = await session.one("count_events_by_words", words=tsquery, **parameters)
        total = counted["total"] if counted else total
    return _Words(tsquery, [str(row["event_id"]) for row in ranked], total, to_the_letter)


def _enough_of(lexemes: list[str]) -> str:
    """A tsquery that wants half of the words: people ask in sentences."""
    wanted = (len(lexemes) + 1) // 2 if len(lexemes) <= _MOST_WORDS_COMBINED else 2
    quoted = ["'" + _escaped(lexeme) + "'" for lexeme in lexemes]
    return " | ".join(" & ".join(some) for some in combinations(quoted, wanted) if some)


def _escaped(lexeme: str) -> str:
    return lexeme.replace("\\", "\\\\").replace("'", "''")


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
    allowed = await session.all("filter_events", ids=[UUID(id_) for id_ in dense], **parameters)
    known = {str(row["event_id"]) for row in allowed}
    if words.to_the_letter:
        known &= set(words.ranked)
    dense = [id_ for id_ in dense if id_ in known]
    ranked = fuse({"full_text": words.ranked, "dense": dense}, constant=constant)
    total = words.total + len(set(dense) - set(words.ranked))
    page = ranked if sort == "time" else ranked[offset : offset + limit]
    rows = await session.all("events_by_id", ids=[UUID(item.key) for item in page])
    by_id = {str(row["event_id"]): row for row in rows}
    events = [by_id[item.key] for item in page if item.key in by_id]
    if sort == "time":
        events = sorted(events, key=_newest_first)[offset : offset + limit]
    return events, total


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
