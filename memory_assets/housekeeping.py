"""Upkeep as an asset, so that each run's results can be looked up and plotted."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from memory_assets import old_runs, partition_retirement
from memory_assets.memory_resource import MemoryResource
from memory_assets.operations import OPERATIONS
from memory_assets.schedules import scheduled
from memory_assets.specs import OWNERS
from memory_core.kernel.database import Database
from memory_core.kernel.settings import Settings
from memory_core.log import log_upkeep
from memory_core.telemetry.audit_partitions import keep_audit
from memory_core.upkeep import cache_sweep, retention, statistics
from memory_core.upkeep.vacuum import SCHEMAS, vacuum
from stack import dagster_lineage
from stack.dagster_orchestrator import DagsterOrchestrator

# Limits of one run. The next hour's run takes the rest.
RUNS_PER_TIME = 5_000
CHECK_RESULTS_PER_TIME = 50_000
CACHE_ENTRIES_PER_TIME = 100_000
_RUNS_PER_BATCH = 100
# Where Dagster keeps its tables.
_DAGSTERS_SCHEMA = "dagster"


@dg.asset(
    group_name=OPERATIONS,
    owners=OWNERS,
    kinds={"postgres", "dagster"},
    tags={"cost": "none", "serves": "operators"},
    description="""\
Upkeep, every hour, in small steps that block no other work. Documents whose retention policy has
expired are deleted. Keys of superseded and old revisions are retired beyond `MAX_LIVE_PARTITIONS`
(a request to extract a revision again brings its key back); finished runs are deleted after
`HISTORY_DAYS`, except for the last run of a listed partition; cached answers that no request can
use are deleted, and so is what runs wrote about documents that were deleted meanwhile; the
statistics that searches rank by are counted again; the log gets the partitions of the next months,
and those older than `LOG_MONTHS` are archived; the audit gets its partitions, and those older than
`AUDIT_DAYS` are dropped; tables with many dead rows are vacuumed.""",
)
def housekeeping(context: dg.AssetExecutionContext, memory: MemoryResource) -> dg.MaterializeResult:  # type: ignore[type-arg]
    return dg.MaterializeResult(metadata=asyncio.run(_keep_house(context, memory)))


async def _keep_house(context: dg.AssetExecutionContext, memory: MemoryResource) -> dict[str, Any]:
    settings = memory.settings
    async with memory.database(connections=2) as database, _exclusive(database):
        expired = await retention.run(database, DagsterOrchestrator(), datetime.now(UTC))
        retired = await partition_retirement.retire(database, settings.max_live_partitions)
        done: dict[str, Any] = {
            "expired_documents": len(expired.deleted),
            "expired_documents_that_failed": len(expired.failed),
            "live_partitions": retired.live,
            "retired_partitions": retired.retired,
            "pruned_runs": await _prune_runs(context, database, settings.history_days),
            "pruned_check_results": await old_runs.prune_check_results(
                database, settings.history_days, CHECK_RESULTS_PER_TIME
            ),
            "dropped_cache_entries": await cache_sweep.sweep(
                database, settings, most=CACHE_ENTRIES_PER_TIME
            ),
            "searched_passages": await statistics.rebuild(database),
        }
        done["forgotten_partitions"] = await dagster_lineage.forget_left_behind(database)
        done["dropped_embeddings"] = await cache_sweep.sweep_embeddings(
            database, settings.cache_days
        )
        done |= await _keep_log(database, settings)
        audit = await keep_audit(database, settings.audit_days)
        done["made_audit_partitions"] = len(audit.made)
        done["dropped_audit_partitions"] = len(audit.dropped)
        vacuumed = await vacuum(database, schemas=[*SCHEMAS, _DAGSTERS_SCHEMA])
    if retired.kept:
        done["more_partitions_than_the_limit"] = retired.kept
    return done | {"vacuumed_tables": len(vacuumed), "vacuumed": ", ".join(vacuumed) or "none"}


async def _keep_log(database: Database, settings: Settings) -> dict[str, Any]:
    kept = await log_upkeep.keep_log(database, settings)
    return {
        "made_log_partitions": len(kept.made),
        "archived_log_partitions": len(kept.archived),
        "log_snapshots": kept.snapshots,
    }


@asynccontextmanager
async def _exclusive(database: Database) -> AsyncIterator[None]:
    async with database.session() as session:
        if not await session.value(bool, "try_housekeeping_lock"):
            raise dg.Failure(
                "Another housekeeping run is at work; this one changed nothing.",
                allow_retries=False,
            )
        try:
            yield
        finally:
            await session.run("release_housekeeping_lock")


async def _prune_runs(context: dg.AssetExecutionContext, database: Database, days: int) -> int:
    pruned = 0
    while pruned < RUNS_PER_TIME:
        batch = await old_runs.prunable_runs(database, days, _RUNS_PER_BATCH, [context.run_id])
        for run_id in batch:
            # Delete the captured output first: nothing refers to it once the run is gone.
            context.instance.compute_log_manager.delete_logs(prefix=[run_id])
            context.instance.delete_run(run_id)
        pruned += len(batch)
        if len(batch) < _RUNS_PER_BATCH:
            break
    return pruned


housekeeping_schedule = scheduled(
    "housekeeping_schedule",
    "keep_house",
    dg.AssetSelection.assets(housekeeping),
    "37 * * * *",
    "Retire partitions, prune history, drop unused answers, vacuum: every hour.",
)
