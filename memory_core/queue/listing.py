"""Lists of jobs, page by page, and the transitions of one job."""

import base64
import binascii
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from memory_core.kernel.database import Database, Session
from memory_core.kernel.errors import InvalidInput

JobState = Literal["PENDING", "PROCESSING", "DONE", "FAILED", "CANCELED"]
HISTORY_SHOWN = 50


@dataclass(frozen=True, slots=True)
class JobRow:  # the answer of job_list has these fields
    job_id: str
    artifact_uid: str
    revision_id: str
    title: str | None
    status: str
    attempts: int
    max_attempts: int
    priority: int
    origin: str
    requested_by: str | None
    created_at: datetime
    finished_at: datetime | None
    last_error_code: str | None
    last_error_message: str | None


@dataclass(frozen=True, slots=True)
class RecentJob:
    """A job as an operator sees it, of any tenant."""

    job_id: UUID
    status: str
    attempts: int
    max_attempts: int
    last_error_code: str | None
    last_error_message: str | None
    updated_at: datetime
    origin: str
    artifact_uid: str
    revision_id: str
    title: str | None


@dataclass(frozen=True, slots=True)
class JobDetails:
    job_id: UUID
    artifact_uid: str
    revision_id: str
    status: str
    attempts: int
    max_attempts: int
    created_at: datetime
    updated_at: datetime
    locked_by: str | None
    locked_at: datetime | None
    last_error_code: str | None
    last_error_message: str | None
    next_run_at: datetime
    origin: str
    requested_by: str | None
    priority: int
    backoff_policy: str
    idempotency_key: str | None
    started_at: datetime | None
    finished_at: datetime | None
    cancel_requested_at: datetime | None
    trace_id: str | None
    generation: int
    backfill_id: UUID | None
    extracted: dict[str, Any] | None  # how the stored events were made


@dataclass(frozen=True, slots=True)
class JobTransition:  # the answer of job_status has these fields
    ts: datetime
    prev_status: str | None
    next_status: str
    detail: dict[str, Any]  # run, attempt, generation, origin, error, message, due, who


@dataclass(frozen=True, slots=True)
class JobPage:
    jobs: list[JobRow]
    next_cursor: str | None  # None: this is the last page


@dataclass(frozen=True, slots=True)
class StatusCount:
    status: str
    jobs: int


async def count_by_status(session: Session) -> dict[str, int]:
    counts = await session.rows(StatusCount, "count_jobs_by_status")
    return {count.status: count.jobs for count in counts}


async def page_of_jobs(
    database: Database, *, status: JobState | None = None, limit: int, cursor: str | None = None
) -> JobPage:
    """Jobs, newest first. Jobs created meanwhile do not shift the following pages."""
    before, before_id = _read(cursor) if cursor else (None, None)
    async with database.session() as session:
        rows = await session.rows(
            JobRow,
            "page_of_jobs",
            status=status,
            before=before,
            before_id=before_id,
            limit=limit + 1,
        )
    shown = rows[:limit]
    return JobPage(shown, _written(shown[-1]) if len(rows) > limit else None)


async def recent_jobs(session: Session, status: str | None, limit: int) -> list[RecentJob]:
    """Those that changed last come first."""
    return await session.rows(RecentJob, "list_jobs", status=status, limit=limit)


async def job_by_id(session: Session, job_id: UUID) -> JobDetails | None:
    return await session.row(JobDetails, "job_by_id", job_id=job_id)


async def job_of_revision(
    session: Session, artifact_uid: str, revision_id: str | None
) -> JobDetails | None:
    """Without a revision: of the latest."""
    return await session.row(JobDetails, "job_of_revision", uid=artifact_uid, revision=revision_id)


async def locked_job(session: Session, artifact_uid: str, revision_id: str) -> JobDetails | None:
    """No other transaction changes it until the end of this one."""
    job_id = await session.maybe(
        UUID, "lock_job_of_revision", uid=artifact_uid, revision=revision_id
    )
    return None if job_id is None else await job_by_id(session, job_id)


async def history_of(database: Database, job_id: UUID) -> list[JobTransition]:
    """The last transitions, oldest first."""
    async with database.session() as session:
        return await session.rows(JobTransition, "job_history", job_id=job_id, limit=HISTORY_SHOWN)


def _written(job: JobRow) -> str:
    place = f"{job.created_at.isoformat()} {job.job_id}"
    return base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")


def _read(cursor: str) -> tuple[datetime, UUID]:
    try:
        place = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
        created_at, job_id = place.split(" ")
        return datetime.fromisoformat(created_at), UUID(job_id)
    except (ValueError, binascii.Error):
        raise InvalidInput(
            "cursor: not one that job_list returned. Leave it out to begin with the newest.",
            details={"parameter": "cursor"},
        ) from None
