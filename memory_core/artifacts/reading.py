"""Reading artifacts: the full text exactly as it came in, its metadata, chunks and history.

Every read of documents goes through this module or `search`, so that a filter on who may see
what can be added in one place.
"""

from dataclasses import dataclass
from datetime import datetime

from memory_core.kernel.database import Row, Session
from memory_core.kernel.errors import InvalidInput, NotFound
from memory_core.runtime import Runtime
from memory_core.text.nul import from_storable


@dataclass(frozen=True, slots=True)
class StoredRevision:
    row: Row
    chunks: list[Row]
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
    """`as_of`: the revision that was the latest at that moment."""
    async with runtime.database.session() as session:
        uid, revision = await _resolve(session, artifact_id, artifact_uid, revision_id)
        if as_of is not None:
            revision = await _as_of(session, uid, revision, as_of)
        row = await session.one("get_revision", uid=uid, revision=revision)
        if row is None:
            raise _not_found(uid, revision)
        uid, revision = row["artifact_uid"], row["revision_id"]
        chunks = await session.all("list_chunks", uid=uid, revision=revision)
        content = await _text(session, uid, revision) if include_content else None
    return StoredRevision(row=row, chunks=chunks, content=content)


@dataclass(frozen=True, slots=True)
class DocumentPage:
    documents: list[Row]
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
    """Those first that changed last. `words`: as they stand in the title or the source's id."""
    async with runtime.database.session() as session:
        rows = await session.all(
            "list_documents",
            words=words or None,
            artifact_type=artifact_type,
            source_system=source_system,
            limit=limit,
            offset=offset,
        )
    total = rows[0]["total"] if rows else 0
    return DocumentPage([{k: v for k, v in row.items() if k != "total"} for row in rows], total)


async def _as_of(session: Session, uid: str, named: str | None, as_of: datetime) -> str:
    if named is not None:
        raise InvalidInput(
            "as_of is for artifact_uid alone: a revision is the same at any time.",
            details={"parameter": "as_of"},
        )
    row = await session.one("revision_as_of", uid=uid, as_of=as_of)
    if row is None:
        raise NotFound(
            f"At {as_of.isoformat()} there was no artifact {uid!r}; artifact_history says since "
            "when there is one.",
            details={"artifact_uid": uid},
        )
    revision: str = row["revision_id"]
    return revision


async def list_revisions(
    runtime: Runtime, artifact_uid: str, as_of: datetime | None = None
) -> list[Row]:
    """Oldest first."""
    async with runtime.database.session() as session:
        rows = await session.all("list_revisions", uid=artifact_uid, as_of=as_of)
    if not rows:
        raise _not_found(artifact_uid, None)
    return rows


async def resolve_uid(session: Session, artifact_id: str | None, artifact_uid: str | None) -> str:
    uid, _ = await _resolve(session, artifact_id, artifact_uid, None)
    return uid


async def _resolve(
    session: Session, artifact_id: str | None, artifact_uid: str | None, revision_id: str | None
) -> tuple[str, str | None]:
    """Which artifact, and which of its revisions (None: the latest)."""
    if (artifact_id is None) == (artifact_uid is None):
        raise InvalidInput(
            "Give either artifact_id (one revision) or artifact_uid (the document), not both.",
            details={"parameter": "artifact_id", "allowed": "exactly one of the two"},
        )
    if artifact_uid is not None:
        return artifact_uid, revision_id
    found = await session.one("find_by_artifact_id", artifact_id=artifact_id)
    if found is None:
        raise NotFound(
            f"There is no artifact {artifact_id!r}. artifact_ingest and the searches give ids.",
            details={"artifact_id": artifact_id},
        )
    return found["artifact_uid"], revision_id or found["revision_id"]


async def _text(session: Session, uid: str, revision: str) -> str:
    stored = await session.one("get_text", uid=uid, revision=revision)
    if stored is None:
        raise NotFound(f"The text of {uid} {revision} is missing.", details={"artifact_uid": uid})
    return from_storable(stored["content"], stored["nul_positions"])


def _not_found(uid: str, revision: str | None) -> NotFound:
    which = f"revision {revision!r} of artifact {uid!r}" if revision else f"artifact {uid!r}"
    return NotFound(
        f"There is no {which}. artifact_search finds documents, artifact_history their revisions.",
        details={"artifact_uid": uid, "revision_id": revision},
    )
