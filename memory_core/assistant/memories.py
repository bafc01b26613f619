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
from memory_core.log.change import ChangeType, Position, of_memory
from memory_core.log.log_writer import append
from memory_core.runtime import Runtime
from memory_core.search.bm25 import Statistics
from memory_core.search.fusion import ranking
from memory_core.search.lexemes import lexemes_of
from memory_core.search.memories import best_memories, memories_by_id
from memory_core.search.passage import MemoryRecord, ShortText
from memory_core.search.query_text import Asked, understand, visible_text
from memory_core.search.scored_texts import best_first
from memory_core.search.similarity import LEAST_SIMILARITY, near_enough
from memory_core.search.word_statistics import statistics_of
from memory_core.text.scripts import query_in_pairs

log = logging.getLogger(__name__)

# Postgres drops hits of memories that it no longer has, so ask for a few more than wanted.
_SPARE_HITS = 10
# Limits on the words of a query, and on the memories that have those words.
_WORDS = 32
_MATCHES_BY_WORDS = 100


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
    """Content of the same words and type is the same memory, whatever its white space."""
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
    """Memories by words and meaning, best first, each with its similarity (the cosine; 1 means
    equal). A memory that Chroma does not have, or all of them when Chroma is away, get the share of
    the query's words that they contain."""
    query = visible_text(query)
    asked, by_words, statistics = await _by_words(runtime, query, min_confidence, memory_type)
    if asked.to_the_letter and not by_words and not asked.excludes:
        # Few people quote exactly, so the query is read as a sentence.
        asked, by_words, statistics = await _by_words(
            runtime, query, min_confidence, memory_type, literally=False
        )
    # What the query excludes must not return by its meaning.
    letters = asked.words if asked.to_the_letter else None
    most = limit + _SPARE_HITS if letters is None else _MATCHES_BY_WORDS
    try:
        cosines = await _by_meaning(
            runtime, query, by_words, most, _where(min_confidence, memory_type)
        )
    except MEANING_AWAY as fault:
        log.warning("memories are searched by words alone: %s", fault.message)
        cosines = {}
    async with runtime.database.session() as session:
        rows = await memories_by_id(session, [*by_words, *cosines], letters)
    by_id = {row.memory_id: row for row in rows if _passes(row, min_confidence, memory_type)}
    if runtime.settings.ranking == "rrf":
        nearest = sorted(cosines, key=lambda key: -cosines[key])
        order = ranking([list(by_words), nearest], constant=runtime.settings.rrf_constant)
    else:
        texts = [ShortText(memory.memory_id, "", memory.content) for memory in by_id.values()]
        order = best_first(texts, cosines, statistics, by_stem=asked.by_stem)
    similar = {**by_words, **cosines}
    near = near_enough(
        [id_ for id_ in order if id_ in by_id],
        lambda id_: id_ not in by_words and similar[id_] < LEAST_SIMILARITY,
    )
    return [(by_id[id_], similar[id_]) for id_ in near[:limit]]


async def _by_meaning(
    runtime: Runtime,
    query: str,
    matching_ids: Iterable[str],
    limit: int,
    where: dict[str, Any] | None,
) -> dict[str, float]:
    """Cosines of the nearest memories, and of those that words have already matched."""
    [vector] = await runtime.embedder.embed([query])
    nearest = await runtime.vectors.query(CollectionName.MEMORY, vector, limit=limit, where=where)
    nearest_ids = {hit.id for hit in nearest}
    others = [id_ for id_ in matching_ids if id_ not in nearest_ids]
    compared = await runtime.vectors.compare(CollectionName.MEMORY, vector, others)
    return {hit.id: 1.0 - hit.distance for hit in (*nearest, *compared)}


async def _by_words(
    runtime: Runtime,
    query: str,
    min_confidence: float,
    memory_type: MemoryType | None,
    *,
    literally: bool = True,
) -> tuple[Asked, dict[str, float], Statistics]:
    """Memories that contain words of the query, or match its operators, each with the share of the
    words that it contains."""
    async with runtime.database.session() as session:
        asked = await understand(
            session, query_in_pairs(query), uncounted=_WORDS, literally=literally
        )
        words = list(asked.every_word[:_WORDS])
        statistics = await statistics_of(session, lexemes_of(words))
        rows = await best_memories(
            session, asked, words=_WORDS, limit=_MATCHES_BY_WORDS,
            memory_type=memory_type, min_confidence=min_confidence,
        )  # fmt: skip
    return asked, {row.memory_id: row.found / len(words) for row in rows}, statistics


def _passes(memory: MemoryRecord, min_confidence: float, memory_type: MemoryType | None) -> bool:
    """Check against the row of Postgres, because the index may be a moment behind."""
    return memory.confidence >= min_confidence and memory_type in (None, memory.type)


async def list_newest(
    runtime: Runtime, *, memory_type: MemoryType | None, limit: int, offset: int
) -> tuple[list[MemoryRecord], int]:
    """One page of memories, and the number of all."""
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
