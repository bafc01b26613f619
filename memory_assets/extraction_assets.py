"""The asset graph: pending revisions become proved events.

It is one multi-asset rather than five. Within a run every revision goes through all stages on its
own, so a revision that fails is red for its partition while the others of its batch turn green.
"""

import asyncio
from collections.abc import Iterator, Sequence

import dagster as dg

from memory_assets import unclaimed
from memory_assets.dagster_internals.eventlog import materialisations
from memory_assets.dead_runs import mark_failed
from memory_assets.memory_resource import MemoryResource
from memory_assets.revision_partitions import REVISIONS
from memory_assets.specs import asset_specs
from memory_assets.tags import FROM_QUEUE, NOT_DONE_TAG, describe, trace_tags, trigger
from memory_core.events.broken_evidence import all_broken_evidence, broken_evidence
from memory_core.extraction.current_versions import current
from memory_core.extraction.engine import open_engine
from memory_core.kernel.database import Database
from memory_core.kernel.settings import load_settings
from memory_core.processing.batch import JobOutcome, process
from memory_core.processing.stages import CHUNK_EXTRACTIONS, STORED_EVENTS
from memory_core.queue import jobs
from memory_core.queue.answers import Answers
from memory_core.queue.jobs import Job
from memory_core.telemetry import span_export
from memory_core.telemetry.spans import span

EVIDENCE_CHECK = "quotes_are_the_text_at_their_offsets"
EVIDENCE_CHECK_KEY = dg.AssetCheckKey(dg.AssetKey(STORED_EVENTS), EVIDENCE_CHECK)


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
    """Claim the jobs of these partitions, extract them concurrently, and store what is proved."""
    if not context.selected_asset_keys:
        # Only the check was requested: nothing is extracted, and every quote is compared.
        yield _evidence_check(broken_quotes=memory.ask(all_broken_evidence))
        return
    outcomes, gone, broken = asyncio.run(_traced(context, memory))
    if EVIDENCE_CHECK_KEY in context.selected_asset_check_keys:
        yield _evidence_check(revisions=len(outcomes), broken_quotes=broken)
    failed = [outcome for outcome in outcomes if outcome.failure is not None]
    if failed or gone:
        raise dg.Failure(_failure_message(failed, gone, len(outcomes)), allow_retries=False)


def _evidence_check(*, broken_quotes: int, **counts: int) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        check_name=EVIDENCE_CHECK,
        asset_key=STORED_EVENTS,
        passed=not broken_quotes,
        metadata={**counts, "broken_quotes": broken_quotes},
    )


async def _traced(
    context: dg.AssetExecutionContext, memory: MemoryResource
) -> tuple[list[JobOutcome], list[str], int]:
    """Run within a trace. Work that the queue requested belongs to the traces of its jobs. A run
    that a person started is a new trace, in which the jobs are requested."""
    span_export.start(memory.settings, "run")
    try:
        if trigger(dict(context.run.tags)) == FROM_QUEUE:
            return await _run(context, memory)
        with span("dagster run", attributes={"dagster.run_id": context.run.run_id}):
            return await _run(context, memory)
    finally:
        await asyncio.to_thread(span_export.flush)


async def _run(
    context: dg.AssetExecutionContext, memory: MemoryResource
) -> tuple[list[JobOutcome], list[str], int]:
    """The outcomes of the claimed jobs, the keys without a revision, and the number of broken
    quotes."""
    asked_by = trigger(dict(context.run.tags))
    by_hand = asked_by != FROM_QUEUE
    # A person who materialises the extractions themselves wants the model asked again. A person who
    # selects only later stages wants them made from the stored answers.
    extractions = dg.AssetKey(CHUNK_EXTRACTIONS) in context.selected_asset_keys
    answers = Answers.NEW if extractions else Answers.STORED
    async with (
        memory.runtime() as runtime,
        open_engine(runtime.settings, runtime.database) as engine,
    ):
        keys = list(context.partition_keys)
        claimed = await jobs.claim(
            runtime.database,
            keys,
            context.run.run_id,
            asked_by=asked_by if by_hand else None,
            answers=answers if by_hand else Answers.KNOWN,
            versions=current(runtime.settings),
            max_attempts=runtime.settings.event_max_attempts,
        )
        context.log.info(f"claimed {len(claimed)} of {len(keys)} revisions")
        gone = []
        if by_hand:
            gone = await _tag_and_report(context, runtime.database, asked_by, keys, claimed)
        dead = {job.dead_run_id for job in claimed if job.dead_run_id}
        mark_failed(
            context.instance, dead, f"Its leases expired; run {context.run.run_id} took over."
        )
        with materialisations(context, runtime.settings) as observe:
            outcomes = await process(runtime, engine, claimed, observe)
        done = [outcome.job for outcome in outcomes if outcome.extraction is not None]
        return outcomes, gone, await broken_evidence(runtime.database, done)


async def _tag_and_report(
    context: dg.AssetExecutionContext,
    database: Database,
    asked_by: str,
    keys: list[str],
    claimed: Sequence[Job],
) -> list[str]:
    """Tag a run that the sensor did not request, and log the revisions that it does not work on.

    A revision that another run holds is no failure: that run ends the job, and a failure here would
    turn stages red that the other run has already made. Returns the keys without a revision.
    """
    rows = await unclaimed.revisions_of(database, keys)
    left = unclaimed.unclaimed(rows, (job.partition_key for job in claimed))
    tags = describe(asked_by, rows)
    tags |= trace_tags(job.trace_id for job in claimed)
    if left.elsewhere:
        tags[NOT_DONE_TAG] = str(len(left.elsewhere))
    context.instance.add_run_tags(context.run.run_id, tags)
    for key, holder in left.elsewhere.items():
        context.log.warning(f"{key} was left alone: {holder}. Ask again when that is over.")
    return left.gone


def _failure_message(failed: list[JobOutcome], gone: list[str], total: int) -> str:
    lines = [f"- {key}: there is no such revision (any more)" for key in gone]
    lines += [
        f"- {outcome.job.partition_key}: {outcome.failure.code}, now {outcome.failure.status}: "
        f"{outcome.failure.message[:300]}"
        for outcome in failed
        if outcome.failure is not None
    ]
    return (
        f"{len(lines)} of {total + len(gone)} revisions failed; the others are stored.\n"
        + "\n".join(lines)
    )
