"""The checks of `memory_core.upkeep.integrity` as asset checks, each on its own schedule."""

import asyncio

import dagster as dg

from memory_assets.memory_resource import MemoryResource
from memory_assets.schedules import scheduled
from memory_core.processing.stages import EVENT_INDEX, STORED_EVENTS
from memory_core.upkeep.integrity import CHECKS, CheckResult, IntegrityCheck

# Checks of the index are shown on the index asset, all others on the stored events.
_ASSET = {"index_agrees": EVENT_INDEX, "projections_keep_up": EVENT_INDEX}
_SEVERITY = {
    "index_agrees": dg.AssetCheckSeverity.WARN,
    "projections_keep_up": dg.AssetCheckSeverity.WARN,
}


def _asset_check(check: IntegrityCheck) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset=_ASSET.get(check.name, STORED_EVENTS),
        name=check.name,
        description=f"{check.description} Over the whole database.",
        blocking=False,
    )
    def examine(memory: MemoryResource) -> dg.AssetCheckResult:
        return result(check, asyncio.run(_examine(memory, check)))

    return examine


def result(check: IntegrityCheck, finding: CheckResult) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        passed=finding.passed,
        severity=_SEVERITY.get(check.name, dg.AssetCheckSeverity.ERROR),
        metadata={
            "offenders": finding.total,
            "first": "\n".join(finding.offenders) or "none",
            "remedy": f"mcp-memory doctor --repair. {check.remedy}",
            **finding.counts,
        },
    )


async def _examine(memory: MemoryResource, check: IntegrityCheck) -> CheckResult:
    async with memory.runtime() as runtime:
        return await check.examine(runtime)


integrity_checks = {check.name: _asset_check(check) for check in CHECKS}

integrity_job = dg.define_asset_job(
    "integrity",
    selection=dg.AssetSelection.checks(*integrity_checks.values()),
    description="All checks over the whole database.",
)


integrity_schedules = [
    scheduled(
        f"{check.name}_schedule",
        f"verify_{check.name}",
        dg.AssetSelection.checks(integrity_checks[check.name]),
        check.cron,
        check.description,
    )
    for check in CHECKS
]
