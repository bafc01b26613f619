"""The queue: `event_jobs`. Claim, heartbeat, complete, fail with back-off, release.

A run holds a job by a lease: `locked_by` is the run, and its heartbeat refreshes `locked_at`. A run
that lost the lease (it expired, a forced re-extraction revoked it, or the artifact was deleted)
must not write: the final transaction checks the lease.
"""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from memory_core.kernel.database import Database, Session
from memory_core.kernel.errors import ErrorCode, MemoryFault, ProviderFault
from memory_core.queue.answers import Answers
from memory_core.queue.request_columns import request_columns
from memory_core.queue.versions import Versions
from memory_core.text.printable import printable

log = logging.getLogger(__name__)

LEASE_SECONDS = 60
HEARTBEAT_SECONDS = 15.0
BACKOFF_FIRST_SECONDS = 30
BACKOFF_LIMIT_SECONDS = 600
# Upper limit for the wait that a provider requests: Postgres has no infinite interval.
RETRY_AFTER_LIMIT_SECONDS = 86_400.0
_MESSAGE_LIMIT = 2_000

RUN_DIED = "RUN_DIED"
RUN_STUCK = "RUN_STUCK"
PERMANENT = frozenset(
    {
        ErrorCode.OPENAI_INVALID_MODEL,
        ErrorCode.OPENAI_AUTH_ERROR,
        ErrorCode.ARTIFACT_NOT_FOUND,
        ErrorCode.CONFIGURATION_ERROR,
    }
)


class LeaseLost(Exception):
    """The run no longer holds the job and must write nothing for it."""


class JobCanceled(Exception):
    """The run still holds the job, and must end it without a result."""


@dataclass(frozen=True, slots=True)
class Job:
    """A claimed job, with the columns of its revision that the pipeline needs."""

    job_id: UUID
    artifact_uid: str
    revision_id: str
    partition_key: str
    attempts: int
    max_attempts: int
    generation: int
    origin: str  # what requested the job
    answers: Answers
    run_id: str  # the run that holds it
    token_count: int = 0
    requested_at: datetime | None = None
    backoff_policy: str = "exp"
    trace_id: str | None = None  # trace of the requesting call
    dead_run_id: str | None = None  # the run whose lease had expired

    @property
    def answers_since(self) -> datetime | None:
        """Only answers given after this moment are accepted; None: every cached answer is."""
        return self.requested_at if self.answers is Answers.NEW else None


@dataclass(frozen=True, slots=True)
class JobSummary:
    job_id: UUID
    artifact_uid: str
    revision_id: str
    status: str


@dataclass(frozen=True, slots=True)
class ClaimableJob:
    """A job that a run may be requested for."""

    job_id: UUID
    tenant_id: UUID
    generation: int
    attempts: int
    last_error_code: str | None
    partition_key: str
    artifact_uid: str
    backfill_id: UUID | None
    priority: int
    trace_id: str | None
    # Of the run that was requested for this attempt, if any.
    run_key: str | None
    requested_seconds_ago: float | None


@dataclass(frozen=True, slots=True)
class StuckRun:
    run_id: str
    jobs: int
    seconds: float  # since the run last progressed with a job


@dataclass(frozen=True, slots=True)
class StoredEvents:
    """The number of events that a run stored for a revision."""

    partition_key: str
    events: int


@dataclass(frozen=True, slots=True)
class Failure:
    """The recorded outcome of a failed attempt."""

    status: str
    code: str
    message: str


def backoff_seconds(attempts: int, retry_after: float | None = None, policy: str = "exp") -> float:
    """The wait after this many attempts: longer if the provider asks for it. docs/jobs.md has the
    table."""
    doublings = max(attempts, 1) - 1 if policy == "exp" else 0
    own = (
        0 if policy == "none" else min(BACKOFF_FIRST_SECONDS * 2**doublings, BACKOFF_LIMIT_SECONDS)
    )
    return max(float(own), min(retry_after or 0.0, RETRY_AFTER_LIMIT_SECONDS))


