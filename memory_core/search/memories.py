"""Memories by words, and by ids."""

from collections.abc import Sequence

from memory_core.kernel.database import Session
from memory_core.search.passage import MemoryRecord, WordMatches
from memory_core.search.query_text import Asked


async def best_memories(
    session: Session,
    asked: Asked,
    *,
    words: int,
    limit: int,
    memory_type: str | None = None,
    min_confidence: float = 0.0,
) -> list[WordMatches]:
    """Memories that match a query with operators, or have any of its first `words` words. Empty for
    a query that only excludes."""
    each_word = list(asked.every_word[:words])
    any_word = " | ".join(f"({word})" for word in each_word)
    wanted = asked.words if asked.to_the_letter else any_word
    if asked.is_open_ended or not wanted:
        return []
    return await session.rows(
        WordMatches,
        "best_memories",
        words=wanted,
        each_word=each_word,
        type=memory_type,
        min_confidence=min_confidence,
        limit=limit,
    )


async def memories_by_id(
    session: Session, ids: Sequence[str], letters: str | None = None
) -> list[MemoryRecord]:
    """`letters`: a query with operators that they must match."""
    return await session.rows(MemoryRecord, "memories_by_id", ids=list(ids), letters=letters)
