"""Commitments: what was promised, by whom, due when, and whether it was done."""

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
from memory_core.events.reading import evidence_of
from memory_core.kernel.database import Session
from memory_core.kernel.times import check_period
from memory_core.runtime import Runtime
from memory_core.search.event import Evidence
from memory_core.search.event_filters import actor_facets, audience_facets
from memory_core.search.names import Person, resolve_name

Status = Literal["open", "done", "overdue"]
# What can be asked for: `unknown` is the part of the open ones that has no due date.
WantedStatus = Literal["open", "done", "overdue", "unknown"]
# Whether a promise was kept is worked out here, so with a status to look for more promises are
# read than are wanted: how many at once, and how many in all.
_READ_AT_ONCE = 50
_READ_AT_MOST = 500
# How many reports of one promise, and promises of one report, are compared.
_COMPARED = 100


@dataclass(frozen=True, slots=True)
class Commitment:
    event: StatedEvent
    status: Status
    fulfilled_by: StatedEvent | None


@dataclass(frozen=True, slots=True)
class CommitmentPage:
    commitments: list[Commitment]
    evidence: dict[UUID, list[Evidence]]
    candidates: list[Person]
    # How many there are; None when there are too many to tell.
    total: int | None = 0
    # More of them are there, or may be, than these.
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class PromiseId:
    event_id: UUID
    total: int  # of promises


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
    """Those with a due date first, in its order."""
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
        found: list[Commitment] = []
        read = 0
        while read < len(ids) and len(found) <= limit:
            at_once = ids[read : read + _READ_AT_ONCE]
            judged = await judge(session, at_once, moment)
            found += [one for one in judged if _is_wanted(one, status)]
            read += len(at_once)
        shown = found[:limit]
        events = [item.event for item in shown]
        events += [item.fulfilled_by for item in shown if item.fulfilled_by]
        evidence = await evidence_of(session, events)
    if status is None:
        total: int | None = promised
    else:
        total = len(found) if read == promised else None
    truncated = total is None or total > len(shown)
    return CommitmentPage(shown, evidence, candidates, total, truncated)


async def judge(session: Session, ids: list[UUID], now: datetime) -> list[Commitment]:
    """These promises, in this order, with what became of them."""
    rows = {row.event_id: row for row in await _statements(session, ids)}
    promises = [Statement.of(row) for row in rows.values()]
    by_id = {row.event_id: row for row in await _reports(session, promises)}
    # Beside the event loop: there may be thousands of reports.
    reports = await asyncio.to_thread(_telling, promises, list(by_id.values()))
    # A report keeps one promise only, which need not be one of these.
    rivals = await _rivals(session, reports, without=ids)
    done = await asyncio.to_thread(kept, [*promises, *rivals], reports)
    return [
        _commitment(rows[id_], by_id[done[id_]] if id_ in done else None, now)
        for id_ in ids
        if id_ in rows
    ]


def _telling(promises: list[Statement], rows: list[StatedEvent]) -> list[Statement]:
    """The reports that tell of one of the promises."""
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
        status = "overdue" if due is not None and _is_over(due, now) else "open"
    return Commitment(row, status, fulfilment)


def _is_wanted(item: Commitment, status: WantedStatus | None) -> bool:
    match status:
        case None:
            return True
        case "unknown":
            return item.status == "open" and item.event.due_time is None
        case _:
            return item.status == status


def _is_over(due: datetime, now: datetime) -> bool:
    """What is due on a day, at no time of it, may be done on that day."""
    whole_day = due == _start_of_day(due)
    return due < (_start_of_day(now) if whole_day else now)


def _start_of_day(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
