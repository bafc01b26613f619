"""Rebuild Chroma from Postgres: after a change of embedding model, or when an index was lost."""

from collections.abc import AsyncIterator, Callable
from itertools import groupby
from typing import Any
from uuid import UUID

from memory_core.artifacts.entries import entry_metadata, mean_vector, preview
from memory_core.database import Row
from memory_core.embedding import Vector
from memory_core.events.index import event_metadata, indexed_text
from memory_core.runtime import Runtime
from memory_core.vectors import CollectionName, Entry

_PAGE = 500
# Called with how many entries were done since the last call.
Advance = Callable[[int], None]


async def count_text(runtime: Runtime) -> int:
    return await _count(runtime, "count_chunks", "chunks")


async def count_memories(runtime: Runtime) -> int:
    return await _count(runtime, "count_memories", "memories", type=None)


async def rebuild_text(runtime: Runtime, advance: Advance) -> None:
    """The collections of documents and of their chunks."""
    await runtime.vectors.recreate(CollectionName.ARTIFACTS)
    await runtime.vectors.recreate(CollectionName.CHUNKS)
    unfinished: list[tuple[Row, Vector]] = []
    async for page in _pages(runtime):
        vectors = await runtime.embedder.embed([row["text"] for row in page])
        unfinished += zip(page, vectors, strict=True)
        # The last revision of a page may go on in the next.
        last = (page[-1]["artifact_uid"], page[-1]["revision_id"])
        finished = [pair for pair in unfinished if _key(pair) != last]
        unfinished = [pair for pair in unfinished if _key(pair) == last]
        await _write(runtime, finished)
        advance(len(page))
    await _write(runtime, unfinished)


async def rebuild_memories(runtime: Runtime, advance: Advance) -> None:
    await runtime.vectors.recreate(CollectionName.MEMORY)
    after = ""
    while True:
        async with runtime.database.session() as session:
            rows = await session.all("memories_to_index", after=after, limit=_PAGE)
        if not rows:
            return
        vectors = await runtime.embedder.embed([row["content"] for row in rows])
        await runtime.vectors.upsert(
            CollectionName.MEMORY,
            [
                Entry(
                    id=row["memory_id"],
                    vector=vector,
                    document=row["content"],
                    metadata={"type": row["type"], "confidence": row["confidence"]},
                )
                for row, vector in zip(rows, vectors, strict=True)
            ],
        )
        after = rows[-1]["memory_id"]
        advance(len(rows))


async def count_events(runtime: Runtime) -> int:
    return await _count(runtime, "count_all_events", "events")


async def rebuild_events(runtime: Runtime, advance: Advance) -> None:
    """The collection of narratives."""
    await runtime.vectors.recreate(CollectionName.EVENTS)
    after = UUID(int=0)
    while True:
        async with runtime.database.session() as session:
            rows = await session.all("events_to_index", after=after, limit=_PAGE)
        if not rows:
            return
        texts = [indexed_text(row["narrative"], row["document_title"]) for row in rows]
        vectors = await runtime.embedder.embed(texts)
        await runtime.vectors.upsert(
            CollectionName.EVENTS,
            [
                Entry(
                    id=str(row["event_id"]),
                    vector=vector,
                    document=text,
                    metadata=event_metadata(
                        row["artifact_uid"],
                        row["revision_id"],
                        row["category"],
                        latest=row["is_latest"],
                    ),
                )
                for row, text, vector in zip(rows, texts, vectors, strict=True)
            ],
        )
        after = rows[-1]["event_id"]
        advance(len(rows))


async def _pages(runtime: Runtime) -> AsyncIterator[list[Row]]:
    after: dict[str, Any] = {"after_uid": "", "after_revision": "", "after_index": -1}
    while True:
        async with runtime.database.session() as session:
            rows = await session.all("chunks_to_index", limit=_PAGE, **after)
        if not rows:
            return
        yield rows
        after = {
            "after_uid": rows[-1]["artifact_uid"],
            "after_revision": rows[-1]["revision_id"],
            "after_index": rows[-1]["chunk_index"],
        }


def _key(pair: tuple[Row, Vector]) -> tuple[str, str]:
    return pair[0]["artifact_uid"], pair[0]["revision_id"]


async def _write(runtime: Runtime, pairs: list[tuple[Row, Vector]]) -> None:
    documents, chunks = [], []
    for _, group in groupby(pairs, key=_key):
        members = list(group)
        rows = [row for row, _ in members]
        vectors = [vector for _, vector in members]
        common = _metadata(rows[0])
        documents.append(
            Entry(
                id=rows[0]["artifact_id"],
                vector=mean_vector(vectors),
                document=preview(rows[0]["text"]) if rows[0]["is_chunked"] else rows[0]["text"],
                metadata=common,
            )
        )
        if rows[0]["is_chunked"]:
            chunks += [
                Entry(
                    id=row["chunk_id"],
                    vector=vector,
                    document=row["text"],
                    metadata={
                        **common,
                        "chunk_index": row["chunk_index"],
                        "start_char": row["start_char"],
                        "end_char": row["end_char"],
                    },
                )
                for row, vector in members
            ]
    await runtime.vectors.upsert(CollectionName.ARTIFACTS, documents)
    await runtime.vectors.upsert(CollectionName.CHUNKS, chunks)


def _metadata(row: Row) -> dict[str, Any]:
    return entry_metadata(
        uid=row["artifact_uid"],
        revision=row["revision_id"],
        artifact_id=row["artifact_id"],
        artifact_type=row["artifact_type"],
        source_system=row["source_system"],
        time=row["time"],
        latest=row["is_latest"],
    )


async def _count(runtime: Runtime, query: str, column: str, **parameters: Any) -> int:
    async with runtime.database.session() as session:
        row = await session.one(query, **parameters)
    assert row is not None
    return int(row[column])
