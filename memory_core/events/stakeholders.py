"""Who took part in what, in which roles."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from memory_core.database import Row
from memory_core.events.reading import evidence_of
from memory_core.events.search import EventFilters, matching_ids
from memory_core.runtime import Runtime

_EVENTS_CONSIDERED = 300
_EXAMPLES = 3
# Who was involved shows in events that are about the matter in a wider sense.
_FARTHEST = 0.8


@dataclass(frozen=True, slots=True)
class Stakeholder:
    name: str
    aliases: list[str]
    roles: dict[str, int]
    events: int
    first_time: datetime | None
    last_time: datetime | None
    examples: list[Row]
    evidence: dict[UUID, list[Row]]


async def stakeholders(
    runtime: Runtime, query: str | None, filters: EventFilters, *, limit: int
) -> list[Stakeholder]:
    """Who took part, in which roles: over the events a question finds, or over all."""
    ids: list[UUID] | None = None
    if query and query.strip():
        ids = await matching_ids(
            runtime, query, filters, limit=_EVENTS_CONSIDERED, farthest=_FARTHEST
        )
        if not ids:
            return []
    async with runtime.database.session() as session:
        parameters = {**filters.for_sql(None), "ids": ids}
        rows = await session.all("stakeholders", limit=limit, examples=_EXAMPLES, **parameters)
        examples = await session.all(
            "events_by_id", ids=[id_ for row in rows for id_ in row["example_ids"]]
        )
        evidence = await evidence_of(session, examples)
        aliases = await session.all("aliases_of", keys=[row["name_key"] for row in rows])
    by_id = {row["event_id"]: row for row in examples}
    known = {row["name_key"]: row["aliases"] for row in aliases}
    return [_stakeholder(row, known, by_id, evidence) for row in rows]


def _stakeholder(
    row: Row,
    aliases: dict[str, Any],
    events: dict[UUID, Row],
    evidence: dict[UUID, list[Row]],
) -> Stakeholder:
    examples = [events[id_] for id_ in row["example_ids"] if id_ in events]
    return Stakeholder(
        name=row["name"],
        aliases=aliases.get(row["name_key"], []),
        roles=row["roles"],
        events=row["events"],
        first_time=row["first_time"],
        last_time=row["last_time"],
        examples=examples,
        evidence={event["event_id"]: evidence[event["event_id"]] for event in examples},
    )
