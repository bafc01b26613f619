"""Commitments: what was promised, by whom, due when, and whether it was done."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal
from uuid import UUID

from memory_core.database import Row
from memory_core.events.names import Person, resolve_name
from memory_core.events.reading import evidence_of
from memory_core.events.search import actor_facets
from memory_core.runtime import Runtime

Status = Literal["open", "done", "overdue", "unknown"]
# Statuses are worked out here: with a status to look for, more rows are read than are wanted.
_READ_AT_ONCE = 100
_READ_AT_MOST = 2_000
# How much of a promise's own words the report of its fulfilment must share.
_SHARED_WORDS = 0.45
_SHARED_AT_LEAST = 2


@dataclass(frozen=True, slots=True)
class Commitment:
    event: Row
    status: Status
    fulfilled_by: Row | None


@dataclass(frozen=True, slots=True)
class CommitmentPage:
    commitments: list[Commitment]
    evidence: dict[UUID, list[Row]]
    candidates: list[Person]


async def list_commitments(
    runtime: Runtime,
    *,
    actor: str | None,
    due_from: datetime | None,
    due_to: datetime | None,
    status: Status | None,
    limit: int,
    now: datetime | None = None,
) -> CommitmentPage:
    """Those with a due date first, in its order."""
    moment = now or datetime.now(UTC)
    async with runtime.database.session() as session:
        keys: list[str] | None = None
        if actor:
            resolution = await resolve_name(session, actor)
            if resolution.candidates:
                return CommitmentPage([], {}, resolution.candidates)
            keys = resolution.keys
        found: list[Commitment] = []
        at_once = limit if status is None else _READ_AT_ONCE
        for offset in range(0, _READ_AT_MOST, at_once):
            rows = await session.all(
                "list_commitments",
                actor_facets=actor_facets(keys),
                due_from=due_from,
                due_to=due_to,
                limit=at_once,
                offset=offset,
                share=_SHARED_WORDS,
                least=_SHARED_AT_LEAST,
            )
            done = await session.all(
                "events_by_id", ids=[row["done_by"] for row in rows if row["done_by"]]
            )
            by_id = {row["event_id"]: row for row in done}
            for row in rows:
                commitment = _judge(row, by_id, moment)
                if status is None or commitment.status == status:
                    found.append(commitment)
            if len(found) >= limit or len(rows) < at_once:
                break
        found = found[:limit]
        shown = [item.event for item in found]
        shown += [item.fulfilled_by for item in found if item.fulfilled_by]
        evidence = await evidence_of(session, shown)
    return CommitmentPage(found, evidence, [])


def _judge(row: Row, done: dict[UUID, Row], now: datetime) -> Commitment:
    fulfilment = done.get(row["done_by"]) if row["done_by"] else None
    status: Status
    if fulfilment is not None:
        status = "done"
    elif row["event_time"] is None:
        status = "unknown"
    else:
        status = "open" if row["event_time"] >= now else "overdue"
    return Commitment(row, status, fulfilment)
