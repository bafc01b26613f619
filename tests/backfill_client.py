"""Deployments with prompts of their own over the same stores, and what tests of backfills ask."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from memory_core.backfill import control
from memory_core.backfill.scope import Filter
from memory_core.extraction.current_versions import current
from memory_core.queue import jobs
from memory_core.runtime import Runtime
from tests.pipeline_client import Pipeline, bump, generations_of, with_openai
from tests.scripted_provider import ScriptedProvider

NOTHING = Filter()
Deployment = Callable[..., Pipeline]


def deployments(runtime: Runtime, provider: ScriptedProvider, folder: Path) -> Deployment:
    def deploy(extract: int = 1, merge: int = 1, **changes: Any) -> Pipeline:
        numbers = {"extract": extract, "merge": merge}
        prompts = bump(
            folder / f"prompts-{extract}-{merge}",
            **{name: number for name, number in numbers.items() if number > 1},
        )
        settings = with_openai(runtime.settings, provider, prompts_dir=prompts, **changes)
        return Pipeline(runtime, **settings.model_dump())

    return deploy


async def remember(pipeline: Pipeline, count: int) -> list[str]:
    """`count` documents, extracted; their uids, oldest first."""
    uids = []
    for number in range(count):
        text = f"Decision: plan {number} is accepted.\nBob Roth will test it."
        result = await pipeline.remember(text, f"doc-{number}", title=f"Note {number}")
        uids.append(result.artifact_uid)
    await pipeline.extract()
    return uids


async def versions_of(pipeline: Pipeline) -> dict[str, str]:
    rows = await pipeline.rows(
        "SELECT artifact_uid, extract_version, merge_version FROM extraction"
    )
    return {
        row["artifact_uid"]: generations_of(row["extract_version"], row["merge_version"])
        for row in rows
    }


async def asked_for(pipeline: Pipeline) -> list[str]:
    """What waits in the queue, in the order it is due."""
    rows = await jobs.claimable(
        pipeline.runtime.database, 1000, versions=current(pipeline.runtime.settings)
    )
    return [row.artifact_uid for row in rows]


async def begin(
    pipeline: Pipeline, chosen: Filter = NOTHING, **options: Any
) -> control.StartedBackfill:
    return await control.start(pipeline.runtime, chosen, requested_by="cli", **options)


async def state(pipeline: Pipeline) -> control.Status:
    return await control.status(pipeline.runtime)