async def claim(
    database: Database,
    partition_keys: Sequence[str],
    run_id: str,
    *,
    asked_by: str | None = None,
    answers: Answers = Answers.KNOWN,
    versions: Versions | None = None,
    max_attempts: int | None = None,
) -> list[Job]:
    """Claim the claimable jobs of these revisions.

    From the queue (without `asked_by`): jobs that are due and jobs that a dead run left, each with
    the answers that its request accepts. With `asked_by` ("ui", "backfill"): DONE and FAILED jobs
    as well, as a new request that accepts `answers`. With `versions`: only jobs that a deployment
    of these versions may work on, since an old deployment would undo the work of a newer one.
    `max_attempts`, if given, replaces the limit stored with the jobs.
    """
    async with database.transaction() as session:
        keys = list(partition_keys)
        if max_attempts is not None:
            await session.run(
                "limit_attempts", keys=keys, max_attempts=max_attempts, lease=LEASE_SECONDS
            )
        await session.run("end_hopeless_jobs", keys=keys, lease=LEASE_SECONDS)
        if asked_by is not None:
            await _reopen(session, keys, asked_by, answers, max_attempts)
        claimed = await session.rows(
            Job,
            "claim_jobs",
            keys=keys,
            run_id=run_id,
            answers=answers.value,
            lease=LEASE_SECONDS,
            **reach(versions, by_hand=asked_by is not None),
        )
        await session.run("forget_requests", job_ids=[job.job_id for job in claimed])
        await session.run("tell_of_waiting_jobs")
    log.info("claimed run_id=%s jobs=%d of=%d", run_id, len(claimed), len(keys))
    return claimed


