"""Searching events: by words, meaning, person, category, time and document.

Events are found by full text over narratives and quotes, and by the vectors of narratives. With
RANKING=scores (`scored_texts.py`) they are ordered by their texts and cosines; with RANKING=rrf
reciprocal rank fusion combines two rankings. Postgres decides what exists.
"""

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from heapq import merge
from typing import Literal, TypeVar
from uuid import UUID

from memory_core.kernel.database import Session
from memory_core.kernel.errors import MEANING_AWAY
from memory_core.runtime import Runtime
from memory_core.search import event_matching
from memory_core.search.bm25 import Statistics
from memory_core.search.event import Event, EventWithEvidence, StoredEvidence
from memory_core.search.event_filters import EventFilters
from memory_core.search.event_matching import Dated, Matches, Parameters
from memory_core.search.event_meaning import Meaning, Meant
from memory_core.search.fusion import ranking
from memory_core.search.lexemes import lexemes_of, quoted
from memory_core.search.names import Person, Resolution, resolve_name
from memory_core.search.passage import ShortText
from memory_core.search.query_text import Asked, understand, visible_text
from memory_core.search.scored_texts import best_first
from memory_core.search.word_statistics import WordCount

log = logging.getLogger(__name__)

# In a sentence, a word that at most this many events have is enough alone.
_SAYS_ENOUGH = 20
# The texts of the most promising events and of the nearest ones are read.
_PROMISING = 50
_NEAREST = 30

T = TypeVar("T")
Sort = Literal["relevance", "time"]


@dataclass(frozen=True, slots=True)
class EventPage:
    events: list[Event]
    total: int
    answering: int  # how many of the total have most of the query's words
    # False when a query found events by their meaning alone.
    by_words: bool = True
    evidence: dict[UUID, list[StoredEvidence]] = field(default_factory=dict)
    # Other people whom `actor` may mean. If it is ambiguous, there are no events.
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
    """`farthest`: the maximum cosine distance of a relevant narrative."""
    if query is None or not query.strip():
        async with runtime.database.session() as session:
            resolution = await _actor(session, filters)
            if _is_unclear(filters, resolution):
                return EventPage([], 0, 0, candidates=resolution.candidates)
            parameters = await filters.for_sql(session, _keys(filters, resolution))
            total = await event_matching.count(session, parameters)
            newest = await event_matching.newest(session, parameters, total, limit, offset)
            ids = [event.event_id for event in newest]
            page = await _page(session, ids, total, include_evidence=include_evidence)
            return replace(page, candidates=resolution.candidates)
    query = visible_text(query)
    async with runtime.database.session() as session:
        question = await _understand(session, query, filters)
    if _is_unclear(filters, question.actor):
        return EventPage([], 0, 0, candidates=question.actor.candidates)
    matched = await _matched(runtime, question, filters, farthest, rank=sort == "relevance")
    async with runtime.database.session() as session:
        if sort == "time":
            ids = await _by_time(session, matched, limit, offset)
        else:
            ids = await _by_relevance(runtime, session, question, matched, limit, offset)
        page = await _page(session, ids, matched.total, include_evidence=include_evidence)
    return replace(
        page,
        answering=matched.matches.answering,
        by_words=matched.matches.total > 0,
        candidates=question.actor.candidates,
    )


@dataclass(frozen=True, slots=True)
class _Question:
    query: str
    asked: Asked
    actor: Resolution
    statistics: Statistics  # of the query's words
    parameters: Parameters  # the filters


@dataclass(frozen=True, slots=True)
class _Matched:
    matches: Matches
    meant: list[Meant]
    lowest: float = 0.0  # the cosine of what is not among these is at most that

    @property
    def total(self) -> int:
        return self.matches.total + len(self.without_words)

    @property
    def without_words(self) -> list[Dated]:
        return [meant.event for meant in self.meant if not meant.event.has_words]


async def _understand(session: Session, query: str, filters: EventFilters) -> _Question:
    actor = await _actor(session, filters)
    superseded = filters.include_superseded or filters.as_of is not None
    asked = await understand(
        session,
        query,
        counting="count_words_of_events",
        alone=_SAYS_ENOUGH,
        include_superseded=superseded,
    )
    looked_for = frozenset(lexemes_of(asked.each_word))
    in_order = [lexeme for lexeme in lexemes_of(asked.every_word) if lexeme in looked_for]
    statistics = await _statistics(session, in_order, superseded)
    parameters = await filters.for_sql(session, _keys(filters, actor))
    return _Question(query, asked, actor, statistics, parameters)


async def _statistics(session: Session, lexemes: list[str], superseded: bool) -> Statistics:
    """Word statistics of events for ranking. For words that a hundred events or more have, the
    planner's statistics are used."""
    by_query = {quoted(lexeme): lexeme for lexeme in lexemes}
    counted = await session.rows(
        WordCount, "count_words_of_events", words=list(by_query), include_superseded=superseded
    )
    every = await session.value(int, "number_of_events")
    # The planner does not know events that were stored a moment ago.
    counts = [float(every), *(2 * word.found for word in counted)]
    return Statistics(
        passages=max(counts),
        average_length=1.0,
        frequencies={by_query[word.word]: word.found for word in counted},
    )


