"""artifact_ingest, artifact_search, artifact_get, artifact_history, artifact_delete."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from mcp.server.mcpserver import Context
from pydantic import BaseModel, Field

from mcp_server.tool import read_tool, write_tool
from mcp_server.tools.parameters import (
    INDEXED,
    ArtifactUid,
    AsOf,
    FullChunks,
    OptionalArtifactId,
    OptionalArtifactType,
    OptionalArtifactUid,
    OptionalRevisionId,
    OptionalSourceSystem,
    Priority,
    Query,
    TimeFrom,
    TimeTo,
)
from mcp_server.tools.search import Highlight, hit_fields
from memory_core.artifacts import audience, stored_artifacts
from memory_core.artifacts.deletion import delete_artifact
from memory_core.artifacts.document import (
    MAX_CONTENT_CHARS,
    ArtifactType,
    Document,
    RetentionPolicy,
    Sensitivity,
    VisibilityScope,
)
from memory_core.artifacts.ingest import ingest
from memory_core.artifacts.result import IngestStatus
from memory_core.kernel.database import columns
from memory_core.kernel.errors import InvalidInput
from memory_core.kernel.times import parse_time, parse_until
from memory_core.runtime import Runtime
from memory_core.search.passage_filters import Filters
from memory_core.search.passages import artifact_search as search_artifacts
from memory_core.search.passages import note_on


class ArtifactIngested(BaseModel):
    artifact_id: str
    artifact_uid: str
    revision_id: str
    is_chunked: bool
    num_chunks: int
    stored_ids: list[str]
    job_id: str | None
    job_status: str = Field(description="N/A: no new work.")
    status: IngestStatus = Field(
        description="created, revised, restored (older content, or a lost text), relabelled or "
        "unchanged."
    )
    indexed: bool = Field(description=INDEXED)


class ArtifactHit(BaseModel):
    artifact_uid: str
    artifact_id: str
    revision_id: str
    title: str | None
    artifact_type: ArtifactType
    source_system: str
    source_ts: datetime | None
    passage: str
    chunk_id: str | None
    start_char: int
    end_char: int
    highlight: Highlight | None
    score: float
    sources: list[str]


class ArtifactsFound(BaseModel):
    results: list[ArtifactHit]
    note: str = ""


class ChunkInfo(BaseModel):
    chunk_id: str
    chunk_index: int
    start_char: int
    end_char: int
    token_count: int
    content: str | None = None


class Artifact(BaseModel):
    artifact_uid: str
    revision_id: str
    artifact_id: str
    is_latest: bool
    artifact_type: ArtifactType
    source_system: str
    source_id: str
    source_url: str | None
    source_ts: datetime | None
    title: str | None
    author: str | None
    participants: list[str]
    sensitivity: Sensitivity
    visibility_scope: VisibilityScope
    retention_policy: RetentionPolicy
    content_hash: str
    token_count: int
    is_chunked: bool
    chunk_count: int
    ingested_at: datetime
    job_status: str | None
    event_count: int
    content: str | None = None
    chunks: list[ChunkInfo]


class RevisionInfo(BaseModel):
    revision_id: str
    artifact_id: str
    is_latest: bool
    ingested_at: datetime
    source_ts: datetime | None
    title: str | None
    token_count: int
    chunk_count: int
    job_status: str | None
    event_count: int
    extractor: str | None
    model: str | None
    prompt_version: str | None
    merge_version: str | None
    requested_by: str | None
    extracted_at: datetime | None


class ArtifactHistory(BaseModel):
    artifact_uid: str
    revisions: list[RevisionInfo]


class ArtifactDeleted(BaseModel):
    artifact_uid: str
    revisions: int
    chunks: int
    vectors: int
    events: int
    evidence: int
    jobs: int
    cache_entries: int
    lineage_entries: int
    indexed: bool


async def artifact_ingest(
    runtime: Runtime,
    artifact_type: ArtifactType,
    source_system: Annotated[
        str, Field(min_length=1, max_length=200, description="gmail, slack …")
    ],
    content: Annotated[
        str,
        Field(
            min_length=1,
            max_length=MAX_CONTENT_CHARS,
            description="The full text, unchanged.",
        ),
    ],
    ctx: Context[None, Any],
    source_id: Annotated[
        str | None,
        Field(
            max_length=1000,
            description="Its id there; the same id again makes a revision.",
        ),
    ] = None,
    source_url: Annotated[str | None, Field(max_length=4000)] = None,
    title: Annotated[str | None, Field(max_length=1000)] = None,
    author: Annotated[str | None, Field(max_length=500)] = None,
    participants: Annotated[list[str] | None, Field(max_length=1000)] = None,
    ts: Annotated[
        str | None,
        Field(max_length=64, description="When written or sent, ISO 8601."),
    ] = None,
    sensitivity: Annotated[
        Sensitivity | None,
        Field(description="A label: stored, not enforced yet. Else normal."),
    ] = None,
    visibility_scope: Annotated[
        VisibilityScope | None,
        Field(description="Who finds it: its owner, their groups, all, or visible_to. Else me."),
    ] = None,
    visible_to: Annotated[
        list[str] | None,
        Field(max_length=1000, description="With custom: users, and groups as group:NAME."),
    ] = None,
    retention_policy: Annotated[
        RetentionPolicy | None,
        Field(description="When it is deleted; custom: at expires_at. Else forever."),
    ] = None,
    expires_at: Annotated[str | None, Field(max_length=64, description="ISO 8601.")] = None,
    priority: Priority = 0,
    idempotency_key: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=255,
            description="Of your own: sent again with it, this stores nothing more.",
        ),
    ] = None,
) -> ArtifactIngested:
    """Remember a whole document: email, doc, chat, transcript or note. Its text is kept
    exactly; events (decisions, promises …) are extracted in the background. Give source_id
    and ts whenever you know them: later versions become revisions, and "next Friday" a
    date. Known content with another title, date … takes these; what you leave out stays.
    For one short fact use memory_store. Example:
    artifact_ingest(artifact_type="note", source_system="obsidian", source_id="kickoff.md",
    ts="2026-03-02", content="Decision: we launch in May.")
    """
    document = Document(
        artifact_type=artifact_type,
        source_system=source_system,
        content=content,
        source_id=source_id,
        source_url=source_url,
        title=title,
        author=author,
        participants=tuple(participants or ()),
        ts=parse_time("ts", ts),
        sensitivity=sensitivity,
        visibility_scope=visibility_scope,
        retention_policy=retention_policy,
        visible_to=audience.members(visibility_scope, visible_to),
        expires_at=_expiry(retention_policy, expires_at),
    )
    await runtime.open()
    result = await ingest(
        runtime,
        document,
        ctx.report_progress,
        priority=priority,
        idempotency_key=idempotency_key,
    )
    return ArtifactIngested(**asdict(result), indexed=await runtime.indexed(result.position))


def _expiry(policy: RetentionPolicy | None, text: str | None) -> datetime | None:
    expires_at = parse_time("expires_at", text)
    if expires_at is not None and policy is not RetentionPolicy.CUSTOM:
        raise InvalidInput(
            "expires_at belongs to retention_policy custom: give both.",
            details={"parameter": "expires_at"},
        )
    return expires_at


async def artifact_search(
    runtime: Runtime,
    query: Query,
    limit: Annotated[int, Field(ge=1, le=50)] = 10,
    artifact_type: OptionalArtifactType = None,
    type: Annotated[ArtifactType | None, Field(description="= artifact_type.")] = None,
    source_system: OptionalSourceSystem = None,
    time_from: TimeFrom = None,
    time_to: TimeTo = None,
    full_chunks: FullChunks = False,
) -> ArtifactsFound:
    """Find which documents are about something: one hit each, with its best passage. For
    passages use hybrid_search; for what was decided, promised or changed the event tools.
    Example: artifact_search(query="pricing model", artifact_type="email")
    """
    if artifact_type and type and artifact_type != type:
        raise InvalidInput(
            "artifact_type and type are the same parameter; give one of them.",
            details={"parameter": "type"},
        )
    await runtime.open()
    filters = Filters(
        artifact_type=artifact_type or type,
        source_system=source_system,
        time_from=parse_time("time_from", time_from),
        time_to=parse_until("time_to", time_to),
    )
    hits = await search_artifacts(runtime, query, filters, limit=limit, full_chunks=full_chunks)
    results = [ArtifactHit(**hit_fields(hit), passage=hit.text) for hit in hits]
    return ArtifactsFound(results=results, note=note_on(hits))


async def artifact_get(
    runtime: Runtime,
    artifact_id: OptionalArtifactId = None,
    artifact_uid: OptionalArtifactUid = None,
    revision_id: OptionalRevisionId = None,
    include_content: bool = True,
    expand_chunks: bool = False,
    as_of: AsOf = None,
) -> Artifact:
    """Read one document: its exact text, metadata and chunks. Give artifact_uid (and
    revision_id for an older text), or artifact_id. To find it use artifact_search. Example:
    artifact_get(artifact_uid="uid_0123456789abcdef")
    """
    await runtime.open()
    stored = await stored_artifacts.get_revision(
        runtime,
        artifact_id=artifact_id,
        artifact_uid=artifact_uid,
        revision_id=revision_id,
        include_content=include_content or expand_chunks,
        as_of=parse_until("as_of", as_of),
    )
    text = stored.content or ""
    chunks = [
        ChunkInfo(
            **columns(chunk),
            content=text[chunk.start_char : chunk.end_char] if expand_chunks else None,
        )
        for chunk in stored.chunks
    ]
    return Artifact(
        **columns(stored.revision),
        content=stored.content if include_content else None,
        chunks=chunks,
    )


async def artifact_history(
    runtime: Runtime, artifact_uid: ArtifactUid, as_of: AsOf = None
) -> ArtifactHistory:
    """The revisions of a document, oldest first, with the state of their extraction. Use it to
    get the revision_ids to read or compare. Example:
    artifact_history(artifact_uid="uid_0123456789abcdef")
    """
    await runtime.open()
    history = await stored_artifacts.list_revisions(
        runtime, artifact_uid, parse_until("as_of", as_of)
    )
    revisions = [RevisionInfo(**columns(revision)) for revision in history]
    return ArtifactHistory(artifact_uid=artifact_uid, revisions=revisions)


async def artifact_delete(
    runtime: Runtime,
    artifact_id: OptionalArtifactId = None,
    artifact_uid: OptionalArtifactUid = None,
) -> ArtifactDeleted:
    """Delete a document for good: all revisions, text, events and jobs. Cannot be undone; ask
    the user first. Give artifact_uid, or artifact_id of any revision. Example:
    artifact_delete(artifact_uid="uid_0123456789abcdef")
    """
    await runtime.open()
    deleted = await delete_artifact(runtime, artifact_id=artifact_id, artifact_uid=artifact_uid)
    indexed = await runtime.indexed(deleted.position)
    return ArtifactDeleted(**asdict(deleted), indexed=indexed)


TOOLS = (
    write_tool("Ingest a document", artifact_ingest),
    read_tool("Search documents", artifact_search),
    read_tool("Read a document", artifact_get),
    read_tool("Revisions of a document", artifact_history),
    write_tool("Delete a document", artifact_delete, destructive=True),
)