async def _reopen(
    session: Session, keys: list[str], what: str, answers: Answers, max_attempts: int | None
) -> None:
    request = request_columns(what)
    await session.run("ensure_jobs", keys=keys, max_attempts=max_attempts, **request)
    await session.run(
        "reopen_jobs",
        keys=keys,
        bypass_cache=answers is Answers.NEW,
        lease=LEASE_SECONDS,
        **request,
    )


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A job that a run holds."""

    job_id: UUID
    canceled: bool


@dataclass(frozen=True, slots=True)
class HeldJobs:
    """The result of a heartbeat."""

    jobs: frozenset[UUID]  # jobs still held, as far as known without waiting for a lock
    canceled: frozenset[UUID]  # those of `jobs` that the run must end without a result


async def heartbeat(
    database: Database,
    run_id: str,
    job_ids: Sequence[UUID],
    progressed: Collection[UUID] = (),
) -> HeldJobs:
    """Refresh the leases. `progressed`: jobs that progressed since the last heartbeat."""
    async with database.session() as session:
        beats = await session.rows(
            Heartbeat,
            "heartbeat_jobs",
            run_id=run_id,
            job_ids=list(job_ids),
            progressed=list(progressed),
        )
    return HeldJobs(
        frozenset(beat.job_id for beat in beats),
        frozenset(beat.job_id for beat in beats if beat.canceled),
    )


async def hold(session: Session, job: Job) -> None:
    """Lock the job's row for the final transaction. Raises LeaseLost if the run no longer holds the
    job, and JobCanceled if the job was canceled."""
    is_canceled = await session.maybe(
        bool, "hold_job", job_id=job.job_id, run_id=job.run_id, generation=job.generation
    )
    if is_canceled is None:
        raise LeaseLost(f"job {job.job_id} is no longer held by run {job.run_id}")
    if is_canceled:
        raise JobCanceled(f"job {job.job_id} was canceled")


async def complete(session: Session, job: Job) -> None:
    await session.run("complete_job", job_id=job.job_id)


async def fail(database: Database, job: Job, error: MemoryFault) -> Failure | None:
    """Record a failed attempt: PENDING with back-off, or FAILED. Returns None if the lease is
    gone."""
    retry_after = error.retry_after if isinstance(error, ProviderFault) else None
    permanent = error.code in PERMANENT
    exhausted = job.attempts >= job.max_attempts
    code = error.code.value
    message = error.message
    if exhausted and not permanent:
        code = ErrorCode.MAX_ATTEMPTS_EXCEEDED.value
        message = f"Gave up after {job.attempts} attempts. Last cause: {error.code}: {message}"
    async with database.session() as session:
        status = await session.maybe(
            str,
            "fail_job",
            job_id=job.job_id,
            run_id=job.run_id,
            generation=job.generation,
            status="FAILED" if permanent or exhausted else "PENDING",
            wait=backoff_seconds(job.attempts, retry_after, job.backoff_policy),
            code=code,
            message=printable(message, _MESSAGE_LIMIT),
        )
    return None if status is None else Failure(status, code, message)


async def cancel_held(database: Database, job: Job) -> bool:
    """End a canceled job after all work on it has stopped."""
    async with database.session() as session:
        ended = await session.run(
            "cancel_held_job", job_id=job.job_id, run_id=job.run_id, generation=job.generation
        )
    return bool(ended)


async def release_run(
    database: Database, run_id: str, reason: str, code: str = RUN_DIED
) -> list[JobSummary]:
    """Release the jobs of a dead run at once."""
    async with database.session() as session:
        return await session.rows(
            JobSummary,
            "release_jobs",
            run_id=run_id,
            code=code,
            message=printable(reason, _MESSAGE_LIMIT),
        )


async def release_abandoned(session: Session, seconds: float) -> int:
    """Release the jobs of runs that sent no heartbeat for this many seconds. Returns the number
    of jobs."""
    return await session.run("release_abandoned_jobs", lease=seconds)


async def silent_runs(database: Database, run_ids: Sequence[str]) -> set[str]:
    """Those of these runs that neither claimed, held nor ended a job during a whole lease."""
    async with database.session() as session:
        return set(
            await session.values(str, "silent_runs", run_ids=list(run_ids), lease=LEASE_SECONDS)
        )


async def stuck_runs(database: Database, minutes: float) -> list[StuckRun]:
    """Runs that are alive but have progressed with none of their jobs for this many minutes."""
    async with database.session() as session:
        return await session.rows(StuckRun, "stuck_runs", seconds=minutes * 60, lease=LEASE_SECONDS)


async def stored_by(database: Database, run_id: str) -> list[StoredEvents]:
    """The revisions whose events a run stored, by partition key."""
    async with database.session() as session:
        return await session.rows(StoredEvents, "stored_by_run", run_id=run_id)


async def claimable(
    database: Database,
    limit: int,
    *,
    versions: Versions | None = None,
    now: datetime | None = None,
) -> list[ClaimableJob]:
    """The jobs that the sensor may request runs for, in working order (docs/jobs.md has the rule),
    each with the run that was already requested for it and the age of that request. `now`: a moment
    other than the present, for tests."""
    async with database.session() as session:
        tenants = await session.values(UUID, "tenants_in_queue")
        return await session.rows(
            ClaimableJob,
            "claimable_jobs",
            lease=LEASE_SECONDS,
            limit=limit,
            tenants=tenants,
            share=_share(limit, len(tenants)),
            now=now,
            **reach(versions),
        )


async def count_waiting(session: Session, versions: Versions) -> int:
    """Due jobs of users that a deployment of these versions could do, counted to a thousand."""
    return await session.value(int, "fresh_jobs_waiting", **reach(versions))


def _share(limit: int, tenants: int) -> int:
    """How many jobs per tenant to look at: more than an equal share, since other tenants may have
    fewer."""
    return limit if tenants <= 1 else min(limit, -(-4 * limit // tenants))


async def remember_requests(
    database: Database, requests: Sequence[tuple[ClaimableJob, str]]
) -> None:
    """Store the run key that was requested for each job. The next look at the queue sees it, until
    the job is claimed."""
    async with database.session() as session:
        await session.run(
            "remember_requests",
            job_ids=[job.job_id for job, _ in requests],
            generations=[job.generation for job, _ in requests],
            attempts=[job.attempts for job, _ in requests],
            run_keys=[run_key for _, run_key in requests],
        )


def reach(versions: Versions | None, *, by_hand: bool = False) -> dict[str, Any]:
    """Query parameters that select the jobs which a deployment of these versions may work on."""
    return {
        "extractor": versions.extractor if versions else None,
        "model": versions.model if versions else None,
        "extract": versions.extract_number if versions else 0,
        "merge": versions.merge_number if versions else 0,
        "by_hand": by_hand,
    }
