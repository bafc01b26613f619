"""Extracting many revisions concurrently. Each is independent, so a failure delays no other."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

from memory_core.extraction.engine import Engine
from memory_core.kernel import principal
from memory_core.kernel.end_tasks import end_tasks
from memory_core.kernel.errors import ErrorCode, MemoryFault, PostgresUnavailable
from memory_core.kernel.principal import DEFAULT_TENANT
from memory_core.processing.extraction import Extraction, Observer
from memory_core.processing.job_spans import export_jobs, of_run
from memory_core.processing.pipeline import extract_revision
from memory_core.processing.stages import CANONICAL_EVENTS
from memory_core.queue import jobs
from memory_core.queue.jobs import Failure, Job, JobCanceled, LeaseLost
from memory_core.runtime import Runtime

log = logging.getLogger(__name__)

_WHY = "a run extracts for the tenant of each job"
# Limits on concurrent documents and their tokens: the engine limits the calls, these the memory.
_DOCUMENTS_AT_ONCE = 64
_TOKENS_AT_ONCE = 5_000_000


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """The outcome of one claimed job. A job with neither extraction nor failure that was not
    canceled has lost its lease."""

    job: Job
    extraction: Extraction | None = None
    failure: Failure | None = None
    canceled: bool = False


async def process(
    runtime: Runtime,
    engine: Engine,
    claimed: Sequence[Job],
    observe: Observer = lambda *_: None,
) -> list[JobOutcome]:
    slots, room = asyncio.Semaphore(_DOCUMENTS_AT_ONCE), _TokenLimit(_TOKENS_AT_ONCE)
    heart = _Heart(runtime, claimed)

    def observed(stage: str, extraction: Extraction) -> None:
        heart.stage_ended(stage, extraction)
        observe(stage, extraction)

    async def one(job: Job) -> JobOutcome:
        async with slots, room.holding(job.token_count):
            with principal.system(_WHY, await _tenant(runtime, job)):
                return await _process_one(runtime, engine, job, observed)

    tasks = {job.job_id: asyncio.create_task(one(job)) for job in claimed}
    beating = asyncio.create_task(heart.beat(tasks))
    try:
        results = await asyncio.gather(*tasks.values(), return_exceptions=True)
    finally:
        await end_tasks(beating)
    outcomes = [
        result if isinstance(result, JobOutcome) else await _stopped(runtime, job, result)
        for job, result in zip(claimed, results, strict=True)
    ]
    await export_jobs(runtime.database, list(_ended(outcomes)))
    return outcomes


def _ended(outcomes: Sequence[JobOutcome]) -> Iterator[tuple[Job, str | None]]:
    """The jobs that have ended, each with its error code."""
    for outcome in outcomes:
        if outcome.extraction is not None:
            yield outcome.job, None
        elif outcome.canceled:
            yield outcome.job, "CANCELED"
        elif outcome.failure is not None and outcome.failure.status == "FAILED":
            yield outcome.job, outcome.failure.code


async def _tenant(runtime: Runtime, job: Job) -> UUID:
    with principal.system(_WHY):
        async with runtime.database.session() as session:
            tenant = await session.maybe(UUID, "tenant_of_job", job_id=job.job_id)
    return tenant or DEFAULT_TENANT


class _TokenLimit:
    """A limit on the tokens in work. A document larger than the limit waits until it is
    alone."""

    def __init__(self, size: int) -> None:
        self._size, self._used = size, 0
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def holding(self, size: int) -> AsyncIterator[None]:
        async with self._changed:
            await self._changed.wait_for(lambda: not self._used or self._used + size <= self._size)
            self._used += size
        try:
            yield
        finally:
            self._used -= size
            async with self._changed:
                self._changed.notify_all()


async def _process_one(runtime: Runtime, engine: Engine, job: Job, observe: Observer) -> JobOutcome:
    begun = time.perf_counter()
    with of_run(job) as work:
        try:
            extraction = await extract_revision(runtime, engine, job, observe)
            outcome = JobOutcome(job, extraction=extraction)
        except LeaseLost:
            outcome = JobOutcome(job)
        except JobCanceled:
            outcome = JobOutcome(job, canceled=await jobs.cancel_held(runtime.database, job))
        except Exception as error:
            outcome = await fail(runtime, job, _as_fault(error))
        if outcome.failure is not None:
            work.fail(outcome.failure.code)
        _log_outcome(outcome, round((time.perf_counter() - begun) * 1000))
    return outcome


def _log_outcome(outcome: JobOutcome, milliseconds: int) -> None:
    """One log line per document, with ids and counts only: the text is for those who may read
    it."""
    job, made, failure = outcome.job, outcome.extraction, outcome.failure
    of = (
        f"job_id={job.job_id} artifact_uid={job.artifact_uid} revision_id={job.revision_id} "
        f"attempt={job.attempts} trace_id={job.trace_id or '-'} ms={milliseconds}"
    )
    if made is not None:
        log.info(
            "extracted %s events=%d rejected=%d calls=%d",
            *(of, len(made.events), len(made.rejections), len(made.calls)),
        )
    elif failure is not None:
        log.warning("failed %s code=%s status=%s", of, failure.code, failure.status)
    elif outcome.canceled:
        log.info("canceled %s: nothing of it was written", of)
    else:
        log.warning("left %s: its lease was lost, nothing of it was written", of)


async def fail(runtime: Runtime, job: Job, fault: MemoryFault) -> JobOutcome:
    try:
        recorded = await jobs.fail(runtime.database, job, fault)
    except PostgresUnavailable as unavailable:
        # The lease will expire, and the job becomes claimable again.
        message = f"{fault.message} ({unavailable.message})"
        return JobOutcome(job, failure=Failure("PROCESSING", fault.code.value, message))
    return JobOutcome(job, failure=recorded or Failure("LOST", fault.code.value, fault.message))


class _Heart:
    """Keeps the leases of a run alive, and records which of its jobs progress."""

    def __init__(self, runtime: Runtime, claimed: Sequence[Job]) -> None:
        self._runtime, self._claimed = runtime, claimed
        self._storing: set[UUID] = set()
        self._seen: dict[UUID, Extraction] = {}
        self._marks: dict[UUID, object] = {}

    def stage_ended(self, stage: str, extraction: Extraction) -> None:
        id_ = extraction.job.job_id
        if stage == CANONICAL_EVENTS:
            self._storing.add(id_)
        self._seen[id_] = extraction

    async def beat(self, tasks: dict[UUID, "asyncio.Task[JobOutcome]"]) -> None:
        """Renew the leases; stop the tasks of jobs whose lease is lost or that were canceled.

        A task that is storing is left alone: storing checks the lease itself, and a job that has
        just become DONE no longer has one.
        """
        if not self._claimed:
            return
        run_id = self._claimed[0].run_id
        while True:
            await asyncio.sleep(jobs.HEARTBEAT_SECONDS)
            open_ids = [id_ for id_, task in tasks.items() if not task.done()]
            try:
                held = await jobs.heartbeat(
                    self._runtime.database, run_id, open_ids, self._progressed(open_ids)
                )
            except Exception as error:
                # The next heartbeat may succeed. Without heartbeats the run would lose every lease.
                log.warning("heartbeat missed: %s", error)
                continue
            for id_ in open_ids:
                mine = id_ in held.jobs and id_ not in held.canceled
                if not mine and id_ not in self._storing and not tasks[id_].done():
                    tasks[id_].cancel()

    def _progressed(self, open_ids: Sequence[UUID]) -> list[UUID]:
        """Jobs that finished a stage or a call since the last heartbeat."""
        marks = {
            id_: (len(seen.seconds), len(seen.calls), seen.cache_hits)
            for id_, seen in self._seen.items()
        }
        progressed = [id_ for id_ in open_ids if marks.get(id_) != self._marks.get(id_)]
        self._marks = dict(marks)
        return progressed


def _as_fault(error: Exception) -> MemoryFault:
    if isinstance(error, MemoryFault):
        return error
    if isinstance(error, ExceptionGroup):
        for member in error.exceptions:
            if isinstance(member, Exception):
                return _as_fault(member)
    log.error("an unexpected failure", exc_info=error)
    return MemoryFault(f"{type(error).__name__}: {error}", code=ErrorCode.INTERNAL_ERROR)


async def _stopped(runtime: Runtime, job: Job, error: BaseException) -> JobOutcome:
    """The heartbeat stopped the task: its lease is lost, or the job was canceled."""
    if not isinstance(error, asyncio.CancelledError):
        raise error
    canceled = await jobs.cancel_held(runtime.database, job)
    outcome = JobOutcome(job, canceled=canceled)
    _log_outcome(outcome, 0)
    return outcome
