"""Reading artifacts: the full text exactly as it arrived, its metadata, chunks and revisions.

Every read of documents goes through this module or `search`, so that the filter on visibility has
one place.
"""

from dataclasses import dataclass
from datetime import datetime

from memory_core.kernel.database import Session
from memory_core.kernel.errors import InvalidInput, NotFound
from memory_core.runtime import Runtime
from memory_core.text.nul import from_storable


@dataclass(frozen=True, slots=True)
class RevisionRecord:
    """The metadata of a revision, without its text."""

    artifact_uid: str
    revision_id: str
    artifact_id: str
    artifact_type: str
    source_system: str
    source_id: str
    source_ts: datetime | None
    source_url: str | None
    title: str | None
    author: str | None
    participants: list[str]
    content_hash: str
    token_count: int
    is_chunked: bool
    chunk_count: int
    sensitivity: str
    visibility_scope: str
    retention_policy: str
    is_latest: bool
    ingested_at: datetime
    job_status: str | None
    event_count: int


@dataclass(frozen=True, slots=True)
class ChunkRecord:
    chunk_index: int
    chunk_id: str
    start_char: int
    end_char: int
    token_count: int


@dataclass(frozen=True, slots=True)
class StoredText:
    content: str
    nul_positions: list[int]


@dataclass(frozen=True, slots=True)
class RevisionKey:
    artifact_uid: str
    revision_id: str


@dataclass(frozen=True, slots=True)
class ListedRevision:
    """A revision in the list of its document's revisions, and how its events were made."""

    revision_id: str
    artifact_id: str
    is_latest: bool
    ingested_at: datetime
    latest_since: datetime
    source_ts: datetime | None
    title: str | None
    token_count: int
    chunk_count: int
    job_status: str | None
    extractor: str | None
    model: str | None
    prompt_version: str | None
    merge_version: str | None
    requested_by: str | None
    extracted_at: datetime | None
    event_count: int


@dataclass(frozen=True, slots=True)
class ListedDocument:
    artifact_uid: str
    revision_id: str
    title: str | None
    artifact_type: str
    source_system: str
    source_id: str
    source_ts: datetime | None
    latest_since: datetime
    token_count: int
    job_status: str | None
    revision_count: int
    event_count: int
    total: int  # number of all matching documents


@dataclass(frozen=True, slots=True)
class StoredRevision:
    revision: RevisionRecord
    chunks: list[ChunkRecord]
    content: str | None


async def get_revision(
    runtime: Runtime,
    *,
    artifact_id: str | None = None,
    artifact_uid: str | None = None,
    revision_id: str | None = None,
    include_content: bool = True,
    as_of: datetime | None = None,
) -> StoredRevision:
    """`as_of`: return the revision that was the latest at that moment."""
    async with runtime.database.session() as session:
        uid, revision = await _resolve(session, artifact_id, artifact_uid, revision_id)
        if as_of is not None:
            revision = await _as_of(session, uid, revision, as_of)
        record = await find_revision(session, uid, revision)
        uid, revision = record.artifact_uid, record.revision_id
        chunks = await chunks_of(session, uid, revision)
        content = await _text(session, uid, revision) if include_content else None
    return StoredRevision(record, chunks, content)


async def find_revision(
    session: Session, artifact_uid: str, revision_id: str | None
) -> RevisionRecord:
    """Without `revision_id`: the latest one. Raises NotFound if there is none."""
    record = await session.row(
        RevisionRecord, "get_revision", uid=artifact_uid, revision=revision_id
    )
    if record is None:
        raise _not_found(artifact_uid, revision_id)
    return record


async def chunks_of(session: Session, artifact_uid: str, revision_id: str) -> list[ChunkRecord]:
    """In their order."""
    return await session.rows(ChunkRecord, "list_chunks", uid=artifact_uid, revision=revision_id)


@dataclass(frozen=True, slots=True)
class DocumentPage:
    documents: list[ListedDocument]
    total: int


async def list_documents(
    runtime: Runtime,
    *,
    words: str | None = None,
    artifact_type: str | None = None,
    source_system: str | None = None,
    limit: int,
    offset: int = 0,
) -> DocumentPage:
    """Documents, the last changed first. `words`: part of the title or of the source's id."""
    async with runtime.database.session() as session:
        documents = await session.rows(
            ListedDocument,
            "list_documents",
            words=words or None,
            artifact_type=artifact_type,
            source_system=source_system,
            limit=limit,
            offset=offset,
        )
    return DocumentPage(documents, documents[0].total if documents else 0)


async def _as_of(session: Session, uid: str, named: str | None, as_of: datetime) -> str:
    if named is not None:
        raise InvalidInput(
            "as_of is for artifact_uid alone: a revision is the same at any time.",
            details={"parameter": "as_of"},
        )
    revision = await session.maybe(str, "revision_as_of", uid=uid, as_of=as_of)
    if revision is None:
        raise NotFound(
            f"At {as_of.isoformat()} there was no artifact {uid!r}; artifact_history says since "
            "when there is one.",
            details={"artifact_uid": uid},
        )
    return revision


async def list_revisions(
    runtime: Runtime, artifact_uid: str, as_of: datetime | None = None
) -> list[ListedRevision]:
    """The revisions, oldest first."""
    async with runtime.database.session() as session:
        revisions = await session.rows(
            ListedRevision, "list_revisions", uid=artifact_uid, as_of=as_of
        )
    if not revisions:
        raise _not_found(artifact_uid, None)
    return revisions


async def resolve_uid(session: Session, artifact_id: str | None, artifact_uid: str | None) -> str:
    uid, _ = await _resolve(session, artifact_id, artifact_uid, None)
    return uid


async def _resolve(
    session: Session, artifact_id: str | None, artifact_uid: str | None, revision_id: str | None
) -> tuple[str, str | None]:
    """The artifact, and which of its revisions (None: the latest)."""
    if (artifact_id is None) == (artifact_uid is None):
        raise InvalidInput(
            "Give either artifact_id (one revision) or artifact_uid (the document), not both.",
            details={"parameter": "artifact_id", "allowed": "exactly one of the two"},
        )
    if artifact_uid is not None:
        return artifact_uid, revision_id
    key = await session.row(RevisionKey, "find_by_artifact_id", artifact_id=artifact_id)
    if key is None:
        raise NotFound(
            f"There is no artifact {artifact_id!r}. artifact_ingest and the searches give ids.",
            details={"artifact_id": artifact_id},
        )
    return key.artifact_uid, revision_id or key.revision_id


async def _text(session: Session, uid: str, revision: str) -> str:
    stored = await session.row(StoredText, "get_text", uid=uid, revision=revision)
    if stored is None:
        raise NotFound(f"The text of {uid} {revision} is missing.", details={"artifact_uid": uid})
    return from_storable(stored.content, stored.nul_positions)


def _not_found(uid: str, revision: str | None) -> NotFound:
    which = f"revision {revision!r} of artifact {uid!r}" if revision else f"artifact {uid!r}"
    return NotFound(
        f"There is no {which}. artifact_search finds documents, artifact_history their revisions.",
        details={"artifact_uid": uid, "revision_id": revision},
    )
