"""Ingest: documents become revisions, their chunks become searchable, jobs become pending.

The order is embed, write Chroma, commit Postgres. Postgres decides what exists: whatever fails
before its commit leaves nothing that any tool would show. One document is a batch of one.
"""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from memory_core.artifacts.columns import chunk_columns, revision_columns
from memory_core.artifacts.document import Document
from memory_core.artifacts.entries import artifact_entry, chunk_entries
from memory_core.artifacts.revision import Draft, Piece, Revision, cut
from memory_core.database import Row, Session
from memory_core.embedding import Vector
from memory_core.errors import MemoryFault
from memory_core.events.index import move_events
from memory_core.runtime import Runtime
from memory_core.settings import Settings
from memory_core.vectors import CollectionName, VectorStore

log = logging.getLogger(__name__)

IngestStatus = Literal["created", "revised", "restored", "unchanged"]
# Called with how far it is, out of how much, and what is being done.
Progress = Callable[[float, float, str], Awaitable[None]]
_EMBED_BATCH = 64


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


async def _silent(_done: float, _total: float, _what: str) -> None:
    return None


async def ingest(
    runtime: Runtime, document: Document, progress: Progress = _silent
) -> IngestResult:
    [result] = await ingest_many(runtime, [document], progress)
    return result


async def ingest_many(
    runtime: Runtime, documents: Sequence[Document], progress: Progress = _silent
) -> list[IngestResult]:
    """Results in the order of the documents; one transaction for all that differ in their artifact.

    Documents of the same artifact become its revisions in the order given, one transaction after
    the other. A failure leaves nothing of its transaction; what earlier ones stored is kept.
    """
    drafts = [Draft(Revision.of(document)) for document in documents]
    async with runtime.database.session() as session:
        known = await _known(session, drafts)
    times = Counter(draft.uid for draft in drafts)
    results: dict[int, IngestResult] = {}
    fresh: dict[tuple[str, str], Draft] = {}
    for index, draft in enumerate(drafts):
        row = known.get(draft.key)
        # Of several revisions of one artifact an earlier one decides what "unchanged" means.
        if row is not None and row["is_latest"] and times[draft.uid] == 1:
            results[index] = _unchanged(row)
        elif row is None:
            fresh.setdefault(draft.key, draft)
    await _prepare(runtime, list(fresh.values()), progress)
    left = {index: draft for index, draft in enumerate(drafts) if index not in results}
    for wave in _waves(left):
        stored = await _store(runtime, list(wave.values()))
        results.update({index: stored[draft.uid] for index, draft in wave.items()})
    return [results[index] for index in range(len(drafts))]


def _waves(drafts: dict[int, Draft]) -> list[dict[int, Draft]]:
    """Each artifact at most once per wave; by position."""
    waves: list[dict[int, Draft]] = []
    seen: Counter[str] = Counter()
    for index, draft in drafts.items():
        if seen[draft.uid] == len(waves):
            waves.append({})
        waves[seen[draft.uid]][index] = draft
        seen[draft.uid] += 1
    return waves


async def _prepare(runtime: Runtime, drafts: list[Draft], progress: Progress) -> None:
    """Cut and embed, all passages of all drafts together."""
    for draft in drafts:
        draft.pieces = await cut(draft.revision, runtime.settings)
    pieces = [piece for draft in drafts for piece in draft.pieces]
    vectors = iter(await _embed(runtime, pieces, progress) if pieces else [])
    for draft in drafts:
        draft.vectors = [next(vectors) for _ in draft.pieces]


async def _embed(runtime: Runtime, pieces: list[Piece], progress: Progress) -> list[Vector]:
    vectors: list[Vector] = []
    batch_size = max(_EMBED_BATCH, runtime.settings.openai_batch_size * 4)
    for start in range(0, len(pieces), batch_size):
        batch = pieces[start : start + batch_size]
        await progress(start, len(pieces), f"embedding chunk {start + 1} of {len(pieces)}")
        vectors += await runtime.embedder.embed([piece.chunk.text for piece in batch])
    await progress(len(pieces), len(pieces), "storing")
    return vectors


async def _known(session: Session, drafts: list[Draft]) -> dict[tuple[str, str], Row]:
    rows = await session.all(
        "find_revisions",
        uids=[draft.revision.uid for draft in drafts],
        revisions=[draft.revision.id for draft in drafts],
    )
    return {(row["artifact_uid"], row["revision_id"]): row for row in rows}


