"""`backfill trial`: run the new prompt on a sample and compare with the served events.

Nothing is replaced. The model's answers are cached, so a following backfill does not pay for them
again.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from memory_core.backfill.comparison import compare, in_stored_form, stored_form
from memory_core.backfill.rows import OutdatedRevision, TrialHead, TrialRevision
from memory_core.backfill.scope import Filter, Scope
from memory_core.events.stored_events import list_for_revision
from memory_core.extraction.current_versions import current
from memory_core.extraction.engine import Engine, open_engine
from memory_core.kernel.database import Database
from memory_core.kernel.errors import InvalidInput, MemoryFault, NotFound
from memory_core.processing.extraction import Extraction
from memory_core.processing.pipeline import rehearse
from memory_core.queue.answers import Answers
from memory_core.queue.jobs import Job
from memory_core.runtime import Runtime
from memory_core.text.printable import printable

SIDES = ("kept", "changed", "added", "lost")
_AT_ONCE = 16
_ERROR_LIMIT = 500


@dataclass(frozen=True, slots=True)
class Trial:
    trial: TrialHead
    revisions: list[TrialRevision]

    def totals(self) -> dict[str, int]:
        """Sums over the sample; `before` and `after` count events."""
        succeeded = [row for row in self.revisions if row.error is None]
        totals = {side: sum(len(row.comparison[side]) for row in succeeded) for side in SIDES}
        totals["before"] = totals["kept"] + totals["changed"] + totals["lost"]
        totals["after"] = totals["kept"] + totals["changed"] + totals["added"]
        for name in ("rejected_before", "rejected", "calls", "cache_hits"):
            totals[name] = sum(getattr(row, name) for row in succeeded)
        for name in ("prompt_tokens", "completion_tokens"):
            totals[name] = sum(getattr(row, name) for row in self.revisions)
        totals["tokens"] = totals["prompt_tokens"] + totals["completion_tokens"]
        totals["revisions"] = len(self.revisions)
        totals["failed"] = len(self.revisions) - len(succeeded)
        return totals

    def as_json(self) -> dict[str, Any]:
        return {
            **asdict(self.trial),
            "trial_id": str(self.trial.trial_id),
            "totals": self.totals(),
            "revisions": [asdict(row) for row in self.revisions],
        }


async def run_trial(
    runtime: Runtime,
    chosen: Filter,
    *,
    sample: int,
    seed: int,
    requested_by: str,
    other_models: bool = False,
    advance: Callable[[int, int], None] = lambda done, of: None,
) -> Trial:
    """The same seed draws the same sample from the same outdated revisions."""
    scope = Scope(current(runtime.settings), chosen, other_models)
    async with runtime.database.session() as session:
        outdated = await session.rows(OutdatedRevision, "outdated_revisions", **scope.parameters())
        if not outdated:
            raise InvalidInput(
                "No revision was made with an older prompt than that of this deployment "
                f"({scope.versions.extract}, merges {scope.versions.merge}): there is nothing to "
                "try. Put the new prompt under the next number (docs/backfill.md)."
            )
        taken = _sample(outdated, sample, seed)
        trial = await session.only(
            TrialHead,
            "start_trial",
            **scope.stored(),
            filter=Jsonb(chosen.as_json()),
            sample=len(taken),
            seed=seed,
            requested_by=requested_by,
        )
    slots = asyncio.Semaphore(_AT_ONCE)
    done = 0

    async def one(engine: Engine, position: int, row: OutdatedRevision) -> None:
        nonlocal done
        async with slots:
            await _try_one(runtime, engine, trial.trial_id, position, row)
        done += 1
        advance(done, len(taken))

    async with (
        open_engine(runtime.settings, runtime.database) as engine,
        asyncio.TaskGroup() as tasks,
    ):
        for position, row in enumerate(taken):
            tasks.create_task(one(engine, position, row))
    async with runtime.database.session() as session:
        await session.run("finish_trial", trial_id=trial.trial_id)
    return await load_trial(runtime.database, trial.trial_id)


async def load_trial(database: Database, trial_id: UUID) -> Trial:
    async with database.session() as session:
        trial = await session.row(TrialHead, "get_trial", trial_id=trial_id)
        if trial is None:
            raise NotFound(f"There is no trial {trial_id}.")
        revisions = await session.rows(TrialRevision, "trial_revisions", trial_id=trial_id)
    return Trial(trial, revisions)


def _sample(outdated: list[OutdatedRevision], count: int, seed: int) -> list[OutdatedRevision]:
    """Independent of the time of ingest, so that the same seed always means the same documents."""
    ordered = sorted(outdated, key=lambda row: (row.artifact_uid, row.revision_id))
    return random.Random(seed).sample(ordered, min(count, len(ordered)))


async def _try_one(
    runtime: Runtime, engine: Engine, trial_id: UUID, position: int, row: OutdatedRevision
) -> None:
    """Try one revision. A failure is recorded, and the other revisions go on."""
    uid, revision = row.artifact_uid, row.revision_id
    result: dict[str, Any] = {
        "events": Jsonb([]),
        "comparison": Jsonb({}),
        "rejected_before": 0,
        "rejected": 0,
        "calls": 0,
        "cache_hits": 0,
        "prompt_tokens": 0,
        "completion_tokens": 0,
        "error": None,
    }
    try:
        extraction = await rehearse(runtime, engine, _job(trial_id, row))
        result |= await _comparison_columns(runtime, extraction)
    except MemoryFault as fault:
        result["error"] = printable(f"{fault.code}: {fault.message}", _ERROR_LIMIT)
    async with runtime.database.session() as session:
        await session.run(
            "add_trial_revision",
            trial_id=trial_id,
            uid=uid,
            revision=revision,
            position=position,
            extract_version=row.extract_version,
            merge_version=row.merge_version,
            **result,
        )


async def _comparison_columns(runtime: Runtime, extraction: Extraction) -> dict[str, Any]:
    uid, revision = extraction.job.artifact_uid, extraction.job.revision_id
    before = await list_for_revision(runtime, uid, revision, include_evidence=True)
    after = in_stored_form(extraction)
    async with runtime.database.session() as session:
        rejected = await session.value(int, "rejections_of_revision", uid=uid, revision=revision)
    return {
        "events": Jsonb(stored_form(after)),
        "comparison": Jsonb(asdict(compare(before, after))),
        "rejected_before": rejected,
        "rejected": len(extraction.rejections),
        "calls": len(extraction.calls),
        "cache_hits": extraction.cache_hits,
        "prompt_tokens": sum(call.prompt_tokens for call in extraction.calls),
        "completion_tokens": sum(call.completion_tokens for call in extraction.calls),
    }


def _job(trial_id: UUID, row: OutdatedRevision) -> Job:
    """A job under the trial's id, so that its calls are not recorded for the revision's own job."""
    return Job(
        job_id=trial_id,
        artifact_uid=row.artifact_uid,
        revision_id=row.revision_id,
        partition_key="",
        attempts=1,
        max_attempts=1,
        generation=0,
        origin="trial",
        answers=Answers.KNOWN,
        run_id=str(trial_id),
    )
