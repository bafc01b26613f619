"""One step of a backfill: request as many revisions as queue and budget allow.

A step is one transaction, so a kill leaves it either done or not done. Steps and the commands that
pause or cancel take turns by a lock on the backfill's row.
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from memory_core.backfill.budget import Budget, FittingItems, fit
from memory_core.backfill.estimate import Estimator
from memory_core.backfill.rows import Backfill, BackfillProgress, Endings, OutdatedRevision
from memory_core.backfill.scope import Scope
from memory_core.extraction.current_versions import current
from memory_core.kernel.database import Session
from memory_core.kernel.settings import Settings
from memory_core.log.change import ChangeType, of_backfill
from memory_core.log.log_writer import append
from memory_core.queue import requests
from memory_core.queue.jobs import count_waiting
from memory_core.queue.versions import Versions
from memory_core.runtime import Runtime

# When half of the latest extractions failed, others would fail for the same reason.
_LAST_ENDINGS = 20
_ENOUGH_ENDINGS = 10
_ENDS = {"PAUSED": ChangeType.BACKFILL_PAUSED, "DONE": ChangeType.BACKFILL_FINISHED}
# How many pages of revisions larger than a day's budget a step skips.
PAGES = 20

_Priced = tuple[OutdatedRevision, int]  # a revision with its tokens


@dataclass(frozen=True, slots=True)
class Tick:
    """What a step did, or why it did nothing."""

    note: str
    backfill_id: UUID | None = None
    asked: int = 0
    withdrawn: int = 0
    status: str | None = None  # of the backfill, after the step


@dataclass(frozen=True, slots=True)
class _Step:
    session: Session
    settings: Settings
    backfill: Backfill
    scope: Scope
    now: datetime | None

    @property
    def id(self) -> UUID:
        return self.backfill.backfill_id

    def parameters(self) -> dict[str, object]:
        return {**self.scope.parameters(), "backfill_id": self.id}


async def tick(runtime: Runtime, *, now: datetime | None = None) -> Tick:
    """`now` decides which day's budget is used. Default: the database's clock."""
    async with runtime.database.transaction() as session:
        withdrawn = await requests.withdraw_stopped(session)
        backfill = await session.row(Backfill, "try_open_backfill")
        if backfill is None:
            busy = await session.row(Backfill, "open_backfill")
            note = "another step is at work" if busy else "no backfill is open"
            return Tick(note, withdrawn=withdrawn)
        step = _Step(session, runtime.settings, backfill, Scope.of(backfill), now)
        asked, note, status = await _advance(step, current(runtime.settings))
        await session.run("note_tick", backfill_id=step.id, note=note)
        if status in _ENDS and status != backfill.status:
            await append(session, [of_backfill(_ENDS[status], step.id)])
    return Tick(note, step.id, asked, withdrawn, status)


async def _advance(step: _Step, ours: Versions) -> tuple[int, str, str]:
    """The number of requested revisions, a message, and the new status."""
    if step.backfill.status != "RUNNING":
        return 0, "it is paused", "PAUSED"
    if not ours.reach(step.scope.versions, same_model=step.scope.other_models):
        return 0, _out_of_reach(ours, step.scope), "RUNNING"
    if (reason := await _too_many_failures(step)) is not None:
        return 0, reason, await _pause(step, reason)
    fresh = await count_waiting(step.session, ours)
    if fresh:
        return 0, f"{fresh} fresh jobs wait; they go first", "RUNNING"
    progress = await step.session.only(BackfillProgress, "backfill_progress", backfill_id=step.id)
    in_queue = progress.in_queue
    room = step.settings.backfill_revisions_per_tick - in_queue
    if room <= 0:
        return 0, f"{in_queue} of it are still in the queue", "RUNNING"
    return await _ask(step, room, in_queue, await _budget(step))


async def _ask(step: _Step, room: int, in_queue: int, budget: Budget) -> tuple[int, str, str]:
    chosen, fitting = await _choose(step, room, budget)
    if chosen:
        await requests.ask_for_backfill(
            step.session,
            step.id,
            [(row.job_id, tokens) for row, tokens in chosen],
            step.scope.versions,
            same_model=step.scope.other_models,
            requested_by=step.backfill.requested_by,
        )
        return len(chosen), f"asked for {len(chosen)} revisions", "RUNNING"
    if fitting.exhausted:
        day = f"{budget.used:,} used and {budget.reserved:,} reserved of {budget.per_day:,}"
        return 0, f"today's tokens do not suffice for the next one: {day}", "RUNNING"
    remaining = await step.session.value(int, "count_remaining", **step.parameters())
    # If all of these are too large, the next step would only look at the same ones again.
    no_end = len(fitting.too_large) >= room * PAGES
    all_too_large = bool(fitting.too_large) and remaining <= len(fitting.too_large)
    if (no_end or all_too_large) and not in_queue:
        reason = (
            f"{len(fitting.too_large)} revisions need more than a whole day's tokens each: raise "
            "BACKFILL_TOKENS_PER_DAY and resume, or cancel"
        )
        return 0, reason, await _pause(step, reason)
    if remaining or in_queue:
        return 0, f"waits for {remaining + in_queue} that are in work", "RUNNING"
    await step.session.run(
        "set_backfill_status", backfill_id=step.id, status="DONE", reason="nothing is left"
    )
    return 0, "nothing is left", "DONE"


async def _choose(
    step: _Step, room: int, budget: Budget
) -> tuple[list[_Priced], FittingItems[_Priced]]:
    """Choose the newest revisions, skipping those larger than a whole day's budget."""
    too_large: list[_Priced] = []
    estimator = Estimator(step.session, step.settings, step.scope.versions)
    for _ in range(PAGES):
        rows = await step.session.rows(
            OutdatedRevision,
            "next_revisions",
            **step.parameters(),
            limit=room,
            without=[row.job_id for row, _ in too_large],
        )
        costs = await estimator.price(rows)
        priced = [((row, cost.tokens), cost.tokens) for row, cost in zip(rows, costs, strict=True)]
        fitting = fit(budget, priced)
        too_large += fitting.too_large
        if fitting.today or fitting.exhausted or not rows:
            break
    return fitting.today, FittingItems(fitting.today, too_large, fitting.exhausted)


async def _budget(step: _Step) -> Budget:
    used = await step.session.value(int, "tokens_of_day", now=step.now)
    reserved = await step.session.value(int, "tokens_reserved")
    return Budget(step.settings.backfill_tokens_per_day, used, reserved)


async def _too_many_failures(step: _Step) -> str | None:
    last = await step.session.only(
        Endings, "last_endings", backfill_id=step.id, limit=_LAST_ENDINGS
    )
    if last.ended < _ENOUGH_ENDINGS or last.failed * 2 < last.ended:
        return None
    return (
        f"{last.failed} of the last {last.ended} failed (`mcp-memory jobs --status FAILED` "
        "says why); their old events are still served"
    )


async def _pause(step: _Step, reason: str) -> str:
    await step.session.run(
        "set_backfill_status", backfill_id=step.id, status="PAUSED", reason=reason
    )
    await requests.withdraw_stopped(step.session)
    return "PAUSED"


def _out_of_reach(ours: Versions, scope: Scope) -> str:
    wanted = scope.versions
    if scope.other_models and ours.model != wanted.model:
        return f"it is for {wanted.model}, this deployment has {ours.model}: left to another one"
    return (
        f"it is for {wanted.extractor} {wanted.extract}/{wanted.merge}, this deployment has "
        f"{ours.extractor} {ours.extract}/{ours.merge}: left to a newer one"
    )