async def _matched(
    runtime: Runtime,
    question: _Question,
    filters: EventFilters,
    farthest: float | None,
    *,
    rank: bool,
) -> _Matched:
    asked, statistics, parameters = question.asked, question.statistics, question.parameters
    if filters.as_of is not None:
        # Superseded revisions are searched by words only, because only latest ones are indexed.
        matches = await event_matching.match(runtime, asked, parameters, statistics, rank=rank)
        return _Matched(matches, [])
    meaning = Meaning(runtime, question.query, filters, farthest)
    try:
        matches, passing = await asyncio.gather(
            event_matching.match(runtime, asked, parameters, statistics, rank=rank),
            _unless_away(meaning.passing(asked, parameters)),
        )
        meant = await _unless_away(meaning.meant(passing, matches))
        return _Matched(matches, meant, meaning.lowest)
    finally:
        meaning.cancel()


async def _unless_away(meaning: Awaitable[list[T]]) -> list[T]:
    """Empty while Chroma or the embedder is away: then the search uses words alone."""
    try:
        return await meaning
    except MEANING_AWAY as fault:
        log.warning("events are searched by words alone: %s", fault.message)
        return []


async def _actor(session: Session, filters: EventFilters) -> Resolution:
    return await resolve_name(session, filters.actor) if filters.actor else Resolution()


def _is_unclear(filters: EventFilters, resolution: Resolution) -> bool:
    return bool(filters.actor) and not resolution.keys


def _keys(filters: EventFilters, resolution: Resolution) -> list[str] | None:
    return resolution.keys if filters.actor else None


async def _by_relevance(
    runtime: Runtime,
    session: Session,
    question: _Question,
    matched: _Matched,
    limit: int,
    offset: int,
) -> list[str]:
    """First the events that are ranked by words and meaning; then the other matches, newest
    first."""
    matches = matched.matches
    cosines = {meant.event.event_id: meant.cosine for meant in matched.meant}
    if runtime.settings.ranking == "rrf":
        constant = runtime.settings.rrf_constant
        ranked = ranking([matches.ranked, list(cosines)], constant=constant)
    else:
        ranked = await _by_scores(session, question, matched, cosines)
    page = ranked[offset : offset + limit]
    if len(page) < limit and len(ranked) < matched.total:
        missing, before = limit - len(page), max(offset - len(ranked), 0)
        rest = await matches.newest(session, missing, before, without=ranked)
        page += [event.event_id for event in rest]
    return page


async def _by_scores(
    session: Session, question: _Question, found: _Matched, cosines: dict[str, float]
) -> list[str]:
    """Events whose text is not read follow in their previous order."""
    promising = found.matches.ranked
    read = dict.fromkeys([*promising[:_PROMISING], *list(cosines)[:_NEAREST]])
    texts = await session.rows(ShortText, "event_texts", ids=list(read))
    best = best_first(
        texts, cosines, question.statistics, by_stem=question.asked.by_stem, lowest=found.lowest
    )
    return list(dict.fromkeys([*best, *promising, *cosines]))


async def _by_time(session: Session, matched: _Matched, limit: int, offset: int) -> list[str]:
    """The same matches, newest first: matches by words and by meaning, merged."""
    matches = matched.matches
    others = sorted(matched.without_words, key=_newest_first)
    # At most all matches by meaning come first, so the page cannot begin further back.
    start = max(min(offset - len(others), matches.total - 1), 0)
    by_words: list[Dated] = []
    if matches.total:
        by_words = await matches.newest(session, offset + limit - start, start)
    before = 0
    if start and by_words:
        first = _newest_first(by_words[0])
        before = sum(_newest_first(event) < first for event in others)
    merged: list[Dated] = list(merge(by_words, others[before:], key=_newest_first))
    begin = offset - start - before
    return [event.event_id for event in merged[begin : begin + limit]]


def _newest_first(event: Dated) -> tuple[bool, timedelta, timedelta, str]:
    """The same order as in Postgres."""
    time = event.event_time
    age = _LATEST - time if time is not None else timedelta(0)
    return time is None, age, _LATEST - event.created_at, event.event_id


_LATEST = datetime.max.replace(tzinfo=UTC)


async def _page(
    session: Session, ids: list[str], total: int, *, include_evidence: bool
) -> EventPage:
    """Events as they are shown: all in one query, with their evidence."""
    if not include_evidence:
        events = await events_by_id(session, ids) if ids else []
        return EventPage(_in_order(events, ids), total, total)
    proved = await session.rows(EventWithEvidence, "events_with_evidence", ids=ids) if ids else []
    evidence = {
        event.event_id: [StoredEvidence(event.event_id, **quote) for quote in event.evidence]
        for event in proved
    }
    return EventPage(_in_order(proved, ids), total, total, evidence=evidence)


async def events_by_id(session: Session, ids: Sequence[str | UUID]) -> list[Event]:
    """In no order. The ids come from Postgres, or have passed its filters."""
    return await session.rows(Event, "events_by_id", ids=list(ids))


def _in_order(events: Sequence[Event], ids: list[str]) -> list[Event]:
    by_id = {str(event.event_id): event for event in events}
    return [by_id[id_] for id_ in ids if id_ in by_id]
