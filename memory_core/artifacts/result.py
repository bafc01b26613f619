"""The result of an ingest."""

from dataclasses import dataclass
from typing import Literal

from memory_core.artifacts.known_content import KnownContent, KnownRevision
from memory_core.artifacts.revision import RevisionDraft
from memory_core.log.change import Position
from memory_core.queue.requests import RequestedJob

IngestStatus = Literal["created", "revised", "restored", "relabelled", "unchanged"]


@dataclass(frozen=True, slots=True)
class IngestResult:
    artifact_id: str
    artifact_uid: str
    revision_id: str
    is_chunked: bool
    num_chunks: int
    stored_ids: list[str]
    job_id: str | None
    job_status: str
    status: IngestStatus
    position: Position | None = None  # the position of its change in the log; None: nothing changed


def of_new(draft: RevisionDraft, job_id: str, *, revised: bool) -> IngestResult:
    chunk_ids = [piece.id for piece in draft.pieces] if draft.is_chunked else []
    return IngestResult(
        artifact_id=draft.revision.artifact_id,
        artifact_uid=draft.uid,
        revision_id=draft.revision.id,
        is_chunked=draft.is_chunked,
        num_chunks=len(chunk_ids),
        stored_ids=[draft.revision.artifact_id, *chunk_ids],
        job_id=job_id,
        job_status="PENDING",
        status="revised" if revised else "created",
    )


def of_known(content: KnownContent, job: RequestedJob | None = None) -> IngestResult:
    """`job`: the job that extracts its events again, if one is needed."""
    row, draft = content.row, content.draft
    if content.is_whole:
        chunk_ids = list(row.chunk_ids) if row.is_chunked else []
    else:
        chunk_ids = [piece.id for piece in draft.pieces] if draft.is_chunked else []
    # A revision that becomes the latest again keeps its own job.
    source: RequestedJob | KnownRevision | None = job
    if job is None and content.status == "restored":
        source = row
    return IngestResult(
        artifact_id=row.artifact_id,
        artifact_uid=row.artifact_uid,
        revision_id=row.revision_id,
        is_chunked=bool(chunk_ids),
        num_chunks=len(chunk_ids),
        stored_ids=[row.artifact_id, *chunk_ids],
        job_id=str(source.job_id) if source and source.job_id else None,
        job_status=(source.job_status if source else None) or "N/A",
        status=content.status,
    )
