"""The asset graph: pending revisions become proved events.

One multi-asset rather than five: within a run every revision goes through all stages on its own,
so that one that fails is red for its partition while the others of its batch turn green.
"""

import asyncio
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from memory_assets.graveyard import bury
from memory_assets.metadata import materialisation
from memory_assets.partitions import REVISIONS
from memory_assets.resources import MemoryResource
from memory_assets.specs import asset_specs, code_versions
from memory_core import jobs
from memory_core.events.checks import broken_evidence
from memory_core.extraction.batch import Outcome, process
from memory_core.extraction.engine import open_engine
from memory_core.extraction.pipeline import CHUNK_EXTRACTIONS, STORED_EVENTS, Extraction
from memory_core.settings import load_settings

TRIGGER_TAG = "trigger"
FROM_QUEUE = "queue"
EVIDENCE_CHECK = "quotes_are_the_text_at_their_offsets"
EVIDENCE_CHECK_KEY = dg.AssetCheckKey(dg.AssetKey(STORED_EVENTS), EVIDENCE_CHECK)
_BACKFILL_TAG = "dagster/backfill"
_SCHEDULE_TAG = "dagster/schedule_name"


@dg.multi_asset(
    name="extract_revisions",
    specs=asset_specs(load_settings()),
    partitions_def=REVISIONS,
    backfill_policy=dg.BackfillPolicy.multi_run(100),
    can_subset=True,
    check_specs=[
        dg.AssetCheckSpec(
            EVIDENCE_CHECK,
            asset=STORED_EVENTS,
            description="Every stored quote of these revisions equals the text at its offsets.",
        )
    ],
)
def extract_revisions(
    context: dg.AssetExecutionContext, memory: MemoryResource
) -> Iterator[dg.AssetCheckResult]:
    """Claim the jobs of these partitions, extract them concurrently, store what is proved."""
    outcomes, broken = asyncio.run(_run(context, memory))
    if EVIDENCE_CHECK_KEY in context.selected_asset_check_keys:
        yield dg.AssetCheckResult(
            check_name=EVIDENCE_CHECK,
            asset_key=STORED_EVENTS,
            passed=not broken,
            metadata={"revisions": len(outcomes), "broken_quotes": broken},
        )
    failed = [outcome for outcome in outcomes if outcome.failure is not None]
    if failed:
        raise dg.Failure(_obituary(failed, len(outcomes)), allow_retries=False)


async def _run(
    context: dg.AssetExecutionContext, memory: MemoryResource
) -> tuple[list[Outcome], int]:
    asked_by = _asked_by(context)
    redo = None if asked_by == FROM_QUEUE else asked_by
    # A person who materialises the extractions themselves wants them asked for anew.
    fresh = redo is not None and dg.AssetKey(CHUNK_EXTRACTIONS) in context.selected_asset_keys
    async with (
        memory.runtime() as runtime,
        open_engine(runtime.settings, runtime.database) as engine,
    ):
        claimed = await jobs.claim(
            runtime.database, context.partition_keys, context.run_id, redo_as=redo
        )
        context.log.info(f"claimed {len(claimed)} of {len(context.partition_keys)} revisions")
        dead = {job.dead_run_id for job in claimed if job.dead_run_id}
        bury(context.instance, dead, f"Its leases expired; run {context.run_id} took over.")
        with _materialisations(context) as observe:
            outcomes = await process(runtime, engine, claimed, observe, fresh=fresh)
        done = [outcome.job for outcome in outcomes if outcome.extraction is not None]
        return outcomes, await broken_evidence(runtime.database, done)


@contextmanager
def _materialisations(context: dg.AssetExecutionContext) -> Iterator:  # type: ignore[type-arg]
    """Log each stage as it ends, from a thread of its own: a write to Dagster's event log takes
    milliseconds that the documents in work need not wait for."""
    versions = code_versions(load_settings())
    selected = {key.to_user_string() for key in context.selected_asset_keys}
    ended: queue.SimpleQueue[tuple[str, Extraction] | None] = queue.SimpleQueue()
    faults: list[Exception] = []

    def write() -> None:
        while (item := ended.get()) is not None:
            try:
                context.log_event(materialisation(*item, versions))
            except Exception as error:
                faults.append(error)

    def observe(stage: str, extraction: Extraction) -> None:
        if stage in selected:
            ended.put((stage, extraction))

    writer = threading.Thread(target=write, name="materialisations")
    writer.start()
    try:
        yield observe
    finally:
        ended.put(None)
        writer.join()
    if faults:
        raise faults[0]


def _asked_by(context: dg.AssetExecutionContext) -> str:
    tags = context.run.tags
    if tags.get(TRIGGER_TAG) == FROM_QUEUE:
        return FROM_QUEUE
    if _BACKFILL_TAG in tags:
        return "backfill"
    return "schedule" if _SCHEDULE_TAG in tags else "ui"


def _obituary(failed: list[Outcome], total: int) -> str:
    lines = [
        f"- {outcome.job.partition_key}: {outcome.failure.code}, now {outcome.failure.status}: "
        f"{outcome.failure.message[:300]}"
        for outcome in failed
        if outcome.failure is not None
    ]
    return f"{len(failed)} of {total} revisions failed; the others are stored.\n" + "\n".join(lines)
