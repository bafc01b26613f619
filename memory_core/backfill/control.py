"""Starting, watching, pausing, resuming and cancelling a backfill. At most one is open."""

from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from memory_core.backfill.plan import BackfillPlan, make_plan
from memory_core.backfill.rows import Backfill, BackfillProgress, Wants
from memory_core.backfill.scope import Filter, Scope
from memory_core.backfill.tick import Tick, tick
from memory_core.extraction.current_versions import current
from memory_core.kernel.database import Database, Session
from memory_core.kernel.errors import InvalidInput, NotFound
from memory_core.kernel.settings import Settings
from memory_core.log.change import ChangeType, of_backfill
from memory_core.log.log_writer import append
from memory_core.queue import requests
from memory_core.queue.jobs import LEASE_SECONDS
from memory_core.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Status:
    backfill: Backfill
    progress: BackfillProgress
    remaining: int  # revisions not requested yet
    used_today: int  # tokens used by all backfills

    @property
    def total(self) -> int:
        return self.ended + self.progress.in_queue + self.remaining

    @property
    def ended(self) -> int:
        return self.progress.done + self.progress.failed + self.progress.overtaken

    def as_json(self) -> dict[str, Any]:
        return {
            **asdict(self.backfill),
            "backfill_id": str(self.backfill.backfill_id),
            **asdict(self.progress),
            "remaining": self.remaining,
            "total": self.total,
            "used_today": self.used_today,
        }


@dataclass(frozen=True, slots=True)
class StartedBackfill:
    plan: BackfillPlan
    first: Tick | None  # None: no revision was outdated


async def start(
    runtime: Runtime, chosen: Filter, *, other_models: bool = False, requested_by: str
) -> StartedBackfill:
    """Start a backfill and take its first step; the schedule takes the others."""
    plan = await make_plan(runtime, chosen, other_models=other_models)
    async with runtime.database.transaction() as session:
        if await session.row(Backfill, "open_backfill") is not None:
            raise _one_is_open()
        if not plan.revisions:
            return StartedBackfill(plan, None)
        row = await session.row(
            Backfill,
            "start_backfill",
            **Scope(plan.versions).stored(),
            filter=Jsonb(chosen.as_json()),
            other_models=other_models,
            requested_by=requested_by,
            estimate=Jsonb(plan.as_json()),
        )
        if row is None:
            raise _one_is_open()
        await append(session, [of_backfill(ChangeType.BACKFILL_STARTED, row.backfill_id)])
    return StartedBackfill(plan, await tick(runtime))


async def start_by_itself(runtime: Runtime) -> StartedBackfill | None:
    """With BACKFILL_START=auto: start a backfill when a prompt is newer than some events and no
    backfill to this prompt was ever started."""
    if not await _starts_by_itself(runtime.database, runtime.settings):
        return None
    return await start(runtime, Filter(), requested_by="schedule")


async def wants_a_tick(database: Database, settings: Settings) -> bool:
    """Whether the schedule has a step to take."""
    async with database.session() as session:
        wants = await session.only(Wants, "backfill_wants_a_tick", lease=LEASE_SECONDS)
    return wants.running or wants.withdrawing or await _starts_by_itself(database, settings)


async def _starts_by_itself(database: Database, settings: Settings) -> bool:
    if settings.backfill_start != "auto":
        return False
    scope = Scope(current(settings))
    async with database.session() as session:
        if await session.row(Backfill, "open_backfill") is not None:
            return False
        asked = {**scope.parameters(), **scope.stored()}
        return await session.value(bool, "never_backfilled", **asked)


async def status(runtime: Runtime, backfill_id: UUID | None = None) -> Status:
    """The status of the named backfill, or of the last one."""
    async with runtime.database.session() as session:
        if backfill_id is None:
            row = await session.row(Backfill, "last_backfill")
        else:
            row = await session.row(Backfill, "get_backfill", backfill_id=backfill_id)
        if row is None:
            raise NotFound(
                "There is no such backfill."
                if backfill_id
                else "There was no backfill yet. `mcp-memory backfill plan` says what one takes."
            )
        return await _status(session, row)


async def _status(session: Session, row: Backfill) -> Status:
    progress = await session.only(
        BackfillProgress, "backfill_progress", backfill_id=row.backfill_id
    )
    remaining = 0
    if row.status in {"RUNNING", "PAUSED"}:
        remaining = await session.value(
            int, "count_remaining", **Scope.of(row).parameters(), backfill_id=row.backfill_id
        )
    used = await session.value(int, "tokens_of_day", now=None)
    return Status(row, progress, remaining, used)


async def pause(runtime: Runtime) -> Status:
    """Take back jobs that no run has claimed; claimed jobs are finished."""
    return await _change(runtime, "PAUSED", "paused by a person", ChangeType.BACKFILL_PAUSED)


async def cancel(runtime: Runtime) -> Status:
    """Like pause, but final. Renewed revisions stay renewed."""
    return await _change(
        runtime, "CANCELLED", "cancelled by a person", ChangeType.BACKFILL_CANCELLED
    )


async def resume(runtime: Runtime) -> Status:
    """Go on; failed revisions are tried once more."""
    async with runtime.database.transaction() as session:
        row = await _lock_open(session)
        await requests.forget_failed(session, row.backfill_id)
        await session.run(
            "set_backfill_status",
            backfill_id=row.backfill_id,
            status="RUNNING",
            reason=None,
        )
        await append(session, [of_backfill(ChangeType.BACKFILL_RESUMED, row.backfill_id)])
    await tick(runtime)
    return await status(runtime, row.backfill_id)


async def _change(runtime: Runtime, wanted: str, reason: str, change: ChangeType) -> Status:
    async with runtime.database.transaction() as session:
        row = await _lock_open(session)
        changed = await session.only(
            Backfill,
            "set_backfill_status",
            backfill_id=row.backfill_id,
            status=wanted,
            reason=reason,
        )
        await requests.withdraw_stopped(session)
        shown = await _status(session, changed)
        await append(session, [of_backfill(change, row.backfill_id)])
    return shown


def _one_is_open() -> InvalidInput:
    return InvalidInput(
        "A backfill is open already: nothing was started. `mcp-memory backfill status` shows it; "
        "wait for its end or cancel it."
    )


async def _lock_open(session: Session) -> Backfill:
    row = await session.row(Backfill, "lock_open_backfill")
    if row is None:
        raise InvalidInput(
            "No backfill is open: nothing was changed. `mcp-memory backfill plan` says what one "
            "would take, `start` starts it."
        )
    return row
