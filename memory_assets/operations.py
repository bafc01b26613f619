"""What an operator watches over time: figures of the pipeline, and how long documents wait."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import timedelta

import dagster as dg

from memory_assets.memory_resource import MemoryResource
from memory_assets.schedules import scheduled
from memory_assets.specs import OWNERS
from memory_core.processing.stages import STORED_EVENTS
from memory_core.upkeep.metrics import PipelineMetrics, oldest_pending_seconds, read_metrics

OPERATIONS = "operations"


@dg.asset(
    group_name=OPERATIONS,
    owners=OWNERS,
    kinds={"postgres"},
    tags={"cost": "none", "serves": "operators"},
    description="""\
Figures of the pipeline, recorded every hour: revisions, events, calls and tokens of the last 24
hours, the share that failed, how long a document waits for its events (p95), and the queue. Each
figure has its plot over time on this page.""",
    # Unlike the events, these figures are due even when there are no documents.
    freshness_policy=dg.FreshnessPolicy.time_window(
        fail_window=timedelta(hours=3), warn_window=timedelta(hours=2)
    ),
)
def pipeline_health(memory: MemoryResource) -> dg.MaterializeResult:  # type: ignore[type-arg]
    metrics = memory.ask(lambda database: read_metrics(database, memory.settings.prices))
    return dg.MaterializeResult(metadata=_figures(metrics))


def _figures(metrics: PipelineMetrics) -> Mapping[str, dg.MetadataValue]:
    """Figures without data are left out: a zero would be a false claim."""
    return {
        name: dg.MetadataValue.int(value)
        if isinstance(value, int)
        else dg.MetadataValue.float(round(value, 4))
        for name, value in asdict(metrics).items()
        if value is not None
    }


@dg.asset_check(
    asset=STORED_EVENTS,
    name="events_are_fresh",
    description="No document waits for its events longer than FRESHNESS_MINUTES. An idle memory is "
    "fresh: what counts is the age of the oldest pending job, not of the last materialisation.",
    blocking=False,
)
def events_are_fresh(memory: MemoryResource) -> dg.AssetCheckResult:
    waiting = memory.ask(oldest_pending_seconds)
    minutes = memory.settings.freshness_minutes
    return dg.AssetCheckResult(
        passed=waiting <= minutes * 60,
        severity=dg.AssetCheckSeverity.WARN,
        description=f"The oldest pending job has waited {waiting / 60:.1f} of {minutes} minutes."
        if waiting
        else "Nothing waits.",
        metadata={
            "oldest_pending_seconds": round(waiting, 1),
            "limit_seconds": minutes * 60,
            "what_to_do": "mcp-memory jobs --status PENDING; see the runbook in docs/operating.md.",
        },
    )


health_schedule = scheduled(
    "pipeline_health_schedule",
    "report_health",
    dg.AssetSelection.assets(pipeline_health),
    "7 * * * *",
    "Write down how the pipeline does, every hour.",
)
freshness_schedule = scheduled(
    "events_are_fresh_schedule",
    "verify_events_are_fresh",
    dg.AssetSelection.checks(events_are_fresh),
    "5-59/10 * * * *",
    "Whether documents wait too long for their events.",
)
