"""Stakeholders: who took part in which events, and in which roles."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from memory_core.events.stored_events import evidence_of
from memory_core.runtime import Runtime
from memory_core.search import event_matching
from memory_core.search.event import Event, StoredEvidence
from memory_core.search.event_filters import EventFilters
from memory_core.search.event_search import events_by_id, search_events

# How many events are considered: the best matches of a query, or the newest of all.
MATCHES_CONSIDERED = 300
EVENTS_CONSIDERED = 5_000
_EXAMPLES = 3
# A loose distance: people also show up in events that are about the matter in a wider sense.
_FARTHEST = 0.8


@dataclass(frozen=True, slots=True)
class Stakeholder:
    name: str
    type: Literal["person", "org"] | None  # set if a document says so
    aliases: list[str]
    roles: dict[str, int]
    events: int
    first_time: datetime | None
    last_time: datetime | None
    examples: list[Event]
    evidence: dict[UUID, list[StoredEvidence]]


@dataclass(frozen=True, slots=True)
class StakeholderPage:
    people: list[Stakeholder]
    total: int = 0
    # Counts are over the considered events, of all events that match.
    events_considered: int = 0
    events_total: int = 0


@dataclass(frozen=True, slots=True)
class StakeholderRow:
    name_key: str
    name: str
    events: int
    first_time: datetime | None
    last_time: datetime | None
    total: int  # number of all people
    roles: dict[str, int]
    type: Literal["person", "org"] | None
    example_ids: list[UUID]


@dataclass(frozen=True, slots=True)
class Aliases:
    name_key: str
    aliases: list[str]


async def stakeholders(
    runtime: Runtime, query: str | None, filters: EventFilters, *, limit: int
) -> StakeholderPage:
    """Who took part in which roles, over the events that match a query, or over all events."""
    ids: list[UUID] | None = None
    considered = EVENTS_CONSIDERED
    if query and query.strip():
        considered = MATCHES_CONSIDERED
        matches = await search_events(
            runtime, query, filters, limit=considered, include_evidence=False, farthest=_FARTHEST
        )
        ids, total = [event.event_id for event in matches.events], matches.total
        if not ids:
            return StakeholderPage([])
    async with runtime.database.session() as session:
        matching = await filters.for_sql(session, None)
        parameters = {**matching, "ids": ids, "considered": considered}
        if ids is None:
            total = await event_matching.count(session, matching)
        rows = await session.rows(
            StakeholderRow,
            "stakeholders",
            limit=limit,
            examples=_EXAMPLES,
            **parameters,
        )
        examples = await events_by_id(session, [id_ for row in rows for id_ in row.example_ids])
        evidence = await evidence_of(session, examples)
        aliases = await session.rows(Aliases, "aliases_of", keys=[row.name_key for row in rows])
    by_id = {row.event_id: row for row in examples}
    aliases_by_key = {row.name_key: row.aliases for row in aliases}
    return StakeholderPage(
        people=[_stakeholder(row, aliases_by_key, by_id, evidence) for row in rows],
        total=rows[0].total if rows else 0,
        events_considered=min(total, considered),
        events_total=total,
    )


def _stakeholder(
    row: StakeholderRow,
    aliases: dict[str, list[str]],
    events: dict[UUID, Event],
    evidence: dict[UUID, list[StoredEvidence]],
) -> Stakeholder:
    examples = [events[id_] for id_ in row.example_ids if id_ in events]
    return Stakeholder(
        name=row.name,
        type=row.type,
        aliases=aliases.get(row.name_key, []),
        roles=row.roles,
        events=row.events,
        first_time=row.first_time,
        last_time=row.last_time,
        examples=examples,
        evidence={event.event_id: evidence[event.event_id] for event in examples},
    )
