"""Short memories: what an assistant keeps about its user."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from memory_core.artifacts.document import refuse_unstorable
from memory_core.artifacts.locks import lock
from memory_core.index.generation import CollectionName
from memory_core.kernel import ids
from memory_core.kernel.errors import MEANING_AWAY, InvalidInput, NotFound
from memory_core.log.appending import append
from memory_core.log.change import ChangeType, Position, of_memory
from memory_core.runtime import Runtime
from memory_core.search.bm25 import Statistics
from memory_core.search.fusion import ranking
from memory_core.search.lexemes import lexemes_of
from memory_core.search.memories import best_memories, memories_by_id
from memory_core.search.passage import MemoryRecord, ShortText
from memory_core.search.query_text import understand
from memory_core.search.scored_texts import best_first
from memory_core.search.word_statistics import statistics_of
from memory_core.text.scripts import in_pairs

log = logging.getLogger(__name__)

# Entries that Postgres does not know any more fall away, so ask for some more than wanted.
_SPARE_HITS = 10
# The number of words looked for, and of memories that have them.
_WORDS = 32
_FOUND_BY_WORDS = 100


class MemoryType(StrEnum):
    PREFERENCE = "preference"
    FACT = "fact"
    PROJECT = "project"
    DECISION = "decision"


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
        await lock(session, memory_id)
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
) -> list[tuple[MemoryRecord, float]]:
    """Memories by words and meaning, best first; each with its similarity (the cosine; 1 is the
    same). Where Chroma has none, or is away, that is the share of the query's words it has."""
    by_words, statistics = await _by_words(runtime, query, min_confidence, memory_type)
    try:
        cosines = await _by_meaning(
            runtime, query, by_words, limit + _SPARE_HITS, _where(min_confidence, memory_type)
        )
    except MEANING_AWAY as fault:
        log.warning("memories are searched by words alone: %s", fault.message)
        cosines = {}
    async with runtime.database.session() as session:
        rows = await memories_by_id(session, [*by_words, *cosines])
    by_id = {row.memory_id: row for row in rows if _passes(row, min_confidence, memory_type)}
    if runtime.settings.ranking == "rrf":
        nearest = sorted(cosines, key=lambda key: -cosines[key])
        order = ranking([list(by_words), nearest], constant=runtime.settings.rrf_constant)
    else:
        texts = [ShortText(memory.memory_id, "", memory.content) for memory in by_id.values()]
        order = best_first(texts, cosines, statistics)
    similar = {**by_words, **cosines}
    return [(by_id[id_], similar[id_]) for id_ in order if id_ in by_id][:limit]


async def _by_meaning(
    runtime: Runtime,
    query: str,
    found: Iterable[str],
    limit: int,
    where: dict[str, Any] | None,
) -> dict[str, float]:
    """Cosines of the nearest, and of those that were found already."""
    [vector] = await runtime.embedder.embed([query])
    nearest = await runtime.vectors.query(CollectionName.MEMORY, vector, limit=limit, where=where)
    known = {hit.id for hit in nearest}
    others = [id_ for id_ in found if id_ not in known]
    compared = await runtime.vectors.compare(CollectionName.MEMORY, vector, others)
    return {hit.id: 1.0 - hit.distance for hit in (*nearest, *compared)}


async def _by_words(
    runtime: Runtime, query: str, min_confidence: float, memory_type: MemoryType | None
) -> tuple[dict[str, float], Statistics]:
    """Those with words of the query, with the share of its words that they have."""
    async with runtime.database.session() as session:
        asked = await understand(session, in_pairs(query), uncounted=_WORDS, literally=False)
        words = list(asked.every_word[:_WORDS])
        statistics = await statistics_of(session, lexemes_of(words))
        rows = await best_memories(
            session, asked, words=_WORDS, limit=_FOUND_BY_WORDS,
            memory_type=memory_type, min_confidence=min_confidence,
        )  # fmt: skip
    return {row.memory_id: row.found / len(words) for row in rows}, statistics


def _passes(memory: MemoryRecord, min_confidence: float, memory_type: MemoryType | None) -> bool:
    """Postgres has the last word: the index may be a moment behind."""
    return memory.confidence >= min_confidence and memory_type in (None, memory.type)


async def list_newest(
    runtime: Runtime, *, memory_type: MemoryType | None, limit: int, offset: int
) -> tuple[list[MemoryRecord], int]:
    """A page, and how many there are in all."""
    async with runtime.database.session() as session:
        wanted = memory_type.value if memory_type else None
        page = await session.rows(
            MemoryRecord, "list_memories", type=wanted, limit=limit, offset=offset
        )
        total = await session.value(int, "count_memories", type=wanted)
    return page, total


async def delete(runtime: Runtime, memory_id: str) -> Position:
    async with runtime.database.transaction() as session:
        await lock(session, memory_id)
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
