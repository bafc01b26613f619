"""Which jobs still need a run, and how they are divided into runs."""

import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from uuid import UUID

import dagster as dg

from memory_assets.unclaimed import PartitionPlace
from memory_core.queue import jobs
from memory_core.queue.jobs import ClaimableJob

REVISIONS_PER_RUN = 200
# A backfill stops between two runs, never within one.
RENEWALS_PER_RUN = 100
SUSPECTS_PER_RUN = 25
# A request of this age is still on its way: its run may not exist yet.
YOUNG_SECONDS = 20.0
LANE_TAG = "lane"
PRIORITY_TAG = "dagster/priority"
BACKFILL_PRIORITY = -10
# Higher than every priority that a job can have.
FRONT = 1000
QUEUED_SECONDS = 900.0
RUNS_AGED_AT_ONCE = 10


def still_wanted(row: ClaimableJob, instance: dg.DagsterInstance, over: dict[str, bool]) -> bool:
    """Whether no run is under way for this request.

    `over` caches, for one look at the queue, which runs have ended: a hundred jobs may wait for one
    run.
    """
    run_key = row.run_key
    if run_key is None:
        return True
    if (row.requested_seconds_ago or 0.0) < YOUNG_SECONDS:
        return False
    if run_key not in over:
        runs = instance.get_runs(dg.RunsFilter(tags={"dagster/run_key": run_key}), limit=1)
        over[run_key] = not runs or runs[0].is_finished
    return over[run_key]


def busy_tenants(rows: Sequence[ClaimableJob], wanted: Sequence[ClaimableJob]) -> frozenset[UUID]:
    """Tenants that have fresh work on its way. `rows` are all jobs that the sensor looked at."""
    named = {row.job_id for row in wanted}
    return frozenset(
        row.tenant_id
        for row in rows
        if row.run_key and row.backfill_id is None and row.job_id not in named
    )


def worth_a_run(rows: Sequence[ClaimableJob], wanted: Sequence[ClaimableJob]) -> list[ClaimableJob]:
    """The wanted jobs that should not wait for more to come.

    A run costs half a second, whatever it works on. While one run is about to begin, the next one
    gathers jobs until it is full. So an import becomes few runs, and a single note gets a run at
    once. One tenant never waits for what other tenants have on its way. `rows` are all jobs that
    the sensor looked at, including those on their way.
    """
    named = {row.job_id for row in wanted}
    gathering = {row.backfill_id is None for row in rows if row.run_key and row.job_id not in named}
    busy = busy_tenants(rows, wanted)
    return [
        row
        for lane in lanes(wanted, busy)
        if (lane[0].backfill_id is None) not in gathering
        or _goes_ahead(lane[0], busy)
        or len(lane) >= REVISIONS_PER_RUN
        for row in lane
    ]


def lanes(
    due: Sequence[ClaimableJob], busy: frozenset[UUID] = frozenset()
) -> list[list[ClaimableJob]]:
    """Divide jobs into lanes that never share a run: fresh work first, then backfills. Before both
    come the tenants that have nothing on its way while other tenants do, so that no tenant waits
    for the long queue of another."""
    ahead = [row for row in due if _goes_ahead(row, busy)]
    fresh = [row for row in due if row.backfill_id is None and not _goes_ahead(row, busy)]
    later = [row for row in due if row.backfill_id is not None]
    return [lane for lane in (ahead, fresh, later) if lane]


def _goes_ahead(row: ClaimableJob, busy: frozenset[UUID]) -> bool:
    return bool(busy) and row.backfill_id is None and row.tenant_id not in busy


def lane_tags(batch: Sequence[ClaimableJob], busy: frozenset[UUID] = frozenset()) -> dict[str, str]:
    """Tags that place a run in Dagster's queue. `dagster.yaml` allows one backfill run at a time:
    slots stay free for fresh work, and no two backfill runs ask about the same passage at once."""
    backfill = batch[0].backfill_id
    if backfill is None:
        highest = max(row.priority for row in batch) + _goes_ahead(batch[0], busy)
        return {PRIORITY_TAG: str(highest)} if highest else {}
    return {LANE_TAG: "backfill", "backfill": str(backfill), PRIORITY_TAG: str(BACKFILL_PRIORITY)}


def let_old_runs_pass(instance: dg.DagsterInstance) -> list[str]:
    """Move runs that have waited too long in Dagster's queue to its front, whatever their priority
    was. Returns their ids."""
    oldest = datetime.fromtimestamp(time.time() - QUEUED_SECONDS, tz=UTC)
    waiting = instance.get_run_records(
        dg.RunsFilter(statuses=[dg.DagsterRunStatus.QUEUED], created_before=oldest),
        limit=RUNS_AGED_AT_ONCE,
        ascending=True,
    )
    passed = []
    for record in waiting:
        run = record.dagster_run
        if run.tags.get(PRIORITY_TAG) != str(FRONT):
            instance.add_run_tags(run.run_id, {PRIORITY_TAG: str(FRONT)})
            passed.append(run.run_id)
    return passed


def batches(
    due: Sequence[ClaimableJob], places: Iterable[PartitionPlace]
) -> list[list[ClaimableJob]]:
    """Groups of neighbouring partitions, since a range includes every key between its ends.

    Jobs without a key in Dagster's list (retired a moment ago) wait for the next tick. Jobs whose
    last run died share a run with a few of their kind, and get a run alone when that one dies too.
    So a job that kills its run does not take unrelated jobs with it.
    """
    jobs_by_key = {row.partition_key: row for row in due}
    groups: list[list[ClaimableJob]] = []
    last: int | None = None
    for place in sorted(places, key=lambda place: place.id):
        row = jobs_by_key[place.partition_key]
        if groups and last is not None and place.before == last and _room(groups[-1], row):
            groups[-1].append(row)
        else:
            groups.append([row])
        last = place.id
    # The group with the earliest due job is requested first.
    turn = {row.partition_key: number for number, row in enumerate(due)}
    return sorted(groups, key=lambda group: min(turn[row.partition_key] for row in group))


def _room(group: Sequence[ClaimableJob], row: ClaimableJob) -> bool:
    return len(group) < min(_largest_run(group[-1]), _largest_run(row)) and (
        _died(group[-1]) == _died(row)
    )


def _largest_run(row: ClaimableJob) -> int:
    """How many jobs may share a run with this one."""
    if not _died(row):
        return REVISIONS_PER_RUN if row.backfill_id is None else RENEWALS_PER_RUN
    return SUSPECTS_PER_RUN if row.attempts < 2 else 1


def _died(row: ClaimableJob) -> bool:
    return bool(row.last_error_code == jobs.RUN_DIED)
