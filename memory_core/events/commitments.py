"""Commitments: what was promised, by whom, when it is due, and whether it was done."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal
from uuid import UUID

from memory_core.events.fulfilment import (
    Promises,
    StatedEvent,
    Statement,
    kept,
    words_of_reports,
    words_of_rivals,
)
from memory_core.events.stored_events import evidence_of
from memory_core.kernel.database import Session
from memory_core.kernel.times import check_period
from memory_core.runtime import Runtime
from memory_core.search.event import StoredEvidence
from memory_core.search.event_filters import actor_facets, audience_facets
from memory_core.search.names import Person, resolve_name

Status = Literal["open", "done", "overdue"]
# The statuses that a caller can ask for: `unknown` means open and without a due date.
WantedStatus = Literal["open", "done", "overdue", "unknown"]
# Python decides whether a promise was kept. So with a status filter, more promises are read than
# are wanted: per page, and at most.
_READ_AT_ONCE = 50
_READ_AT_MOST = 500
# How many reports per promise, and promises per report, are compared.
_COMPARED = 100


@dataclass(frozen=True, slots=True)
class Commitment:
    event: StatedEvent
    status: Status
    fulfilled_by: StatedEvent | None


@dataclass(frozen=True, slots=True)
class CommitmentPage:
    commitments: list[Commitment]
    evidence: dict[UUID, list[StoredEvidence]]
    candidates: list[Person]
    # The number of all matches; None if there are too many to compute.
    total: int | None = 0
    # There are, or may be, more matches than these.
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class PromiseId:
    event_id: UUID
    total: int  # number of all promises


async def list_commitments(
    runtime: Runtime,
    *,
    actor: str | None,
    due_from: datetime | None,
    due_to: datetime | None,
    status: WantedStatus | None,
    limit: int,
    now: datetime | None = None,
) -> CommitmentPage:
    """Commitments with a due date come first, ordered by it."""
    check_period(due_from, due_to, "due")
    moment = now or datetime.now(UTC)
    async with runtime.database.session() as session:
        keys: list[str] | None = None
        candidates: list[Person] = []
        if actor:
            resolution = await resolve_name(session, actor)
            candidates = resolution.candidates
            if not resolution.keys:
                return CommitmentPage([], {}, candidates)
            keys = resolution.keys
        rows = await session.rows(
            PromiseId,
            "list_promises",
            actor_facets=actor_facets(keys),
            audience_facets=await audience_facets(session),
            due_from=due_from,
            due_to=due_to,
            status=status,
            now=moment,
            today=_start_of_day(moment),
            limit=limit if status is None else _READ_AT_MOST,
        )
        promised = rows[0].total if rows else 0
        ids = [row.event_id for row in rows]
        matching: list[Commitment] = []
        read = 0
        while read < len(ids) and len(matching) <= limit:
            at_once = ids[read : read + _READ_AT_ONCE]
            judged = await judge(session, at_once, moment)
            matching += [one for one in judged if _is_wanted(one, status)]
            read += len(at_once)
        shown = matching[:limit]
        events = [item.event for item in shown]
        events += [item.fulfilled_by for item in shown if item.fulfilled_by]
        evidence = await evidence_of(session, events)
    if status is None:
        total: int | None = promised
    else:
        total = len(matching) if read == promised else None
    truncated = total is None or total > len(shown)
    return CommitmentPage(shown, evidence, candidates, total, truncated)


async def judge(session: Session, ids: list[UUID], now: datetime) -> list[Commitment]:
    """These promises in the given order, each with its status and the report that keeps it."""
    rows = {row.event_id: row for row in await _statements(session, ids)}
    promises = [Statement.of(row) for row in rows.values()]
    by_id = {row.event_id: row for row in await _reports(session, promises)}
    # In a thread, because there may be thousands of reports.
    reports = await asyncio.to_thread(_telling, promises, list(by_id.values()))
    # A report keeps only one promise. That may be a promise outside of `ids`, so these rivals are
    # compared too.
    rivals = await _rivals(session, reports, without=ids)
    done = await asyncio.to_thread(kept, [*promises, *rivals], reports)
    return [
        _commitment(rows[id_], by_id[done[id_]] if id_ in done else None, now)
        for id_ in ids
        if id_ in rows
    ]


def _telling(promises: list[Statement], rows: list[StatedEvent]) -> list[Statement]:
    """The reports that keep one of the promises, or may keep it."""
    wanted = Promises(promises)
    return [report for report in map(Statement.of, rows) if wanted.kept_by(report)]


async def _reports(session: Session, promises: list[Statement]) -> list[StatedEvent]:
    wanted = {one.event_id: words for one in promises if (words := words_of_reports(one))}
    if not wanted:
        return []
    ids = await session.values(
        UUID, "possible_reports", ids=list(wanted), words=list(wanted.values()), most=_COMPARED
    )
    return await _statements(session, ids)


async def _statements(session: Session, ids: list[UUID]) -> list[StatedEvent]:
    return await session.rows(StatedEvent, "statements_by_id", ids=ids) if ids else []


async def _rivals(
    session: Session, reports: list[Statement], *, without: list[UUID]
) -> list[Statement]:
    wanted = [words for report in reports if (words := words_of_rivals(report))]
    if not wanted:
        return []
    rivals = await session.values(UUID, "rival_promises", words=wanted, most=_COMPARED)
    rows = await _statements(session, [id_ for id_ in rivals if id_ not in without])
    return [Statement.of(row) for row in rows]


def _commitment(row: StatedEvent, fulfilment: StatedEvent | None, now: datetime) -> Commitment:
    due = row.due_time
    status: Status
    if fulfilment is not None:
        status = "done"
    else:
        status = "overdue" if due is not None and _is_past_due(due, now) else "open"
    return Commitment(row, status, fulfilment)


def _is_wanted(item: Commitment, status: WantedStatus | None) -> bool:
    match status:
        case None:
            return True
        case "unknown":
            return item.status == "open" and item.event.due_time is None
        case _:
            return item.status == status


def _is_past_due(due: datetime, now: datetime) -> bool:
    """A promise that is due on a day without a time may still be kept on that day."""
    whole_day = due == _start_of_day(due)
    return due < (_start_of_day(now) if whole_day else now)


def _start_of_day(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
