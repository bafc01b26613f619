"""Importing the data of version 2. A second run adds only what is missing."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from memory_core.artifacts.document import Document
from memory_core.artifacts.ingest import ingest_many
from memory_core.assistant import conversations, memories
from memory_core.importing.item import Unusable
from memory_core.importing.v2 import conversion
from memory_core.importing.v2.v2_chroma import Record, Serve, Source, opened
from memory_core.kernel import ids
from memory_core.kernel.errors import Conflict, InvalidInput
from memory_core.runtime import Runtime

_BATCH = 64
_BATCH_CHARS = 4_000_000
# Called with the number of records that were read since the last call.
Advance = Callable[[int], None]


@dataclass(slots=True)
class ImportCounts:
    read: int = 0
    created: int = 0
    unchanged: int = 0


@dataclass(slots=True)
class V2ImportReport:
    dry_run: bool
    memories: ImportCounts = field(default_factory=ImportCounts)
    turns: ImportCounts = field(default_factory=ImportCounts)
    documents: ImportCounts = field(default_factory=ImportCounts)
    refused: list[tuple[str, str]] = field(default_factory=list)  # ids, and why
    not_kept: set[str] = field(default_factory=set)  # names of metadata that have no column here


async def import_v2(
    runtime: Runtime,
    place: str,
    serve: Serve,
    *,
    dry_run: bool,
    advance: Advance = lambda _: None,
) -> V2ImportReport:
    """From a directory of Chroma, or the address of its server; neither is written to."""
    async with opened(place, Path(runtime.settings.data_dir), serve) as source:
        importing = _Import(runtime, source, V2ImportReport(dry_run), advance)
        await importing.memories()
        await importing.turns()
        await importing.documents()
    return importing.report


class _Import:
    def __init__(
        self, runtime: Runtime, source: Source, report: V2ImportReport, advance: Advance
    ) -> None:
        self._runtime, self._source = runtime, source
        self.report, self._advance = report, advance
        self._batch: list[tuple[str, Document]] = []

    async def memories(self) -> None:
        counts = self.report.memories
        async for record in self._source.records("memory"):
            self._note(counts, record)
            try:
                kept = conversion.memory(record)
                if await self._knows(kept):
                    counts.unchanged += 1
                elif not self.report.dry_run:
                    await self._store_memory(kept)
                    counts.created += 1
            except (Unusable, InvalidInput) as problem:
                self._refuse(record.id, problem)

    async def _knows(self, memory: conversion.V2Memory) -> bool:
        async with self._runtime.database.session() as session:
            return await session.value(bool, "memory_exists", id=_memory_id(memory))

    async def _store_memory(self, memory: conversion.V2Memory) -> None:
        await memories.store(
            self._runtime,
            content=memory.content,
            memory_type=memory.type,
            confidence=memory.confidence,
            conversation_id=memory.conversation_id,
        )
        if memory.created_at is not None:
            async with self._runtime.database.session() as session:
                await session.run("date_memory", id=_memory_id(memory), at=memory.created_at)

    async def turns(self) -> None:
        counts = self.report.turns
        async for record in self._source.records("history"):
            self._note(counts, record)
            try:
                turn = conversion.turn(record)
                if not self.report.dry_run:
                    await self._store_turn(counts, turn)
            except (Unusable, InvalidInput, Conflict) as problem:
                self._refuse(record.id, problem)

    async def _store_turn(self, counts: ImportCounts, turn: conversion.V2Turn) -> None:
        status = await conversations.append(
            self._runtime,
            conversation_id=turn.conversation_id,
            turn_index=turn.turn_index,
            role=turn.role,
            content=turn.content,
        )
        if status == "unchanged":
            counts.unchanged += 1
            return
        counts.created += 1
        if turn.created_at is not None:
            async with self._runtime.database.session() as session:
                await session.run(
                    "date_turn",
                    conversation_id=turn.conversation_id,
                    turn_index=turn.turn_index,
                    at=turn.created_at,
                )

    async def documents(self) -> None:
        """Import documents with their chunks, then chunks whose document has no entry of its
        own."""
        chunks = await self._chunk_ids()
        async for record in self._source.records("artifacts"):
            await self._document(record, await self._chunks(chunks.pop(record.id, [])))
        for id_, ids_ in chunks.items():
            pieces = await self._chunks(ids_)
            await self._document(Record(id_, "", pieces[0].metadata), pieces)
        await self._flush()

    async def _chunk_ids(self) -> dict[str, list[str]]:
        """Chunk ids by document, without texts, which may not fit into memory."""
        ids: dict[str, list[str]] = {}
        async for record in self._source.records("artifact_chunks", texts=False):
            owner = str(record.metadata.get("artifact_id") or record.id.partition("::")[0])
            ids.setdefault(owner, []).append(record.id)
            self._advance(1)
        return ids

    async def _chunks(self, ids_: list[str]) -> list[Record]:
        return await self._source.fetch("artifact_chunks", ids_) if ids_ else []

    async def _document(self, record: Record, chunks: Iterable[Record]) -> None:
        self._note(self.report.documents, record)
        try:
            document = conversion.document(record, chunks)
        except Unusable as problem:
            self._refuse(record.id, problem)
            return
        self._batch.append((record.id, document))
        size = sum(len(kept.content) for _, kept in self._batch)
        if len(self._batch) >= _BATCH or size >= _BATCH_CHARS:
            await self._flush()

    async def _flush(self) -> None:
        batch, self._batch = self._batch, []
        if not batch or self.report.dry_run:
            return
        results = await ingest_many(
            self._runtime, [document for _, document in batch], relabel=False
        )
        counts = self.report.documents
        counts.unchanged += sum(result.status == "unchanged" for result in results)
        counts.created += sum(result.status != "unchanged" for result in results)

    def _note(self, counts: ImportCounts, record: Record) -> None:
        counts.read += 1
        self.report.not_kept |= conversion.unknown_labels(record)
        self._advance(1)

    def _refuse(self, id_: str, problem: Exception) -> None:
        self.report.refused.append((id_, str(problem)))


def _memory_id(memory: conversion.V2Memory) -> str:
    return ids.memory_id(memory.type.value, ids.sha256(" ".join(memory.content.split())))
