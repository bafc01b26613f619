"""The Dagster definitions: assets, jobs, schedules, sensors and resources."""

import dagster as dg

from memory_assets.backfill import (
    finished_trials,
    prompt_trial,
    prompt_trial_job,
    prompt_upgrade,
    prompt_upgrade_job,
)
from memory_assets.checks import integrity_checks, integrity_job, integrity_schedules
from memory_assets.extraction_assets import extract_revisions
from memory_assets.first_look import first_look
from memory_assets.housekeeping import housekeeping, housekeeping_schedule
from memory_assets.memory_resource import MemoryResource
from memory_assets.operations import (
    events_are_fresh,
    freshness_schedule,
    health_schedule,
    pipeline_health,
)
from memory_assets.sensors import (
    extraction_job,
    pending_jobs,
    release_after_cancel,
    release_after_failure,
)

defs = dg.Definitions(
    assets=[extract_revisions, prompt_trial, pipeline_health, housekeeping],
    asset_checks=[*integrity_checks.values(), events_are_fresh],
    jobs=[extraction_job, integrity_job, prompt_upgrade_job, prompt_trial_job],
    schedules=[
        *integrity_schedules,
        freshness_schedule,
        health_schedule,
        housekeeping_schedule,
        prompt_upgrade,
    ],
    sensors=[
        pending_jobs,
        release_after_failure,
        release_after_cancel,
        finished_trials,
        first_look,
    ],
    resources={"memory": MemoryResource()},
    # A run works on its documents concurrently with asyncio. A process per step would only cost
    # seconds.
    executor=dg.in_process_executor,
)
