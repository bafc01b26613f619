"""Searching events: by words, by meaning, by who, what, when and where.

Full text over narratives and quotes, and vectors of narratives, each rank; reciprocal rank fusion
makes one ranking of them. Postgres has the last word on what exists.
"""

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from heapq import merge
from typing import Literal, TypeVar
from uuid import UUID

from memory_core.kernel.database import Row, Session
from memory_core.kernel.errors import MEANING_AWAY
from memory_core.runtime import Runtime
from memory_core.search import event_matching
from memory_core.search.event import Event, EventWithEvidence, Evidence
from memory_core.search.event_filters import EventFilters
from memory_core.search.event_matching import Matches
from memory_core.search.event_meaning import Meaning
from memory_core.search.fusion import ranking
from memory_core.search.names import Person, Resolution, resolve_name
from memory_core.search.query_text import Asked, understand

log = logging.getLogger(__name__)

T = TypeVar("T")
Sort = Literal["relevance", "time"]


@dataclass(frozen=True, slots=True)
class EventPage:
    events: list[Event]
    total: int
    evidence: dict[UUID, list[Evidence]] = field(default_factory=dict)
    # Who else `actor` may mean. Where it means no one in particular, there are no events.
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
            if _is_unclear(filters, resolution):
                return EventPage([], 0, candidates=resolution.candidates)
            parameters = filters.for_sql(_keys(filters, resolution))
            total = await event_matching.count(session, parameters)
            newest = await event_matching.newest(session, parameters, total, limit, offset)
            ids = [row["event_id"] for row in newest]
            page = await _page(session, ids, total, include_evidence=include_evidence)
            return replace(page, candidates=resolution.candidates)
    if filters.as_of is not None:
        found = await _by_words(runtime, query, filters, rank=sort == "relevance")
    else:
        found = await _by_both(runtime, query, filters, farthest, rank=sort == "relevance")
    if isinstance(found, EventPage):
        return found
    resolution, matches, meant = found
    total = matches.total + sum(not row["has_words"] for row in meant)
    async with runtime.database.session() as session:
        if sort == "time":
            ids = await _by_time(session, matches, meant, limit, offset)
        else:
            constant = runtime.settings.rrf_constant
            ids = await _by_relevance(session, matches, meant, constant, total, limit, offset)
        page = await _page(session, ids, total, include_evidence=include_evidence)
    return replace(page, candidates=resolution.candidates)


async def _by_words(
    runtime: Runtime, query: str, filters: EventFilters, *, rank: bool
) -> EventPage | tuple[Resolution, Matches, list[Row]]:
    """Superseded revisions are found by their words alone: only latest ones are indexed."""
    resolution, asked = await _understand(runtime, query, filters)
    if _is_unclear(filters, resolution):
        return EventPage([], 0, candidates=resolution.candidates)
    parameters = filters.for_sql(_keys(filters, resolution))
    return resolution, await event_matching.match(runtime, asked, parameters, rank=rank), []


async def _by_both(
    runtime: Runtime, query: str, filters: EventFilters, farthest: float | None, *, rank: bool
) -> EventPage | tuple[Resolution, Matches, list[Row]]:
    meaning = Meaning(runtime, query, filters, farthest)
    try:
        resolution, asked = await _understand(runtime, query, filters)
        if _is_unclear(filters, resolution):
            return EventPage([], 0, candidates=resolution.candidates)
        parameters = filters.for_sql(_keys(filters, resolution))
        matches, passing = await asyncio.gather(
            event_matching.match(runtime, asked, parameters, rank=rank),
            _as_far_as_it_is_there(meaning.passing(asked, parameters)),
        )
        meant = await _as_far_as_it_is_there(meaning.meant(passing, matches))
        return resolution, matches, meant
    finally:
        meaning.cancel()


async def _as_far_as_it_is_there(meaning: Awaitable[list[T]]) -> list[T]:
    """Nothing by meaning while Chroma or the embedder is away: the words find what they find."""
    try:
        return await meaning
    except MEANING_AWAY as fault:
        log.warning("events are searched by words alone: %s", fault.message)
        return []


async def _understand(
    runtime: Runtime, query: str, filters: EventFilters
) -> tuple[Resolution, Asked]:
    async with runtime.database.session() as session:
        resolution = await _actor(session, filters)
        asked = await understand(
            session,
            query,
            counting="count_words_of_events",
            include_superseded=filters.include_superseded or filters.as_of is not None,
        )
        return resolution, asked


async def _actor(session: Session, filters: EventFilters) -> Resolution:
    return await resolve_name(session, filters.actor) if filters.actor else Resolution()


def _is_unclear(filters: EventFilters, resolution: Resolution) -> bool:
    return bool(filters.actor) and not resolution.keys


def _keys(filters: EventFilters, resolution: Resolution) -> list[str] | None:
    return resolution.keys if filters.actor else None


async def _by_relevance(
    session: Session,
    matches: Matches,
    meant: list[Row],
    constant: int,
    total: int,
    limit: int,
    offset: int,
) -> list[str]:
    """What the words and the meaning rank; then the other matches, newest first."""
    ranked = ranking([matches.ranked, [row["event_id"] for row in meant]], constant=constant)
    page = ranked[offset : offset + limit]
    if len(page) < limit and len(ranked) < total:
        missing, before = limit - len(page), max(offset - len(ranked), 0)
        rest = await matches.newest(session, missing, before, without=ranked)
        page += [row["event_id"] for row in rest]
    return page


async def _by_time(
    session: Session, matches: Matches, meant: list[Row], limit: int, offset: int
) -> list[str]:
    """The same matches, newest first: those by their words, and between them those by meaning."""
    others = sorted((row for row in meant if not row["has_words"]), key=_newest_first)
    # At most all the others come before: further back the page cannot begin.
    start = max(min(offset - len(others), matches.total - 1), 0)
    found: list[Row] = []
    if matches.total:
        found = await matches.newest(session, offset + limit - start, start)
    before = 0
    if start and found:
        first = _newest_first(found[0])
        before = sum(_newest_first(row) < first for row in others)
    merged = list(merge(found, others[before:], key=_newest_first))
    begin = offset - start - before
    return [row["event_id"] for row in merged[begin : begin + limit]]


def _newest_first(row: Row) -> tuple[bool, timedelta, timedelta, str]:
    """As Postgres orders them."""
    time = row["event_time"]
    age = _LATEST - time if time is not None else timedelta(0)
    return time is None, age, _LATEST - row["created_at"], row["event_id"]


_LATEST = datetime.max.replace(tzinfo=UTC)


async def _page(
    session: Session, ids: list[str], total: int, *, include_evidence: bool
) -> EventPage:
    """Events as they are shown: all in one query, with what proves them."""
    if not include_evidence:
        events = await session.rows(Event, "events_by_id", ids=ids) if ids else []
        return EventPage(_in_order(events, ids), total)
    proved = await session.rows(EventWithEvidence, "events_with_evidence", ids=ids) if ids else []
    evidence = {
        event.event_id: [Evidence(event.event_id, **quote) for quote in event.evidence]
        for event in proved
    }
    return EventPage(_in_order(proved, ids), total, evidence)


def _in_order(events: Sequence[Event], ids: list[str]) -> list[Event]:
    by_id = {str(event.event_id): event for event in events}
    return [by_id[id_] for id_ in ids if id_ in by_id]
