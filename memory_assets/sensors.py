"""Sensors between the queue and Dagster: they request runs for pending jobs, and release the jobs
of dead runs."""

import asyncio
import time
from uuid import UUID

import dagster as dg

from memory_assets import dead_runs, unclaimed
from memory_assets.extraction_assets import EVIDENCE_CHECK_KEY, extract_revisions
from memory_assets.memory_resource import MemoryResource
from memory_assets.revision_partitions import REVISIONS
from memory_assets.run_requests import (
    batches,
    busy_tenants,
    lane_tags,
    lanes,
    let_old_runs_pass,
    still_wanted,
    worth_a_run,
)
from memory_assets.tags import FROM_QUEUE, describe, trace_tags
from memory_assets.unclaimed import PartitionPlace
from memory_core.extraction.current_versions import current
from memory_core.kernel.database import Database
from memory_core.kernel.errors import PostgresUnavailable
from memory_core.queue import jobs
from memory_core.queue.jobs import ClaimableJob, JobSummary, StoredEvents

JOBS_PER_TICK = 1000
_RANGE_START = "dagster/asset_partition_range_start"
_RANGE_END = "dagster/asset_partition_range_end"

extraction_job = dg.define_asset_job(
    "documents_to_events",
    # Without the checks of the whole database: those belong to the integrity job.
    selection=dg.AssetSelection.assets(extract_revisions).without_checks()
    | dg.AssetSelection.checks(EVIDENCE_CHECK_KEY),
    description="Documents become events: the revisions whose jobs are pending.",
)


@dg.sensor(
    job=extraction_job,
    description="Requests runs for the jobs that are due. Changes no job.",
    minimum_interval_seconds=1,
    default_status=dg.DefaultSensorStatus.RUNNING,
)
def pending_jobs(
    context: dg.SensorEvaluationContext, memory: MemoryResource
) -> dg.SensorResult | dg.SkipReason:
    """Request runs for claimable jobs and record the requests. The run itself claims the jobs."""
    if context.cursor:
        context.update_cursor(None)  # earlier versions kept their requests in the cursor
    try:
        return asyncio.run(_request_runs(context, memory))
    except PostgresUnavailable as fault:
        return dg.SkipReason(fault.message)


async def _request_runs(
    context: dg.SensorEvaluationContext, memory: MemoryResource
) -> dg.SensorResult | dg.SkipReason:
    async with memory.database() as database:
        await _fail_silent_runs(context, database)
        await _end_stuck_runs(context, database, memory.settings.stuck_run_minutes)
        let_old_runs_pass(context.instance)
        due, busy = await _due(context.instance, database, memory)
        if not due:
            return dg.SkipReason("no pending jobs")
        keys = [row.partition_key for row in due]
        context.instance.add_dynamic_partitions(REVISIONS.name, keys)  # type: ignore[arg-type]
        places = {row.partition_key: row for row in await unclaimed.places_of(database, keys)}
        requests = [
            (_request(batch, places, busy), batch)
            for lane in lanes(due, busy)
            for batch in batches(lane, _places_of(lane, places))
        ]
        await jobs.remember_requests(
            database, [(row, request.run_key or "") for request, batch in requests for row in batch]
        )
    return dg.SensorResult(run_requests=[request for request, _ in requests])


def _places_of(lane: list[ClaimableJob], places: dict[str, PartitionPlace]) -> list[PartitionPlace]:
    return [places[row.partition_key] for row in lane if row.partition_key in places]


async def _fail_silent_runs(context: dg.SensorEvaluationContext, database: Database) -> None:
    if suspected := dead_runs.suspects(context.instance):
        silent = await jobs.silent_runs(database, suspected)
        dead_runs.mark_failed(context.instance, silent, "It gave no sign of life for too long.")


async def _end_stuck_runs(
    context: dg.SensorEvaluationContext, database: Database, minutes: float
) -> None:
    for row in await jobs.stuck_runs(database, minutes):
        reason = (
            f"Run {row.run_id} was alive but made no progress with its {row.jobs} documents "
            f"for {row.seconds / 60:.0f} minutes (STUCK_RUN_MINUTES={minutes:g}); it was ended."
        )
        context.log.warning(reason)
        # Release the leases first: then the process cannot store anything, even if it survives.
        await jobs.release_run(database, row.run_id, reason, code=jobs.RUN_STUCK)
        dead_runs.end(context.instance, row.run_id, reason)


async def _due(
    instance: dg.DagsterInstance, database: Database, memory: MemoryResource
) -> tuple[list[ClaimableJob], frozenset[UUID]]:
    """The jobs to request runs for, and the tenants that have fresh work on its way."""
    rows = await jobs.claimable(database, JOBS_PER_TICK, versions=current(memory.settings))
    over: dict[str, bool] = {}
    wanted = [row for row in rows if still_wanted(row, instance, over)]
    return worth_a_run(rows, wanted), busy_tenants(rows, wanted)


def _request(
    batch: list[ClaimableJob], places: dict[str, PartitionPlace], busy: frozenset[UUID]
) -> dg.RunRequest:
    """A run request for one key by its name, or for a range of neighbouring keys."""
    first, last = batch[0].partition_key, batch[-1].partition_key
    run_key = f"{batch[0].job_id}-{time.time_ns()}"
    tags = describe(FROM_QUEUE, (places[row.partition_key] for row in batch)) | lane_tags(
        batch, busy
    )
    tags |= trace_tags(row.trace_id for row in batch)
    if len(batch) == 1:
        return dg.RunRequest(run_key=run_key, partition_key=first, tags=tags)
    tags |= {_RANGE_START: first, _RANGE_END: last}
    return dg.RunRequest(run_key=run_key, tags=tags)


@dg.run_status_sensor(
    run_status=dg.DagsterRunStatus.FAILURE,
    description="The jobs of a run that died are due again at once.",
    default_status=dg.DefaultSensorStatus.RUNNING,
    minimum_interval_seconds=1,
)
def release_after_failure(context: dg.RunStatusSensorContext, memory: MemoryResource) -> None:
    """Make the jobs of a dead run due again at once, and show the events that it stored."""
    _release(context, memory)


@dg.run_status_sensor(
    run_status=dg.DagsterRunStatus.CANCELED,
    description="The jobs of a cancelled run are due again at once.",
    default_status=dg.DefaultSensorStatus.RUNNING,
    minimum_interval_seconds=1,
)
def release_after_cancel(context: dg.RunStatusSensorContext, memory: MemoryResource) -> None:
    """Make the jobs of a cancelled run due again at once."""
    _release(context, memory)


def _release(context: dg.RunStatusSensorContext, memory: MemoryResource) -> None:
    run = context.dagster_run

    async def release() -> tuple[list[JobSummary], list[StoredEvents]]:
        async with memory.database() as database:
            reason = context.dagster_event.message or "the run ended before its work was done"
            released = await jobs.release_run(database, run.run_id, reason)
            return released, await jobs.stored_by(database, run.run_id)

    released, stored = asyncio.run(release())
    corrected = dead_runs.show_what_was_stored(context.instance, run, stored) if stored else 0
    if released or corrected:
        context.log.info(
            f"run {run.run_id}: {len(released)} jobs released, {corrected} shown as done"
        )
