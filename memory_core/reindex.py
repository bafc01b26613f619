"""Rebuild Chroma from Postgres: after a change of embedding model, or when an index was lost.

The new collection is filled beside the one in use and takes its place when it is complete: whatever
fails before that leaves the old one as it was. What was written meanwhile is added at the end, when
nobody is left who may have written to the old one.
"""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import groupby
from typing import Any
from uuid import UUID

import psycopg

from memory_core import agreement, indexed
from memory_core.artifacts.entries import PREVIEW_CHARS, mean_vector
from memory_core.database import Row
from memory_core.embedding import Vector
from memory_core.events.index import event_metadata, indexed_text
from memory_core.runtime import Runtime
from memory_core.vectors import CollectionName, Entry

log = logging.getLogger(__name__)

_PAGE = 500
# Writing takes seconds; of Chroma, a writer has a minute's patience for each call.
_PATIENCE_MS = 120_000
# Called with how many entries were done since the last call.
Advance = Callable[[int], None]


async def count_text(runtime: Runtime) -> int:
    return await _count(runtime, "count_chunks", "chunks")


async def count_memories(runtime: Runtime) -> int:
    return await _count(runtime, "count_memories", "memories", type=None)


async def rebuild_text(runtime: Runtime, advance: Advance) -> None:
    """The collections of documents and of their chunks."""
    async with _anew(runtime, CollectionName.CHUNKS, CollectionName.ARTIFACTS):
        await _fill_text(runtime, advance)


async def _fill_text(runtime: Runtime, advance: Advance) -> None:
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
    async with _anew(runtime, CollectionName.MEMORY):
        await _fill_memories(runtime, advance)


async def _fill_memories(runtime: Runtime, advance: Advance) -> None:
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
            beside=True,
        )
        after = rows[-1]["memory_id"]
        advance(len(rows))


async def count_events(runtime: Runtime) -> int:
    return await _count(runtime, "count_all_events", "events")


async def rebuild_events(runtime: Runtime, advance: Advance) -> None:
    """The collection of narratives."""
    async with _anew(runtime, CollectionName.EVENTS):
        await _fill_events(runtime, advance)


async def _fill_events(runtime: Runtime, advance: Advance) -> None:
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
            beside=True,
        )
        after = rows[-1]["event_id"]
        advance(len(rows))


async def _pages(runtime: Runtime) -> AsyncIterator[list[Row]]:
    after: dict[str, Any] = {"after_uid": "", "after_revision": "", "after_index": -1}
    while True:
        async with runtime.database.session() as session:
            rows = await session.all("chunks_to_index", limit=_PAGE, preview=PREVIEW_CHARS, **after)
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
        first = members[0][0]
        documents.append(
            Entry(
                id=first["artifact_id"],
                vector=mean_vector([vector for _, vector in members]),
                document=first["opening"] if first["is_chunked"] else first["text"],
                metadata=indexed.text_metadata(first),
            )
        )
        if first["is_chunked"]:
            chunks += [
                Entry(row["chunk_id"], vector, row["text"], indexed.chunk_metadata(row))
                for row, vector in members
            ]
    await runtime.vectors.upsert(CollectionName.ARTIFACTS, documents, beside=True)
    await runtime.vectors.upsert(CollectionName.CHUNKS, chunks, beside=True)


@asynccontextmanager
async def _anew(runtime: Runtime, *names: CollectionName) -> AsyncIterator[None]:
    for name in names:
        await runtime.vectors.start_beside(name)
    yield
    for name in names:
        await runtime.vectors.take_over(name)
    await _outwait_writers(runtime)
    for shelf in indexed.SHELVES:
        if shelf.collection in names:
            await agreement.mend(runtime, shelf)


async def _outwait_writers(runtime: Runtime) -> None:
    """Whoever may have written to the old collections has committed then, so that a mend sees it;
    whoever comes later finds them gone and looks for the new ones. Only then: who knows a
    collection by its id writes to it until it is dropped, whatever its name. A run writes before
    its transaction, and tells by the generation that it has to write again.

    Nobody waits in a circle. Writers share this lock before they take any other, and need neither a
    second connection nor anything of ours until they commit; we hold nothing else while we wait,
    and ask nothing of Chroma while they wait for us. Who never ends, say a process that was
    stopped, is not waited for for ever, since all other writers wait behind us.
    """
    async with runtime.database.session() as session:
        await session.run("begin_index_generation")
    async with runtime.database.transaction() as session:
        await session.run("be_patient", milliseconds=str(_PATIENCE_MS))
        try:
            await session.run("outwait_writers")
        except psycopg.errors.LockNotAvailable:
            log.warning(
                "somebody has been writing all the time, and may have written to the index that "
                "is gone now: run `mcp-memory doctor --repair` when that is done"
            )


async def _count(runtime: Runtime, query: str, column: str, **parameters: Any) -> int:
    async with runtime.database.session() as session:
        row = await session.one(query, **parameters)
    assert row is not None
    return int(row[column])
