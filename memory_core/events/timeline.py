"""Events in time order, grouped by day."""

from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby
from uuid import UUID

from memory_core.runtime import Runtime
from memory_core.search.event import Event, StoredEvidence
from memory_core.search.event_filters import EventFilters
from memory_core.search.event_search import search_events
from memory_core.search.names import Person


@dataclass(frozen=True, slots=True)
class Day:
    day: date | None  # None: the text gives no time
    events: list[Event]


@dataclass(frozen=True, slots=True)
class Timeline:
    days: list[Day]
    total: int
    evidence: dict[UUID, list[StoredEvidence]]
    candidates: list[Person]


async def timeline(
    runtime: Runtime, query: str | None, filters: EventFilters, *, limit: int
) -> Timeline:
    """The events that a search would return, oldest first; events without a time come last."""
    page = await search_events(runtime, query, filters, limit=limit, sort="time")
    ordered = sorted(page.events, key=_oldest_first)
    days = [Day(day, list(events)) for day, events in groupby(ordered, key=_day)]
    return Timeline(days, page.total, page.evidence, page.candidates)


def _time(row: Event) -> datetime | None:
    """A promise counts at its due date, as in searches for a time."""
    return row.due_time or row.event_time


def _day(row: Event) -> date | None:
    time = _time(row)
    return time.date() if time else None


def _oldest_first(row: Event) -> tuple[bool, float, str]:
    time = _time(row)
    return time is None, time.timestamp() if time else 0.0, str(row.event_id)
