"""job_status, event_reextract: how an extraction goes, and asking for it again."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field

from mcp_server.arguments import AN_ID
from mcp_server.tool import read_tool, write_tool
from mcp_server.tools.parameters import ArtifactUid, OptionalRevisionId
from memory_core.events import reextraction
from memory_core.kernel import ids
from memory_core.kernel.errors import InvalidInput
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
    status: str = Field(description="PENDING, PROCESSING, DONE or FAILED.")
    attempts: int
    max_attempts: int
    created_at: datetime
    updated_at: datetime
    locked_by: str | None
    locked_at: datetime | None
    last_error_code: str | None
    last_error_message: str | None
    next_run_at: datetime | None
    # Who or what asked last: ingest, tool, ui, backfill, schedule or repair.
    requested_by: str
    # 1 for the first request, raised by each later one.
    generation: int
    backfill_id: str | None
    # How the events that are there now were made; they stay until newer ones replace them.
    extracted: ExtractedWith | None


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
    row = await reextraction.job_status(
        runtime,
        artifact_uid=artifact_uid,
        revision_id=revision_id,
        job_id=ids.parse_uuid("job_id", job_id) if job_id else None,
    )
    backfill = row["backfill_id"]
    shown = {
        **row,
        "job_id": str(row["job_id"]),
        "backfill_id": str(backfill) if backfill else None,
    }
    if row["status"] != "PENDING":
        shown["next_run_at"] = None
    return JobStatus(**shown)


async def event_reextract(
    runtime: Runtime,
    artifact_uid: ArtifactUid,
    revision_id: OptionalRevisionId = None,
    force: Annotated[
        bool, Field(description="Also when done or under way; asks the model again.")
    ] = False,
) -> Reextracted:
    """Extract the events of a revision again: when extraction failed, or with force=true. Old
    events stay until new ones replace them; job_status shows how it goes. Example:
    event_reextract(artifact_uid="uid_0123456789abcdef", force=true)
    """
    await runtime.open()
    result = await reextraction.reextract(runtime, artifact_uid, revision_id, force=force)
    return Reextracted(
        job_id=str(result.job["job_id"]),
        artifact_uid=result.job["artifact_uid"],
        revision_id=result.job["revision_id"],
        status=result.job["status"],
        message=result.message,
    )


TOOLS = (
    read_tool("Status of an extraction", job_status),
    # With force, each call starts it over.
    write_tool("Extract events again", event_reextract, repeatable=False),
)
