"""Requesting the extraction of a revision's events again."""

from dataclasses import dataclass
from uuid import UUID

from memory_core.artifacts.stored_artifacts import find_revision
from memory_core.kernel.database import Session
from memory_core.kernel.errors import NotFound
from memory_core.log.change import ChangeType, of_artifact
from memory_core.log.log_writer import append
from memory_core.queue import requests
from memory_core.queue.answers import Answers
from memory_core.queue.jobs import JobSummary
from memory_core.queue.listing import JobDetails, job_by_id, job_of_revision, locked_job
from memory_core.queue.request_columns import new_job_columns
from memory_core.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Reextraction:
    job: JobDetails
    message: str


async def reextract(
    runtime: Runtime,
    artifact_uid: str,
    revision_id: str | None,
    *,
    answers: Answers,
    priority: int = 0,
) -> Reextraction:
    """Old events stay readable until new ones replace them. With NEW answers the job restarts
    whatever its status; otherwise only if it failed."""
    starts_over = answers is Answers.NEW
    request = new_job_columns(runtime.settings, "tool", priority=priority)
    async with runtime.database.transaction() as session:
        revision = await find_revision(session, artifact_uid, revision_id)
        uid, revision_id = revision.artifact_uid, revision.revision_id
        job = await locked_job(session, uid, revision_id)
        if job is None:
            await requests.ensure(session, {"uids": [uid], "revisions": [revision_id]}, request)
            job = await locked_job(session, uid, revision_id)
            assert job is not None
            await _append(session, job)
            return Reextraction(job, "Re-extraction job enqueued.")
        if not starts_over and job.status in {"PENDING", "PROCESSING"}:
            return Reextraction(job, f"The job is {job.status} already; force=true starts it over.")
        if not starts_over and job.status == "DONE":
            return Reextraction(
                job, "The events are extracted already; force=true extracts them again."
            )
        reset = await requests.reset(session, job.job_id, answers, request)
        await _append(session, reset)
    why = "forced" if starts_over else f"it was {job.status}"
    return Reextraction(reset, f"The job was reset and enqueued again ({why}).")


async def reextract_failed(runtime: Runtime, code: str | None, answers: Answers) -> int:
    """Enqueue every failed job again, or those that failed with this code. Returns the number of
    jobs."""
    async with runtime.database.transaction() as session:
        jobs = await requests.reset_failed(session, code, answers)
        await _append(session, *jobs)
    return len(jobs)


async def _append(session: Session, *jobs: JobSummary | JobDetails) -> None:
    changes = [
        of_artifact(
            ChangeType.JOB_REQUESTED,
            job.artifact_uid,
            revision_id=job.revision_id,
            job_id=str(job.job_id),
        )
        for job in jobs
    ]
    await append(session, changes)


async def job_status(
    runtime: Runtime,
    *,
    artifact_uid: str | None = None,
    revision_id: str | None = None,
    job_id: UUID | None = None,
) -> JobDetails:
    async with runtime.database.session() as session:
        if job_id is not None:
            job = await job_by_id(session, job_id)
            if job is None:
                raise NotFound(f"There is no job {job_id}.", details={"job_id": str(job_id)})
            return job
        assert artifact_uid is not None
        job = await job_of_revision(session, artifact_uid, revision_id)
        if job is None:
            # An unknown revision is what the caller should hear of first.
            await find_revision(session, artifact_uid, revision_id)
            raise NotFound(
                f"There is no job for artifact {artifact_uid!r}; event_reextract makes one.",
                details={"artifact_uid": artifact_uid, "revision_id": revision_id},
            )
        return job
