"""The stages of one revision: read chunks, extract, canonicalise, store, wait for the index.

Every stage can be repeated: answers are cached, and storing replaces.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from memory_core.artifacts.stored_artifacts import ChunkRecord, chunks_of
from memory_core.extraction.canonical import canonicalise
from memory_core.extraction.engine import Engine
from memory_core.extraction.grounds import Context
from memory_core.extraction.ledger import Ledger, taken, write
from memory_core.extraction.model import DocumentContext, Proposal, ReadLabels
from memory_core.extraction.proof import part_by_confidence, prove
from memory_core.kernel.database import Database, Session
from memory_core.kernel.errors import ErrorCode, MemoryFault
from memory_core.processing import event_replacement
from memory_core.processing.extraction import ExtractedRevision, Extraction, Observer
from memory_core.processing.job_spans import of_chunk
from memory_core.processing.stages import (
    CANONICAL_EVENTS,
    CHUNK_EXTRACTIONS,
    CHUNK_TEXT,
    EVENT_INDEX,
    STORED_EVENTS,
)
from memory_core.queue.answers import Answers
from memory_core.queue.jobs import Job
from memory_core.runtime import Runtime
from memory_core.text.chunk import Chunk

log = logging.getLogger(__name__)


# Calls that one document may have open. The engine limits how many of them run at once.
_CHUNKS_AT_ONCE = 128


async def extract_revision(
    runtime: Runtime, engine: Engine, job: Job, observe: Observer
) -> Extraction:
    """Raises MemoryFault when an attempt fails, LeaseLost when the run no longer holds the job."""
    extraction, rows, contexts = await _open(runtime, engine, job)
    try:
        await _propose(runtime, engine, extraction, rows, contexts, observe)
        with _stage(extraction, STORED_EVENTS, observe):
            async with engine.at_postgres:
                await event_replacement.replace_events(runtime.database, engine, extraction)
    except BaseException:
        await _record_calls(runtime.database, extraction)
        raise
    with _stage(extraction, EVENT_INDEX, observe):
        extraction.indexed = await runtime.indexed(extraction.position)
    return extraction


@dataclass(frozen=True, slots=True)
class ExtractionVersion:
    extractor: str
    model: str
    extract_version: str


@dataclass(frozen=True, slots=True)
class ChunkLabels(ReadLabels):
    """Those of the revision in which a chunk first appeared."""

    chunk_index: int


async def rehearse(runtime: Runtime, engine: Engine, job: Job) -> Extraction:
    """The result that `extract_revision` would store. Only the answers (in the cache) and the calls
    (under the job's id) are stored."""
    extraction, rows, contexts = await _open(runtime, engine, job)
    try:
        await _propose(runtime, engine, extraction, rows, contexts, lambda *_: None)
    finally:
        await _record_calls(runtime.database, extraction)
    return extraction


async def _open(
    runtime: Runtime, engine: Engine, job: Job
) -> tuple[Extraction, list[ChunkRecord], dict[int, DocumentContext]]:
    """The revision, its chunks, and the context for each chunk."""
    async with engine.at_postgres, runtime.database.session() as session:
        extraction = Extraction(
            job=job,
            revision=await _load(session, job),
            ledger=Ledger(job.job_id, job.generation, run_id=job.run_id, attempt=job.attempts),
            extract_version=engine.extractor.version,
            model=engine.extractor.model,
        )
        rows = await chunks_of(session, job.artifact_uid, job.revision_id)
        return extraction, rows, await _contexts(session, job)


async def _propose(
    runtime: Runtime,
    engine: Engine,
    extraction: Extraction,
    rows: Sequence[ChunkRecord],
    contexts: dict[int, DocumentContext],
    observe: Observer,
) -> None:
    with _stage(extraction, CHUNK_TEXT, observe):
        _chunk(extraction, rows)
    with _stage(extraction, CHUNK_EXTRACTIONS, observe):
        proposals = None
        if extraction.job.answers is Answers.STORED:
            proposals = await _recall(runtime, engine, extraction, contexts)
        if proposals is None:
            proposals = await _extract(engine, extraction, contexts)
        await _prove(engine, extraction, proposals, contexts)
        _forget_text(extraction)
    with _stage(extraction, CANONICAL_EVENTS, observe):
        extraction.events = await canonicalise(
            extraction.chunk_events,
            extraction.entities,
            chunks=len(extraction.chunks),
            grouper=engine.grouper,
            answers_since=extraction.job.answers_since,
            ledger=extraction.ledger,
        )


async def _load(session: Session, job: Job) -> ExtractedRevision:
    revision = await session.row(
        ExtractedRevision,
        "revision_to_extract",
        uid=job.artifact_uid,
        revision=job.revision_id,
    )
    if revision is None:
        raise MemoryFault(
            f"The text of {job.artifact_uid} {job.revision_id} is gone. Ingest the same content "
            "from the same source again: that stores the text and starts this job over.",
            code=ErrorCode.ARTIFACT_NOT_FOUND,
        )
    return revision


def _chunk(extraction: Extraction, rows: Sequence[ChunkRecord]) -> None:
    """The chunks that ingest stored: later settings do not move old boundaries."""
    revision = extraction.revision
    for row in rows:
        chunk = Chunk(
            index=row.chunk_index,
            start_char=row.start_char,
            end_char=row.end_char,
            text=revision.content[row.start_char : row.end_char],
            token_count=row.token_count,
        )
        extraction.chunks.append((chunk, row.chunk_id if revision.is_chunked else None))


async def _recall(
    runtime: Runtime, engine: Engine, extraction: Extraction, contexts: dict[int, DocumentContext]
) -> list[Proposal] | None:
    """The proposals behind the stored events, if another prompt or model made them and the cache
    still has all of them."""
    job, extractor = extraction.job, engine.extractor
    async with engine.at_postgres, runtime.database.session() as session:
        made = await session.row(
            ExtractionVersion, "extraction_of", uid=job.artifact_uid, revision=job.revision_id
        )
    if made is None or made.extractor != extractor.name:
        return None
    version, model = made.extract_version, made.model
    if (version, model) == (extractor.version, extractor.model):
        return None
    proposals: list[Proposal] = []
    for chunk, _ in extraction.chunks:
        proposal = await extractor.recall(
            chunk, contexts[chunk.index], version=version, model=model
        )
        if proposal is None:
            log.warning(
                "%s: answers to %s are gone; asking the model again", job.partition_key, version
            )
            return None
        proposals.append(proposal)
    extraction.extract_version, extraction.model = version, model
    return proposals


async def _extract(
    engine: Engine, extraction: Extraction, contexts: dict[int, DocumentContext]
) -> list[Proposal]:
    slots = asyncio.Semaphore(_CHUNKS_AT_ONCE)
    faults: list[Exception] = []

    async def one(chunk: Chunk) -> Proposal:
        """Extract one chunk. After a first failure no new call starts; calls in flight finish, and
        their answers are cached."""
        async with slots:
            if not faults:
                try:
                    with of_chunk(chunk.index):
                        return await engine.extractor.extract(
                            chunk,
                            contexts[chunk.index],
                            answers_since=extraction.job.answers_since,
                            ledger=extraction.ledger,
                        )
                except Exception as error:
                    faults.append(error)
            return Proposal()

    proposals = await asyncio.gather(*(one(chunk) for chunk, _ in extraction.chunks))
    if faults:
        raise faults[0]
    return proposals


async def _prove(
    engine: Engine,
    extraction: Extraction,
    proposals: Sequence[Proposal],
    contexts: dict[int, DocumentContext],
) -> None:
    grounds = {context: Context(context) for context in set(contexts.values())}
    for (chunk, chunk_id), proposal in zip(extraction.chunks, proposals, strict=True):
        context = grounds[contexts[chunk.index]]
        sure, doubtful = part_by_confidence(chunk, proposal.events, engine.min_confidence)
        proved = prove(chunk, chunk_id, sure, proposal.entities, context)
        extraction.chunk_events += proved.events
        extraction.entities += proved.entities
        extraction.rejections += [
            *(replace(item, chunk_index=chunk.index) for item in proposal.rejections),
            *proved.rejected,
            *doubtful,
        ]
        extraction.cache_hits += proposal.from_cache
        if proposal.refusal:
            extraction.refusals.append(proposal.refusal)
        await asyncio.sleep(0)  # let heartbeats and other documents run


def _forget_text(extraction: Extraction) -> None:
    """Drop the text once everything is proved: the extraction is kept until its run ends."""
    extraction.revision = replace(extraction.revision, content="")
    extraction.chunks = [(replace(chunk, text=""), id_) for chunk, id_ in extraction.chunks]


async def _contexts(session: Session, job: Job) -> dict[int, DocumentContext]:
    rows = await session.rows(
        ChunkLabels, "first_contexts", uid=job.artifact_uid, revision=job.revision_id
    )
    return {row.chunk_index: row.context for row in rows}


async def _record_calls(database: Database, extraction: Extraction) -> None:
    """Record the calls, also of a failed attempt: they cost money as well."""
    try:
        with taken([extraction.ledger]) as calls:
            async with database.session() as session:
                await write(session, calls)
    except Exception as error:
        # The error of the attempt matters more, so this one is only logged.
        log.warning("calls of %s were not recorded: %s", extraction.job.job_id, error)


class _stage:
    """Times a stage and reports its end to the observer, unless the stage failed."""

    def __init__(self, extraction: Extraction, name: str, observe: Observer) -> None:
        self._extraction, self._name, self._observe = extraction, name, observe
        self._begun = 0.0

    def __enter__(self) -> None:
        self._begun = time.perf_counter()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._extraction.seconds[self._name] = round(time.perf_counter() - self._begun, 4)
        if kind is None:
            self._observe(self._name, self._extraction)
