"""Short memories: what an assistant keeps about its user."""

import logging
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from memory_core.artifacts.document import refuse_unstorable
from memory_core.index.generation import CollectionName
from memory_core.kernel import ids
from memory_core.kernel.errors import MEANING_AWAY, InvalidInput, NotFound
from memory_core.log.appending import append
from memory_core.log.change import ChangeType, Position, of_memory
from memory_core.runtime import Runtime
from memory_core.search.query_text import understand

log = logging.getLogger(__name__)

# Entries that Postgres does not know any more fall away, so ask for some more than wanted.
_SPARE_HITS = 10
# Without Chroma: the number of words looked for, and of memories ranked by them.
_WORDS = 32
_FOUND_BY_WORDS = 200


class MemoryType(StrEnum):
    PREFERENCE = "preference"
    FACT = "fact"
    PROJECT = "project"
    DECISION = "decision"


@dataclass(frozen=True, slots=True)
class Memory:
    memory_id: str
    type: str
    content: str
    confidence: float
    conversation_id: str | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class WordMatches:
    """A memory, and how many words of a query it has."""

    memory_id: str
    found: int


@dataclass(frozen=True, slots=True)
class StoredMemory:
    memory_id: str
    status: Literal["created", "updated"]
    position: Position


async def store(
    runtime: Runtime,
    *,
    content: str,
    memory_type: MemoryType,
    confidence: float,
    conversation_id: str | None,
) -> StoredMemory:
    """The same words with the same type are the same memory, however they are spaced."""
    refuse_unstorable("content", content)
    refuse_unstorable("conversation_id", conversation_id)
    if content.isspace():
        raise InvalidInput(
            "content is only white space: there is nothing to remember.",
            details={"parameter": "content"},
        )
    digest = ids.sha256(" ".join(content.split()))
    memory_id = ids.memory_id(memory_type.value, digest)
    async with runtime.database.transaction() as session:
        await session.run("lock_artifact", uid=memory_id)
        is_new = await session.value(
            bool,
            "store_memory",
            id=memory_id,
            type=memory_type.value,
            content=content,
            content_hash=digest,
            confidence=confidence,
            conversation_id=conversation_id,
        )
        [position] = await append(session, [of_memory(ChangeType.MEMORY_STORED, memory_id)])
    return StoredMemory(memory_id, "created" if is_new else "updated", position)


async def search(
    runtime: Runtime,
    query: str,
    *,
    limit: int,
    min_confidence: float,
    memory_type: MemoryType | None,
) -> list[tuple[Memory, float]]:
    """Memories and their similarity (1 is the same), best first. While Chroma or the embedder is
    away: those with words of the query, whose similarity is the share of its words they have."""
    try:
        similar = await _by_meaning(runtime, query, limit, min_confidence, memory_type)
    except MEANING_AWAY as fault:
        log.warning("memories are searched by words alone: %s", fault.message)
        similar = await _by_words(runtime, query)
    async with runtime.database.session() as session:
        rows = await session.rows(Memory, "memories_by_id", ids=list(similar), letters=None)
    by_id = {row.memory_id: row for row in rows if _passes(row, min_confidence, memory_type)}
    return [(by_id[id_], likeness) for id_, likeness in similar.items() if id_ in by_id][:limit]


async def _by_meaning(
    runtime: Runtime,
    query: str,
    limit: int,
    min_confidence: float,
    memory_type: MemoryType | None,
) -> dict[str, float]:
    [vector] = await runtime.embedder.embed([query])
    hits = await runtime.vectors.query(
        CollectionName.MEMORY,
        vector,
        limit=limit + _SPARE_HITS,
        where=_where(min_confidence, memory_type),
    )
    return {hit.id: 1.0 - hit.distance for hit in hits}


async def _by_words(runtime: Runtime, query: str) -> dict[str, float]:
    async with runtime.database.session() as session:
        asked = await understand(session, query, counting="count_words_of_chunks", literally=False)
        words = list(asked.every_word[:_WORDS])
        if not words:
            return {}
        rows = await session.rows(
            WordMatches,
            "best_memories",
            words=" | ".join(f"({word})" for word in words),
            each_word=words,
            limit=_FOUND_BY_WORDS,
        )
    return {row.memory_id: row.found / len(words) for row in rows}


def _passes(memory: Memory, min_confidence: float, memory_type: MemoryType | None) -> bool:
    """Postgres has the last word: the index may be a moment behind."""
    return memory.confidence >= min_confidence and memory_type in (None, memory.type)


async def list_newest(
    runtime: Runtime, *, memory_type: MemoryType | None, limit: int, offset: int
) -> tuple[list[Memory], int]:
    """A page, and how many there are in all."""
    async with runtime.database.session() as session:
        wanted = memory_type.value if memory_type else None
        page = await session.rows(Memory, "list_memories", type=wanted, limit=limit, offset=offset)
        total = await session.value(int, "count_memories", type=wanted)
    return page, total


async def delete(runtime: Runtime, memory_id: str) -> Position:
    async with runtime.database.transaction() as session:
        await session.run("lock_artifact", uid=memory_id)
        if not await session.run("delete_memory", id=memory_id):
            raise NotFound(
                f"There is no memory {memory_id!r}: nothing was deleted. memory_list and "
                "memory_search give the ids.",
                details={"memory_id": memory_id},
            )
        [position] = await append(session, [of_memory(ChangeType.MEMORY_DELETED, memory_id)])
    return position


def _where(min_confidence: float, memory_type: MemoryType | None) -> dict[str, Any] | None:
    conditions: list[dict[str, Any]] = []
    if min_confidence > 0:
        conditions.append({"confidence": {"$gte": min_confidence}})
    if memory_type is not None:
        conditions.append({"type": memory_type.value})
    if len(conditions) > 1:
        return {"$and": conditions}
    return conditions[0] if conditions else None