async def _store(runtime: Runtime, drafts: list[Draft]) -> dict[str, IngestResult]:
    """The one transaction, of different artifacts. Everybody who writes one of them does so one
    after the other."""
    uids = [draft.uid for draft in drafts]
    async with runtime.database.long_transaction() as session:
        await session.run("lock_artifacts", uids=uids)
        known = await _known(session, drafts)
        rows = await session.all("find_latest_revisions", uids=uids)
        latest = {row["artifact_uid"]: row for row in rows}
        results = {
            row["artifact_uid"]: _unchanged(row) for row in known.values() if row["is_latest"]
        }
        restored = [row for row in known.values() if not row["is_latest"]]
        new = [draft for draft in drafts if draft.key not in known]
        # Deleted since we looked: start over with the full work.
        await _prepare(runtime, [draft for draft in new if not draft.pieces], _silent)
        indexing = asyncio.create_task(_index(runtime.vectors, new))
        try:
            results |= await _restore(session, runtime.vectors, restored)
            results |= await _insert(session, new, runtime.settings, superseded=set(latest))
        finally:
            await indexing  # the commit comes after: without Chroma there is none
        retired = [row for uid, row in latest.items() if results[uid].status != "unchanged"]
    if retired:
        await _retire(runtime, retired)
    return results


async def _index(store: VectorStore, drafts: list[Draft]) -> None:
    """Write to Chroma. Takes most of the time, so Postgres works beside it."""
    now = datetime.now(UTC)
    writes = []
    if drafts:
        entries = [artifact_entry(draft, now) for draft in drafts]
        writes.append(store.upsert(CollectionName.ARTIFACTS, entries))
    chunks = [entry for draft in drafts if draft.is_chunked for entry in chunk_entries(draft, now)]
    if chunks:
        writes.append(store.upsert(CollectionName.CHUNKS, chunks))
    for outcome in await asyncio.gather(*writes, return_exceptions=True):
        if outcome is not None:
            raise outcome


async def _insert(
    session: Session, drafts: list[Draft], settings: Settings, *, superseded: set[str]
) -> dict[str, IngestResult]:
    """`superseded`: the artifacts that have a revision already."""
    if not drafts:
        return {}
    old = [draft.uid for draft in drafts if draft.uid in superseded]
    if old:
        await session.run("supersede_revisions", uids=old)
    await session.run("insert_revisions", **revision_columns(drafts))
    revisions = [draft.revision for draft in drafts]
    await session.run(
        "insert_revision_texts",
        uids=[revision.uid for revision in revisions],
        revisions=[revision.id for revision in revisions],
        contents=[revision.text for revision in revisions],
        nul_positions=[json.dumps(revision.nul_positions) for revision in revisions],
    )
    await session.run("insert_chunks", **chunk_columns(drafts))
    jobs = await session.all(
        "insert_jobs",
        uids=[revision.uid for revision in revisions],
        revisions=[revision.id for revision in revisions],
        max_attempts=settings.event_max_attempts,
        requested_by="ingest",
    )
    job_ids = {row["artifact_uid"]: str(row["job_id"]) for row in jobs}
    return {
        draft.uid: _inserted(draft, job_ids[draft.uid], revised=draft.uid in superseded)
        for draft in drafts
    }


def _inserted(draft: Draft, job_id: str, *, revised: bool) -> IngestResult:
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


async def _restore(
    session: Session, vectors: VectorStore, known: list[Row]
) -> dict[str, IngestResult]:
    """The content of older revisions came in again: those are the latest again."""
    if not known:
        return {}
    await _move(session, vectors, known, latest=True)
    uids = [row["artifact_uid"] for row in known]
    await session.run("supersede_revisions", uids=uids)
    await session.run(
        "restore_revisions", uids=uids, revisions=[row["revision_id"] for row in known]
    )
    return {
        row["artifact_uid"]: _result(row, "restored", row["job_id"], row["job_status"] or "N/A")
        for row in known
    }


async def _move(session: Session, vectors: VectorStore, rows: list[Row], *, latest: bool) -> None:
    artifacts = [row["artifact_id"] for row in rows]
    chunks = [id_ for row in rows if row["is_chunked"] for id_ in row["chunk_ids"]]
    await vectors.set_latest(CollectionName.ARTIFACTS, artifacts, latest=latest)
    if chunks:
        await vectors.set_latest(CollectionName.CHUNKS, chunks, latest=latest)
    await move_events(session, vectors, rows, latest=latest)


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


async def _retire(runtime: Runtime, superseded: list[Row]) -> None:
    """Take superseded revisions out of the way of searches.

    Leaving them there costs searches a second look, not correctness: they check with Postgres what
    is latest. So a failure here must not turn a stored document into an error. Moving one that was
    restored meanwhile would hide it: hence the lock and the second look.
    """
    uids = [row["artifact_uid"] for row in superseded]
    try:
        async with runtime.database.long_transaction() as session:
            await session.run("lock_artifacts", uids=uids)
            rows = await session.all("find_latest_revisions", uids=uids)
            latest = {row["artifact_uid"]: row["revision_id"] for row in rows}
            still = [
                row
                for row in superseded
                if latest.get(row["artifact_uid"]) not in (None, row["revision_id"])
            ]
            if still:
                await _move(session, runtime.vectors, still, latest=False)
    except MemoryFault as fault:
        names = [row["artifact_id"] for row in superseded]
        log.warning("superseded entries of %s stay among the latest: %s", names, fault)
