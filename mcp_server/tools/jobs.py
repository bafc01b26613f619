"""job_status: how an extraction goes."""

from datetime import datetime
from typing import Annotated

from mcp.server.mcpserver.tools import Tool
from pydantic import BaseModel, Field

from mcp_server.tool import read_tool
from mcp_server.tools.parameters import OptionalRevisionId
from memory_core import ids
from memory_core.errors import InvalidInput
from memory_core.events import reextraction
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
    next_run_at: datetime | None = Field(description="Only while PENDING.")
    requested_by: str = Field(
        description="Who or what asked last: ingest, tool, ui, backfill, schedule or repair."
    )
    generation: int = Field(description="1 for the first request, raised by each later one.")
    backfill_id: str | None = Field(description="The backfill that asked.")
    extracted: ExtractedWith | None = Field(
        description="How the events that are there now were made; they stay until newer ones "
        "replace them."
    )


def tools(runtime: Runtime) -> list[Tool]:
    async def job_status(
        artifact_uid: Annotated[
            str | None,
            Field(max_length=200, description="The document: uid_… . Instead of job_id."),
        ] = None,
        revision_id: OptionalRevisionId = None,
        job_id: Annotated[
            str | None, Field(max_length=100, description="A job, as a tool returned it.")
        ] = None,
    ) -> JobStatus:
        """How the extraction of a revision goes, and why it failed if it did.

        Give artifact_uid (and revision_id), or job_id as artifact_ingest returned it.
        Example: job_status(artifact_uid="uid_0123456789abcdef")
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

    return [read_tool("Status of an extraction", job_status)]
