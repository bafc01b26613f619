"""The stages of one revision: chunk text, extract, canonicalise, index and store.

Everything here can be repeated: answers are cached, the store replaces, the index upserts.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from memory_core.database import Database, Row
from memory_core.errors import ErrorCode, MemoryFault
from memory_core.events import index, store
from memory_core.extraction.canonical import canonicalise
from memory_core.extraction.model import (
    CanonicalEvent,
    ChunkEvent,
    DocumentContext,
    Entity,
    Extractor,
    Grouper,
    ModelCall,
    Rejected,
)
from memory_core.extraction.proof import prove
from memory_core.jobs import Job
from memory_core.runtime import Runtime
from memory_core.text.chunk import Chunk

CHUNK_TEXT, CHUNK_EXTRACTIONS, CANONICAL_EVENTS, STORED_EVENTS, EVENT_INDEX = STAGES = (
    "chunk_text",
    "chunk_extractions",
    "canonical_events",
    "stored_events",
    "event_index",
)


@dataclass(frozen=True, slots=True)
class Engine:
    """Who extracts and who groups, shared by all documents of a run."""

    extractor: Extractor
    grouper: Grouper | None

    @property
    def merge_version(self) -> str:
        return self.grouper.version if self.grouper else "none"


@dataclass(slots=True)
class Extraction:
    """What has become of one revision so far."""

    job: Job
    revision: Row
    chunks: list[tuple[Chunk, str | None]] = field(default_factory=list)
    chunk_events: list[ChunkEvent] = field(default_factory=list)
    entities: list[Entity] = field(default_factory=list)
    rejections: list[Rejected] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    cache_hits: int = 0
    calls: list[ModelCall] = field(default_factory=list)
    recorded_calls: int = 0
    events: list[CanonicalEvent] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)


# Called as each stage of a revision ends.
Observer = Callable[[str, Extraction], None]


async def extract_revision(
    runtime: Runtime, engine: Engine, job: Job, observe: Observer, *, fresh: bool = False
) -> Extraction:
    """Raises MemoryFault when an attempt fails, LeaseLost when the job is no longer ours."""
    revision = await _load(runtime.database, job)
    extraction = Extraction(job=job, revision=revision)
    try:
        with _stage(extraction, CHUNK_TEXT, observe):
            await _chunk(runtime.database, extraction)
        with _stage(extraction, CHUNK_EXTRACTIONS, observe):
            await _extract(runtime.database, engine, extraction, fresh=fresh or job.bypass_cache)
        with _stage(extraction, CANONICAL_EVENTS, observe):
            extraction.events = await canonicalise(
                extraction.chunk_events,
                extraction.entities,
                chunks=len(extraction.chunks),
                grouper=engine.grouper,
                log=extraction.calls.append,
            )
    except BaseException:
        await _record_calls(runtime.database, extraction)
        raise
    # Vectors first: a job that is DONE is always indexed, and vectors without rows are ignored.
    with _stage(extraction, STORED_EVENTS, observe):
        await index.add(runtime, extraction)
        await store.replace_events(runtime.database, engine, extraction)
    with _stage(extraction, EVENT_INDEX, observe):
        await index.remove_stale(runtime, extraction)
    return extraction


async def _load(database: Database, job: Job) -> Row:
    async with database.session() as session:
        row = await session.one(
            "revision_to_extract", uid=job.artifact_uid, revision=job.revision_id
        )
    if row is None:
        raise MemoryFault(
            f"The text of {job.artifact_uid} {job.revision_id} is gone. Ingest it again.",
            code=ErrorCode.ARTIFACT_NOT_FOUND,
        )
    return row


async def _chunk(database: Database, extraction: Extraction) -> None:
    """The chunks as they were cut at ingest: later settings do not move old boundaries."""
    revision = extraction.revision
    async with database.session() as session:
        rows = await session.all(
            "list_chunks", uid=revision["artifact_uid"], revision=revision["revision_id"]
        )
    for row in rows:
        chunk = Chunk(
            index=row["chunk_index"],
            start_char=row["start_char"],
            end_char=row["end_char"],
            text=revision["content"][row["start_char"] : row["end_char"]],
            token_count=row["token_count"],
        )
        extraction.chunks.append((chunk, row["chunk_id"] if revision["is_chunked"] else None))


async def _extract(
    database: Database, engine: Engine, extraction: Extraction, *, fresh: bool
) -> None:
    contexts = await _contexts(database, extraction)

    async def one(chunk: Chunk) -> Any:
        return await engine.extractor.extract(
            chunk, contexts[chunk.index], fresh=fresh, log=extraction.calls.append
        )

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(chunk)) for chunk, _ in extraction.chunks]
    for (chunk, chunk_id), task in zip(extraction.chunks, tasks, strict=True):
        proposal = task.result()
        proved, rejected = prove(chunk, chunk_id, proposal.events)
        extraction.chunk_events += proved
        extraction.entities += proposal.entities
        extraction.rejections += [
            *(replace(item, chunk_index=chunk.index) for item in proposal.rejections),
            *rejected,
        ]
        extraction.cache_hits += proposal.from_cache
        if proposal.refusal:
            extraction.refusals.append(proposal.refusal)
        await asyncio.sleep(0)  # let heartbeats and other documents have their turn


async def _contexts(database: Database, extraction: Extraction) -> dict[int, DocumentContext]:
    revision = extraction.revision
    async with database.session() as session:
        rows = await session.all(
            "first_contexts", uid=revision["artifact_uid"], revision=revision["revision_id"]
        )
    return {
        row["chunk_index"]: DocumentContext(
            artifact_type=row["artifact_type"],
            title=row["title"],
            author=row["author"],
            participants=tuple(row["participants"]),
            date=row["source_ts"],
        )
        for row in rows
    }


async def _record_calls(database: Database, extraction: Extraction) -> None:
    """Calls of an attempt that failed cost money as well."""
    async with database.session() as session:
        await store.record_calls(session, extraction)


class _stage:
    """Times a stage and reports its end, unless it failed."""

    def __init__(self, extraction: Extraction, name: str, observe: Observer) -> None:
        self._extraction, self._name, self._observe = extraction, name, observe
        self._begun = 0.0

    def __enter__(self) -> None:
        self._begun = time.perf_counter()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._extraction.seconds[self._name] = round(time.perf_counter() - self._begun, 4)
        if kind is None:
            self._observe(self._name, self._extraction)
