"""Ingest: a document becomes a revision, its chunks become searchable, a job becomes pending.

The order is embed, write Chroma, commit Postgres. Postgres decides what exists: whatever fails
before its commit leaves nothing that any tool would show.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Literal

from memory_core import ids
from memory_core.artifacts.document import Document
from memory_core.database import Database, Row, Session
from memory_core.embedding import Vector
from memory_core.errors import ChromaUnavailable, PostgresUnavailable
from memory_core.runtime import Runtime
from memory_core.settings import Settings
from memory_core.text import chunking
from memory_core.text.chunk import Chunk
from memory_core.text.nul import to_storable
from memory_core.vectors import CollectionName, Entry, Metadata, VectorStore

log = logging.getLogger(__name__)

IngestStatus = Literal["created", "revised", "restored", "unchanged"]
# Called with how far it is, out of how much, and what is being done.
Progress = Callable[[float, float, str], Awaitable[None]]
# Chunking holds the CPU; documents longer than this are chunked beside the event loop.
_CHUNK_INLINE_CHARS = 20_000
_EMBED_BATCH = 64
_PREVIEW_CHARS = 2_000


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


@dataclass(frozen=True, slots=True)
class Piece:
    """A chunk with the names it goes by."""

    chunk: Chunk
    id: str
    content_hash: str


@dataclass(frozen=True, slots=True)
class Revision:
    """A document with all that follows from its content."""

    document: Document
    uid: str
    id: str
    artifact_id: str
    content_hash: str
    text: str  # as stored: U+0000 stands as U+2400
    nul_positions: list[int]

    @classmethod
    def of(cls, document: Document) -> "Revision":
        content_hash = ids.sha256(document.content)
        uid = ids.artifact_uid(document.source_system, document.source_id)
        revision_id = ids.revision_id(content_hash)
        text, nul_positions = to_storable(document.content)
        return cls(
            document=document,
            uid=uid,
            id=revision_id,
            artifact_id=ids.artifact_id(uid, revision_id),
            content_hash=content_hash,
            text=text,
            nul_positions=nul_positions,
        )

    @property
    def partition_key(self) -> str:
        name = self.document.title or self.document.source_id
        return ids.partition_key(name, self.uid, self.id)


async def _silent(_done: float, _total: float, _what: str) -> None:
    return None


async def ingest(
    runtime: Runtime, document: Document, progress: Progress = _silent
) -> IngestResult:
    revision = Revision.of(document)
    known = await _existing(runtime.database, revision)
    if known is not None and known["is_latest"]:
        return _unchanged(known)
    if known is not None:
        return await _store(runtime, revision, [], [])
    pieces = await _cut(revision, runtime.settings)
    vectors = await _embed(runtime, pieces, progress)
    return await _store(runtime, revision, pieces, vectors)


async def _cut(revision: Revision, settings: Settings) -> list[Piece]:
    limits = chunking.ChunkingLimits(
        single_piece_max_tokens=settings.single_piece_max_tokens,
        target_tokens=settings.chunk_target_tokens,
        overlap_tokens=settings.chunk_overlap_tokens,
    )
    if len(revision.text) > _CHUNK_INLINE_CHARS:
        chunks = await asyncio.to_thread(chunking.split, revision.text, limits)
    else:
        chunks = chunking.split(revision.text, limits)
    if len(chunks) == 1:
        return [Piece(chunks[0], revision.artifact_id, ids.sha256(chunks[0].text))]
    return [_named(revision.artifact_id, chunk) for chunk in chunks]


def _named(artifact_id: str, chunk: Chunk) -> Piece:
    digest = ids.sha256(chunk.text)
    return Piece(chunk, ids.chunk_id(artifact_id, chunk.index, digest), digest)


async def _embed(runtime: Runtime, pieces: list[Piece], progress: Progress) -> list[Vector]:
    vectors: list[Vector] = []
    batch_size = max(_EMBED_BATCH, runtime.settings.openai_batch_size * 4)
    for start in range(0, len(pieces), batch_size):
        batch = pieces[start : start + batch_size]
        await progress(start, len(pieces), f"embedding chunk {start + 1} of {len(pieces)}")
        vectors += await runtime.embedder.embed([piece.chunk.text for piece in batch])
    await progress(len(pieces), len(pieces), "storing")
    return vectors


async def _existing(database: Database, revision: Revision) -> Row | None:
    async with database.session() as session:
        return await session.one("find_revision", uid=revision.uid, revision=revision.id)


async def _store(
    runtime: Runtime, revision: Revision, pieces: list[Piece], vectors: list[Vector]
) -> IngestResult:
    """The one transaction. Everybody who writes this artifact does so one after the other."""
    async with runtime.database.transaction() as session:
        await session.run("lock_artifact", uid=revision.uid)
        known = await session.one("find_revision", uid=revision.uid, revision=revision.id)
        latest = await session.one("find_latest_revision", uid=revision.uid)
        if known is not None and known["is_latest"]:
            return _unchanged(known)
        if known is not None:
            result = await _restore(session, runtime.vectors, known)
        else:
            if not pieces:  # deleted since we looked: start over with the full work
                pieces = await _cut(revision, runtime.settings)
                vectors = await _embed(runtime, pieces, _silent)
            status: IngestStatus = "created" if latest is None else "revised"
            indexing = asyncio.create_task(_index(runtime.vectors, revision, pieces, vectors))
            try:
                result = await _insert(session, revision, pieces, runtime.settings, status)
            finally:
                await indexing  # the commit comes after: without Chroma there is none
    if latest is not None:
        await _retire(runtime, latest)
    return result


async def _index(
    store: VectorStore, revision: Revision, pieces: list[Piece], vectors: list[Vector]
) -> None:
    """Write to Chroma. Takes most of the time, so Postgres works beside it."""
    now = datetime.now(UTC)
    writes = [store.upsert(*_artifact_entry(revision, pieces, vectors, now))]
    if len(pieces) > 1:
        writes.append(store.upsert(*_chunk_entries(revision, pieces, vectors, now)))
    for outcome in await asyncio.gather(*writes, return_exceptions=True):
        if outcome is not None:
            raise outcome


async def _insert(
    session: Session,
    revision: Revision,
    pieces: list[Piece],
    settings: Settings,
    status: IngestStatus,
) -> IngestResult:
    document = revision.document
    is_chunked = len(pieces) > 1
    chunk_count = len(pieces) if is_chunked else 0
    token_count = sum(piece.chunk.token_count for piece in pieces) - _overlap_tokens(pieces)
    await session.run("supersede_revisions", uid=revision.uid)
    await session.run(
        "insert_revision",
        uid=revision.uid,
        revision=revision.id,
        artifact_id=revision.artifact_id,
        artifact_type=document.artifact_type.value,
        source_system=document.source_system,
        source_id=document.source_id or "",
        source_ts=document.ts,
        source_url=document.source_url,
        title=document.title,
        author=document.author,
        participants=list(document.participants),
        content_hash=revision.content_hash,
        token_count=token_count,
        is_chunked=is_chunked,
        chunk_count=chunk_count,
        sensitivity=document.sensitivity.value,
        visibility_scope=document.visibility_scope.value,
        retention_policy=document.retention_policy.value,
        partition_key=revision.partition_key,
    )
    await session.run(
        "insert_revision_text",
        uid=revision.uid,
        revision=revision.id,
        content=revision.text,
        nul_positions=revision.nul_positions,
    )
    await session.run(
        "insert_chunks",
        uid=revision.uid,
        revision=revision.id,
        title=document.title or "",
        indexes=[piece.chunk.index for piece in pieces],
        ids=[piece.id for piece in pieces],
        starts=[piece.chunk.start_char for piece in pieces],
        ends=[piece.chunk.end_char for piece in pieces],
        tokens=[piece.chunk.token_count for piece in pieces],
        hashes=[piece.content_hash for piece in pieces],
        texts=[piece.chunk.text for piece in pieces],
    )
    job = await session.one(
        "insert_job",
        uid=revision.uid,
        revision=revision.id,
        max_attempts=settings.event_max_attempts,
        requested_by="ingest",
    )
    assert job is not None
    return IngestResult(
        artifact_id=revision.artifact_id,
        artifact_uid=revision.uid,
        revision_id=revision.id,
        is_chunked=is_chunked,
        num_chunks=chunk_count,
        stored_ids=[revision.artifact_id, *(piece.id for piece in pieces if is_chunked)],
        job_id=str(job["job_id"]),
        job_status="PENDING",
        status=status,
    )


async def _restore(session: Session, vectors: VectorStore, known: Row) -> IngestResult:
    """The content of an older revision came in again: that one is the latest again."""
    await vectors.set_latest(CollectionName.ARTIFACTS, [known["artifact_id"]], latest=True)
    if known["is_chunked"]:
        await vectors.set_latest(CollectionName.CHUNKS, known["chunk_ids"], latest=True)
    await session.run("supersede_revisions", uid=known["artifact_uid"])
    await session.run("restore_revision", uid=known["artifact_uid"], revision=known["revision_id"])
    return _result(known, "restored", known["job_id"], known["job_status"] or "N/A")


def _unchanged(known: Row) -> IngestResult:
    return _result(known, "unchanged", None, "N/A")


def _result(
    known: Row, status: IngestStatus, job_id: object | None, job_status: str
) -> IngestResult:
    return IngestResult(
        artifact_id=known["artifact_id"],
        artifact_uid=known["artifact_uid"],
        revision_id=known["revision_id"],
        is_chunked=known["is_chunked"],
        num_chunks=known["chunk_count"],
        stored_ids=[known["artifact_id"], *(known["chunk_ids"] if known["is_chunked"] else [])],
        job_id=str(job_id) if job_id else None,
        job_status=job_status,
        status=status,
    )


async def _retire(runtime: Runtime, superseded: Row) -> None:
    """Take the superseded revision out of the way of searches.

    Not marking it costs speed until the next `reindex`, not correctness: searches check with
    Postgres what is latest. So a failure here must not turn a stored document into an error.
    Marking one that was restored meanwhile would hide it: hence the lock and the second look.
    """
    try:
        async with runtime.database.transaction() as session:
            await session.run("lock_artifact", uid=superseded["artifact_uid"])
            latest = await session.one("find_latest_revision", uid=superseded["artifact_uid"])
            if latest is None or latest["revision_id"] == superseded["revision_id"]:
                return
            await runtime.vectors.set_latest(
                CollectionName.ARTIFACTS, [superseded["artifact_id"]], latest=False
            )
            if superseded["is_chunked"]:
                await runtime.vectors.set_latest(
                    CollectionName.CHUNKS, superseded["chunk_ids"], latest=False
                )
    except (ChromaUnavailable, PostgresUnavailable) as fault:
        log.warning("superseded entries of %s stay marked: %s", superseded["artifact_id"], fault)


def _artifact_entry(
    revision: Revision, pieces: list[Piece], vectors: list[Vector], now: datetime
) -> tuple[CollectionName, list[Entry]]:
    """The whole document: its own vector, or the middle of its chunks' vectors."""
    entry = Entry(
        id=revision.artifact_id,
        vector=mean_vector(vectors),
        document=revision.text if len(pieces) == 1 else preview(revision.text),
        metadata=_metadata(revision, now),
    )
    return CollectionName.ARTIFACTS, [entry]


