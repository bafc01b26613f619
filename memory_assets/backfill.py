"""Backfills in Dagster: the job and schedule `prompt_upgrade`, and the asset `prompt_trial`."""

import asyncio
import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from uuid import UUID

import dagster as dg

from memory_assets.memory_resource import MemoryResource
from memory_assets.specs import OWNERS
from memory_core.backfill import control
from memory_core.backfill.scope import Filter
from memory_core.backfill.tick import Tick, tick
from memory_core.backfill.trial import Trial, load_trial, run_trial
from memory_core.backfill.trial_page import page
from memory_core.kernel.database import Database
from memory_core.kernel.errors import PostgresUnavailable
from memory_core.kernel.settings import load_settings

PROMPT_TRIAL = "prompt_trial"


class FilterConfig(dg.Config):
    """Selects revisions. An empty field does not limit the selection. Times are ISO 8601."""

    category: str = ""
    source_system: str = ""
    artifact_type: str = ""
    artifact_uid: str = ""
    time_from: str = ""
    time_to: str = ""
    other_models: bool = False

    def filter(self) -> Filter:
        given: dict[str, Any] = {
            name: value for name in Filter.model_fields if (value := getattr(self, name))
        }
        return Filter(**given)


class UpgradeConfig(FilterConfig):
    """`start: true` starts a backfill with this filter; otherwise the open one takes a step."""

    start: bool = False


@dg.op(description="One step of the open backfill, or the start of one.")
def step(context: dg.OpExecutionContext, config: UpgradeConfig, memory: MemoryResource) -> None:
    done = asyncio.run(
        _step(config, memory, by_hand="dagster/schedule_name" not in context.run.tags)
    )
    context.log.info(done.note)
    context.add_output_metadata(
        {
            "note": done.note,
            "revisions_asked_for": done.asked,
            "taken_back": done.withdrawn,
            "backfill": str(done.backfill_id or ""),
            "status": done.status or "",
        }
    )


async def _step(config: UpgradeConfig, memory: MemoryResource, *, by_hand: bool) -> Tick:
    async with memory.runtime() as runtime:
        if config.start:
            started = await control.start(
                runtime,
                config.filter(),
                other_models=config.other_models,
                requested_by="ui" if by_hand else "schedule",
            )
            return started.first or Tick("nothing is outdated")
        if not by_hand and (begun := await control.start_by_itself(runtime)) is not None:
            return begun.first or Tick("nothing is outdated")
        return await tick(runtime)


@dg.job(
    name="prompt_upgrade",
    description="Requests revisions whose events were made with an older prompt: newest first, "
    "after all fresh work, within the daily token budget. One run is one step.",
)
def prompt_upgrade_job() -> None:
    step()


def crons(minutes: int) -> list[str]:
    """Cron lines for every N minutes, counted from midnight. `*/45` alone would run at minutes 0
    and 45 of every hour, so the gaps would be 45 and 15 minutes."""
    if 60 % minutes == 0:
        return ["0 * * * *" if minutes == 60 else f"*/{minutes} * * * *"]
    hours: dict[int, list[str]] = {}
    for start in range(0, 24 * 60, minutes):
        hours.setdefault(start % 60, []).append(str(start // 60))
    return [f"{minute} {','.join(of)} * * *" for minute, of in hours.items()]


@dg.schedule(
    name="prompt_upgrade",
    job=prompt_upgrade_job,
    cron_schedule=crons(load_settings().backfill_every_minutes),
    description="Steps of the open backfill. Idle until one is started by `mcp-memory backfill "
    "start`, from this job's launchpad, or by BACKFILL_START=auto.",
    default_status=dg.DefaultScheduleStatus.RUNNING,
)
def prompt_upgrade(memory: MemoryResource) -> dg.RunRequest | dg.SkipReason:
    try:
        wanted = memory.ask(lambda database: control.wants_a_tick(database, memory.settings))
    except PostgresUnavailable as fault:
        return dg.SkipReason(fault.message)
    return dg.RunRequest() if wanted else dg.SkipReason("no backfill is running")


class TrialConfig(FilterConfig):
    """Draws a sample of the outdated revisions. The same seed draws the same sample."""

    sample: int = 20
    seed: int = 0


@dg.asset(
    name=PROMPT_TRIAL,
    group_name="prompts",
    owners=OWNERS,
    kinds={"postgres", "markdown"},
    tags={"cost": "model_calls", "serves": "operators"},
    description="The new prompt on a sample of revisions, compared with the served events: which "
    "events it keeps, changes, adds and loses, which quotes it gets wrong, and what it costs. "
    "Nothing is replaced; answers are cached, so that a backfill does not pay for them again.",
)
def prompt_trial(config: TrialConfig, memory: MemoryResource) -> Iterator[dg.MaterializeResult]:  # type: ignore[type-arg]
    trial = asyncio.run(_try(config, memory))
    yield dg.MaterializeResult(metadata=_metadata(trial))


async def _try(config: TrialConfig, memory: MemoryResource) -> Trial:
    async with memory.runtime() as runtime:
        return await run_trial(
            runtime,
            config.filter(),
            sample=config.sample,
            seed=config.seed,
            requested_by="ui",
            other_models=config.other_models,
        )


def _metadata(trial: Trial) -> dict[str, Any]:
    return {
        "page": dg.MetadataValue.md(page(trial)),
        "trial_id": str(trial.trial.trial_id),
        "requested_by": trial.trial.requested_by,
        "extract_version": trial.trial.extract_version,
        "merge_version": trial.trial.merge_version,
        "model": trial.trial.model,
        **trial.totals(),
    }


prompt_trial_job = dg.define_asset_job(
    "try_prompt",
    selection=dg.AssetSelection.assets(prompt_trial),
    description="A trial of the newest prompt on a sample.",
)


@dg.sensor(
    description="Shows trials that were run from the command line on the page of prompt_trial.",
    minimum_interval_seconds=10,
    default_status=dg.DefaultSensorStatus.RUNNING,
)
def finished_trials(
    context: dg.SensorEvaluationContext, memory: MemoryResource
) -> dg.SensorResult | dg.SkipReason:
    last = json.loads(context.cursor) if context.cursor else None
    try:
        trials = memory.ask(lambda database: _ended_after(database, last))
    except PostgresUnavailable as fault:
        return dg.SkipReason(fault.message)
    if not trials:
        return dg.SkipReason("no new trial")
    newest = trials[-1].trial
    assert newest.finished_at is not None
    return dg.SensorResult(
        asset_events=[
            dg.AssetMaterialization(PROMPT_TRIAL, metadata=_metadata(trial)) for trial in trials
        ],
        cursor=json.dumps([newest.finished_at.isoformat(), str(newest.trial_id)]),
    )


async def _ended_after(database: Database, last: list[str] | None) -> list[Trial]:
    async with database.session() as session:
        ids = await session.values(
            UUID,
            "trials_after",
            finished_at=datetime.fromisoformat(last[0]) if last else None,
            trial_id=UUID(last[1]) if last else None,
        )
    return [await load_trial(database, id_) for id_ in ids]
