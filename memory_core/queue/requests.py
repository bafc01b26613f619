"""Requests for jobs: the first one of a revision, and those that start its job over.

`revisions` names them by `uids` and `revisions`; `request` has the columns of `request_columns.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from memory_core.kernel.database import Session
from memory_core.log import origin
from memory_core.queue.answers import Answers
from memory_core.queue.jobs import LEASE_SECONDS, JobSummary
from memory_core.queue.listing import JobDetails
from memory_core.queue.request_columns import request_columns
from memory_core.queue.versions import Versions

Named = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class RequestedJob:
    artifact_uid: str
    job_id: UUID
    job_status: str


async def insert(
    session: Session, job_ids: Sequence[UUID], revisions: Named, request: dict[str, Any]
) -> None:
    """Insert the first jobs of new revisions."""
    await session.run("insert_jobs", ids=list(job_ids), **revisions, **request)


async def ensure(session: Session, revisions: Named, request: dict[str, Any]) -> None:
    """Insert a job for each of these revisions that has none."""
    await session.run("ensure_jobs_of_revisions", **revisions, **request)


async def start_over(
    session: Session, revisions: Named, request: dict[str, Any]
) -> list[RequestedJob]:
    """Request these revisions, whatever the state of their jobs. A run in flight loses its
    lease."""
    return await session.rows(RequestedJob, "request_extraction", **revisions, **request)


async def start_ended_over(session: Session, revisions: Named, request: dict[str, Any]) -> None:
    """Request the revisions that have no open job. An open job will replace their events anyway."""
    await ensure(session, revisions, request)
    await session.run("reenqueue_revisions", **revisions, **request)


async def reset(
    session: Session, job_id: UUID, answers: Answers, request: dict[str, Any]
) -> JobDetails:
    await session.run("reset_job", job_id=job_id, bypass_cache=answers is Answers.NEW, **request)
    return await session.only(JobDetails, "job_by_id", job_id=job_id)


async def reset_failed(session: Session, code: str | None, answers: Answers) -> list[JobSummary]:
    """Request all failed jobs again, or those that failed with this code."""
    return await session.rows(
        JobSummary,
        "reset_failed_jobs",
        code=code,
        bypass_cache=answers is Answers.NEW,
        **request_columns("tool"),
    )


async def ask_for_backfill(
    session: Session,
    backfill_id: UUID,
    jobs: Sequence[tuple[UUID, int]],
    versions: Versions,
    *,
    same_model: bool,
    requested_by: str,
) -> None:
    """Request `jobs`, each with the number of tokens that it may take, the most urgent first. Only
    a deployment that reaches `versions` works on them."""
    await session.run(
        "ask_again",
        backfill_id=backfill_id,
        job_ids=[job_id for job_id, _ in jobs],
        tokens=[tokens for _, tokens in jobs],
        extractor=versions.extractor,
        needs_model=versions.model if same_model else None,
        extract=versions.extract_number,
        merge=versions.merge_number,
        requested_by=requested_by,
        trace_id=origin.current().trace_id,
    )


async def withdraw_stopped(session: Session) -> int:
    """Return the waiting jobs of stopped backfills to their earlier state. The result is their
    number."""
    return await session.run("withdraw_waiting", lease=LEASE_SECONDS)


async def forget_failed(session: Session, backfill_id: UUID) -> None:
    """Release the failed jobs of a backfill, so that it can request them once more."""
    await session.run("forget_failed", backfill_id=backfill_id)


async def delete_of_artifact(session: Session, artifact_uid: str) -> int:
    """Delete the jobs and their ledger. Returns the number of jobs."""
    return await session.run("delete_jobs_of_artifact", uid=artifact_uid)
