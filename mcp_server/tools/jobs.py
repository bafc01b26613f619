"""job_status, job_list, job_cancel, event_reextract."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field

from mcp_server.arguments import AN_ID
from mcp_server.tool import read_tool, write_tool
from mcp_server.tools.parameters import ArtifactUid, OptionalRevisionId, Priority
from memory_core.events import reextraction
from memory_core.kernel import ids
from memory_core.kernel.database import columns
from memory_core.kernel.errors import InvalidInput
from memory_core.queue.answers import Answers
from memory_core.queue.cancel import cancel
from memory_core.queue.listing import JobRow, JobState, JobTransition, history_of, page_of_jobs
from memory_core.runtime import Runtime


class ExtractedWith(BaseModel):
    extractor: str
    model: str
    prompt_version: str
    merge_version: str
    requested_by: str
    dagster_run_id: str
    finished_at: datetime
    events: int


class JobStatus(BaseModel):
    job_id: str
    artifact_uid: str
    revision_id: str
    status: str = Field(description="PENDING, PROCESSING, DONE, FAILED or CANCELED.")
    attempts: int
    max_attempts: int
    created_at: datetime
    updated_at: datetime
    locked_by: str | None
    locked_at: datetime | None
    last_error_code: str | None
    last_error_message: str | None
    next_run_at: datetime | None
    # What requested the job last (ingest, tool, ui, backfill, schedule or repair), and who, if
    # known.
    origin: str
    requested_by: str | None
    priority: int
    backoff_policy: str
    idempotency_key: str | None
    started_at: datetime | None
    finished_at: datetime | None
    # Set while a run still works on the job; that run will stop.
    cancel_requested_at: datetime | None
    trace_id: str | None
    # 1 for the first request; each later request adds one.
    generation: int
    backfill_id: str | None
    # How the stored events were made. They stay until newer ones replace them.
    extracted: ExtractedWith | None
    # The last 50 transitions, oldest first.
    history: list[JobTransition]


class JobsListed(BaseModel):
    jobs: list[JobRow]
    next_cursor: str | None


class CancelAnswer(BaseModel):
    job_id: str
    status: str
    message: str


class Reextracted(BaseModel):
    job_id: str
    artifact_uid: str
    revision_id: str
    status: str
    message: str


async def job_status(
    runtime: Runtime,
    artifact_uid: Annotated[
        str | None,
        Field(description="uid_… of the document, or else job_id."),
        AN_ID,
    ] = None,
    revision_id: OptionalRevisionId = None,
    job_id: Annotated[
        str | None, Field(description="As artifact_ingest returns it."), AN_ID
    ] = None,
) -> JobStatus:
    """How the extraction of a document goes, and why it failed if it did. Example:
    job_status(artifact_uid="uid_0123456789abcdef")
    """
    if (artifact_uid is None) == (job_id is None):
        raise InvalidInput(
            "Give either artifact_uid (and revision_id) or job_id.",
            details={"parameter": "artifact_uid", "allowed": "exactly one of the two"},
        )
    await runtime.open()
    job = await reextraction.job_status(
        runtime,
        artifact_uid=artifact_uid,
        revision_id=revision_id,
        job_id=ids.parse_uuid("job_id", job_id) if job_id else None,
    )
    history = await history_of(runtime.database, job.job_id)
    return JobStatus(
        **columns(job)
        | {
            "job_id": str(job.job_id),
            "backfill_id": str(job.backfill_id) if job.backfill_id else None,
            "next_run_at": job.next_run_at if job.status == "PENDING" else None,
            "history": history,
        }
    )


async def job_list(
    runtime: Runtime,
    status: JobState | None = None,
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
    cursor: Annotated[
        str | None, Field(max_length=200, description="next_cursor of the page before.")
    ] = None,
) -> JobsListed:
    """Extraction jobs, newest first. Example: job_list(status="FAILED")"""
    await runtime.open()
    page = await page_of_jobs(runtime.database, status=status, limit=limit, cursor=cursor)
    return JobsListed(
        jobs=page.jobs,
        next_cursor=page.next_cursor,
    )


async def job_cancel(
    runtime: Runtime,
    job_id: Annotated[str, Field(min_length=1, description="Of job_list or job_status."), AN_ID],
) -> CancelAnswer:
    """Stop an extraction: at once while it waits, else at its run's next safe point. Stored events
    stay. Example: job_cancel(job_id="job_01234567-89ab-cdef-0123-456789abcdef")
    """
    await runtime.open()
    done = await cancel(runtime.database, ids.parse_uuid("job_id", job_id))
    return CancelAnswer(job_id=str(done.job_id), status=done.status, message=done.message)


async def event_reextract(
    runtime: Runtime,
    artifact_uid: ArtifactUid,
    revision_id: OptionalRevisionId = None,
    force: Annotated[
        bool, Field(description="Also when done or under way; asks the model again.")
    ] = False,
    priority: Priority = 0,
) -> Reextracted:
    """Extract the events of a revision again: when extraction failed, or with force=true. Old
    events stay until new ones replace them; job_status shows how it goes. Example:
    event_reextract(artifact_uid="uid_0123456789abcdef", force=true)
    """
    await runtime.open()
    result = await reextraction.reextract(
        runtime,
        artifact_uid,
        revision_id,
        answers=Answers.NEW if force else Answers.KNOWN,
        priority=priority,
    )
    return Reextracted(
        job_id=str(result.job.job_id),
        artifact_uid=result.job.artifact_uid,
        revision_id=result.job.revision_id,
        status=result.job.status,
        message=result.message,
    )


TOOLS = (
    read_tool("Status of an extraction", job_status),
    read_tool("Extraction jobs", job_list),
    write_tool("Cancel an extraction", job_cancel),
    # With force, each call starts a new extraction.
    write_tool("Extract events again", event_reextract, repeatable=False),
)
