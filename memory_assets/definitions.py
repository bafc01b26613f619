"""Everything Dagster is told about the memory."""

import dagster as dg

from memory_assets.checks import (
    every_event_has_evidence,
    every_quote_is_exact,
    integrity_job,
    integrity_schedule,
)
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
    asset_checks=[every_quote_is_exact, every_event_has_evidence],
    jobs=[extraction_job, integrity_job],
    schedules=[integrity_schedule],
    sensors=[pending_jobs, release_after_failure, release_after_cancel],
    resources={"memory": MemoryResource()},
    # Documents of a run are concurrent by asyncio; a process per step would only cost seconds.
    executor=dg.in_process_executor,
)
