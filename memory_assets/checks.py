"""Checks that run in production over the whole database."""

import asyncio

import dagster as dg

from memory_assets.resources import MemoryResource
from memory_core.events.checks import all_broken_evidence, events_without_evidence
from memory_core.extraction.pipeline import STORED_EVENTS

_OFFENDERS_SHOWN = 20


@dg.asset_check(asset=STORED_EVENTS, name="every_quote_is_exact", blocking=False)
def every_quote_is_exact(memory: MemoryResource) -> dg.AssetCheckResult:
    """Every quote in the database equals the text at its offsets and has at most 25 words."""

    async def ask() -> list[str]:
        async with memory.database() as database:
            rows = await all_broken_evidence(database, _OFFENDERS_SHOWN)
        return [f"{row['event_id']} at {row['artifact_uid']}" for row in rows]

    return _result(asyncio.run(ask()))


@dg.asset_check(asset=STORED_EVENTS, name="every_event_has_evidence", blocking=False)
def every_event_has_evidence(memory: MemoryResource) -> dg.AssetCheckResult:
    """No event in the database is without evidence."""

    async def ask() -> list[str]:
        async with memory.database() as database:
            rows = await events_without_evidence(database, _OFFENDERS_SHOWN)
        return [f"{row['event_id']} at {row['artifact_uid']}" for row in rows]

    return _result(asyncio.run(ask()))


def _result(offenders: list[str]) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        passed=not offenders,
        severity=dg.AssetCheckSeverity.ERROR,
        metadata={"offenders": len(offenders), "first": "\n".join(offenders) or "none"},
    )


integrity_job = dg.define_asset_job(
    "integrity",
    selection=dg.AssetSelection.checks(every_quote_is_exact, every_event_has_evidence),
    description="Ask the database whether every event is still proved.",
)

integrity_schedule = dg.ScheduleDefinition(
    name="integrity_nightly",
    job=integrity_job,
    cron_schedule="0 3 * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
)