def _chunk_entries(
    revision: Revision, pieces: list[Piece], vectors: list[Vector], now: datetime
) -> tuple[CollectionName, list[Entry]]:
    common = _metadata(revision, now)
    entries = [
        Entry(
            id=piece.id,
            vector=vector,
            document=piece.chunk.text,
            metadata={
                **common,
                "chunk_index": piece.chunk.index,
                "start_char": piece.chunk.start_char,
                "end_char": piece.chunk.end_char,
            },
        )
        for piece, vector in zip(pieces, vectors, strict=True)
    ]
    return CollectionName.CHUNKS, entries


def _metadata(revision: Revision, now: datetime) -> Metadata:
    return entry_metadata(
        uid=revision.uid,
        revision=revision.id,
        artifact_id=revision.artifact_id,
        artifact_type=revision.document.artifact_type.value,
        source_system=revision.document.source_system,
        time=revision.document.ts or now,
        latest=True,
    )


def entry_metadata(
    *,
    uid: str,
    revision: str,
    artifact_id: str,
    artifact_type: str,
    source_system: str,
    time: datetime,
    latest: bool,
) -> dict[str, Any]:
    """What searches filter by in Chroma. `time` is the document's own, else its arrival."""
    return {
        "artifact_uid": uid,
        "revision_id": revision,
        "artifact_id": artifact_id,
        "artifact_type": artifact_type,
        "source_system": source_system,
        "time": time.timestamp(),
        "latest": latest,
    }


def preview(text: str) -> str:
    """What stands in Chroma for the text of a document that is there in chunks."""
    return text[:_PREVIEW_CHARS]


def mean_vector(vectors: list[Vector]) -> Vector:
    if len(vectors) == 1:
        return vectors[0]
    return [sum(values) / len(vectors) for values in zip(*vectors, strict=True)]


def _overlap_tokens(pieces: list[Piece]) -> int:
    """Overlaps are counted twice in the sum over chunks; estimate them by their share of text."""
    total = 0.0
    for before, after in pairwise(pieces):
        shared = before.chunk.end_char - after.chunk.start_char
        length = before.chunk.end_char - before.chunk.start_char
        total += before.chunk.token_count * max(shared, 0) / length
    return round(total)
