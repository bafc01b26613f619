"""Everything Dagster is told about the memory."""

import dagster as dg

from memory_assets.checks import integrity_checks, integrity_job, integrity_schedules
from memory_assets.events import extract_revisions
from memory_assets.resources import MemoryResource
from memory_assets.sensors import (
    extraction_job,
    pending_jobs,
    release_after_cancel,
    release_after_failure,
)

defs = dg.Definitions(
    assets=[extract_revisions],
    asset_checks=list(integrity_checks.values()),
    jobs=[extraction_job, integrity_job],
    schedules=integrity_schedules,
    sensors=[pending_jobs, release_after_failure, release_after_cancel],
    resources={"memory": MemoryResource()},
    # Documents of a run are concurrent by asyncio; a process per step would only cost seconds.
    executor=dg.in_process_executor,
)
