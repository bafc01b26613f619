"""The first runs of a new memory: figures and checks are shown within its first hour, not after the
first night of schedules."""

import dagster as dg

from memory_assets.backfill import PROMPT_TRIAL
from memory_assets.checks import integrity_job
from memory_assets.housekeeping import housekeeping_schedule
from memory_assets.memory_resource import MemoryResource
from memory_assets.operations import freshness_schedule, health_schedule
from memory_core.kernel.errors import PostgresUnavailable
from memory_core.upkeep.metrics import any_document_is_done

# The states of the cursor: what has been requested so far.
STARTED, CHECKED = "started", "checked"
_JOBS = {
    STARTED: (health_schedule.job, housekeeping_schedule.job),
    CHECKED: (integrity_job, freshness_schedule.job, health_schedule.job),
}
# Without this materialisation the asset would be shown as missing.
_NO_TRIAL = dg.AssetMaterialization(
    PROMPT_TRIAL,
    description="No prompt was tried yet: `mcp-memory backfill trial`, or the job try_prompt.",
)


@dg.sensor(
    jobs=list({job.name: job for look in _JOBS.values() for job in look}.values()),
    description="Once: figures and upkeep at the first start, all checks when the first documents "
    "are done. Later these have schedules.",
    minimum_interval_seconds=20,
    default_status=dg.DefaultSensorStatus.RUNNING,
)
def first_look(
    context: dg.SensorEvaluationContext, memory: MemoryResource
) -> dg.SensorResult | dg.SkipReason:
    looked = (context.cursor or "").split()
    if CHECKED in looked:
        return dg.SkipReason("schedules look after it now")
    try:
        due = [STARTED, *([CHECKED] if memory.ask(any_document_is_done) else [])]
    except PostgresUnavailable as fault:
        return dg.SkipReason(fault.message)
    new = [look for look in due if look not in looked]
    if not new:
        return dg.SkipReason("no document is done yet")
    return dg.SensorResult(
        run_requests=[
            dg.RunRequest(run_key=f"{look}-{job.name}", job_name=job.name)
            for look in new
            for job in _JOBS[look]
        ],
        asset_events=[_NO_TRIAL] if STARTED in new and not _tried(context.instance) else [],
        cursor=" ".join(due),
    )


def _tried(instance: dg.DagsterInstance) -> bool:
    return instance.get_latest_materialization_event(_NO_TRIAL.asset_key) is not None
