"""The queue and Dagster: pending jobs become runs, and what a dead run held comes back."""

import asyncio
import time

import dagster as dg

from memory_assets import graveyard
from memory_assets.events import EVIDENCE_CHECK_KEY, extract_revisions
from memory_assets.partitions import REVISIONS
from memory_assets.requests import (
    Requested,
    batches,
    lane_tags,
    lanes,
    remember,
    still_wanted,
)
from memory_assets.resources import MemoryResource
from memory_assets.tags import FROM_QUEUE, describe
from memory_core import claims, jobs
from memory_core.database import Row
from memory_core.errors import PostgresUnavailable
from memory_core.extraction.versions import current

JOBS_PER_TICK = 1000
# A tick waits this long for work to appear: the daemon itself looks only every five seconds.
WAIT_SECONDS = 4.0
POLL_SECONDS = 0.2
_RANGE_START = "dagster/asset_partition_range_start"
_RANGE_END = "dagster/asset_partition_range_end"

extraction_job = dg.define_asset_job(
    "extract_pending",
    # Without the checks of the whole database: those are the business of the integrity job.
    selection=dg.AssetSelection.assets(extract_revisions).without_checks()
    | dg.AssetSelection.checks(EVIDENCE_CHECK_KEY),
    description="Extract the revisions whose jobs are pending.",
)


@dg.sensor(
    job=extraction_job,
    description="Requests runs for the jobs that are due. Only reads the queue.",
    minimum_interval_seconds=1,
    default_status=dg.DefaultSensorStatus.RUNNING,
)
def pending_jobs(
    context: dg.SensorEvaluationContext, memory: MemoryResource
) -> dg.SensorResult | dg.SkipReason:
    """Requests runs for claimable jobs. Only reads the queue: the run itself claims."""
    requested = Requested.from_cursor(context.cursor)
    try:
        asyncio.run(_bury_silent_runs(context, memory))
        due = asyncio.run(_wait_for_work(context, memory, requested))
        if not due:
            return dg.SkipReason("no pending jobs")
        keys = [row["partition_key"] for row in due]
        context.instance.add_dynamic_partitions(REVISIONS.name, keys)  # type: ignore[arg-type]
        places = {place["partition_key"]: place for place in asyncio.run(_places(memory, keys))}
    except PostgresUnavailable as fault:
        return dg.SkipReason(fault.message)
    requests = [
        _request(batch, places) for lane in lanes(due) for batch in batches(lane, _of(lane, places))
    ]
    for request, batch in requests:
        remember(requested, batch, request.run_key or "")
    return dg.SensorResult(
        run_requests=[request for request, _ in requests], cursor=requested.to_cursor()
    )


def _of(lane: list[Row], places: dict[str, Row]) -> list[Row]:
    return [places[row["partition_key"]] for row in lane if row["partition_key"] in places]


async def _bury_silent_runs(context: dg.SensorEvaluationContext, memory: MemoryResource) -> None:
    if not (suspected := graveyard.suspects(context.instance)):
        return
    async with memory.database() as database:
        silent = await jobs.silent_runs(database, suspected)
    graveyard.bury(context.instance, silent, "It gave no sign of life for too long.")


async def _wait_for_work(
    context: dg.SensorEvaluationContext, memory: MemoryResource, requested: Requested
) -> list[Row]:
    deadline = time.monotonic() + WAIT_SECONDS
    async with memory.database() as database:
        while True:
            rows = await jobs.claimable(database, JOBS_PER_TICK, versions=current(memory.settings))
            requested.forget_all_but(rows, complete=len(rows) < JOBS_PER_TICK)
            over: dict[str, bool] = {}
            due = [row for row in rows if still_wanted(row, requested, context.instance, over)]
            if due or time.monotonic() >= deadline:
                return due
            await asyncio.sleep(POLL_SECONDS)


async def _places(memory: MemoryResource, keys: list[str]) -> list[Row]:
    async with memory.database() as database:
        return await claims.places_of(database, keys)


def _request(batch: list[Row], places: dict[str, Row]) -> tuple[dg.RunRequest, list[Row]]:
    """One key by its name, several as a range of neighbours."""
    first, last = batch[0]["partition_key"], batch[-1]["partition_key"]
    run_key = f"{batch[0]['job_id']}-{time.time_ns()}"
    tags = describe(FROM_QUEUE, (places[row["partition_key"]] for row in batch)) | lane_tags(batch)
    if len(batch) == 1:
        return dg.RunRequest(run_key=run_key, partition_key=first, tags=tags), batch
    tags |= {_RANGE_START: first, _RANGE_END: last}
    return dg.RunRequest(run_key=run_key, tags=tags), batch


@dg.run_status_sensor(
    run_status=dg.DagsterRunStatus.FAILURE,
    description="What a run that died still held is due again at once.",
    default_status=dg.DefaultSensorStatus.RUNNING,
    minimum_interval_seconds=1,
)
def release_after_failure(context: dg.RunStatusSensorContext, memory: MemoryResource) -> None:
    """What a run that died still held is due again at once, and what it did store is shown."""
    _release(context, memory)


@dg.run_status_sensor(
    run_status=dg.DagsterRunStatus.CANCELED,
    description="What a cancelled run still held is due again at once.",
    default_status=dg.DefaultSensorStatus.RUNNING,
    minimum_interval_seconds=1,
)
def release_after_cancel(context: dg.RunStatusSensorContext, memory: MemoryResource) -> None:
    """What a cancelled run still held is due again at once."""
    _release(context, memory)


def _release(context: dg.RunStatusSensorContext, memory: MemoryResource) -> None:
    run = context.dagster_run

    async def release() -> tuple[list[Row], list[Row]]:
        async with memory.database() as database:
            reason = context.dagster_event.message or "the run ended before its work was done"
            released = await jobs.release_run(database, run.run_id, reason)
            return released, await jobs.stored_by(database, run.run_id)

    released, stored = asyncio.run(release())
    mended = graveyard.show_what_was_stored(context.instance, run, stored) if stored else 0
    if released or mended:
        context.log.info(f"run {run.run_id}: {len(released)} jobs released, {mended} shown as done")
