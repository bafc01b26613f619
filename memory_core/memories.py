"""Short memories: what an assistant keeps about its user."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from memory_core import ids
from memory_core.artifacts.document import refuse_unstorable
from memory_core.database import Row
from memory_core.errors import InvalidInput, NotFound
from memory_core.runtime import Runtime
from memory_core.vectors import CollectionName, Entry

# Entries that Postgres does not know any more fall away, so ask for some more than wanted.
_SPARE_HITS = 10


class MemoryType(StrEnum):
    PREFERENCE = "preference"
    FACT = "fact"
    PROJECT = "project"
    DECISION = "decision"


@dataclass(frozen=True, slots=True)
class Stored:
    memory_id: str
    status: Literal["created", "updated"]


async def store(
    runtime: Runtime,
    *,
    content: str,
    memory_type: MemoryType,
    confidence: float,
    conversation_id: str | None,
) -> Stored:
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
    [vector] = await runtime.embedder.embed([content])
    async with runtime.database.long_transaction() as session:
        await session.run("lock_artifact", uid=memory_id)
        entry = Entry(
            id=memory_id,
            vector=vector,
            document=content,
            metadata={"type": memory_type.value, "confidence": confidence},
        )
        await runtime.vectors.upsert(CollectionName.MEMORY, [entry])
        row = await session.one(
            "store_memory",
            id=memory_id,
            type=memory_type.value,
            content=content,
            content_hash=digest,
            confidence=confidence,
            conversation_id=conversation_id,
        )
    assert row is not None
    return Stored(memory_id, "created" if row["created"] else "updated")


async def search(
    runtime: Runtime,
    query: str,
    *,
    limit: int,
    min_confidence: float,
    memory_type: MemoryType | None,
) -> list[tuple[Row, float]]:
    """Memories and their similarity (1 is the same), best first."""
    [vector] = await runtime.embedder.embed([query])
    hits = await runtime.vectors.query(
        CollectionName.MEMORY,
        vector,
        limit=limit + _SPARE_HITS,
        where=_where(min_confidence, memory_type),
    )
    async with runtime.database.session() as session:
        rows = await session.all("memories_by_id", ids=[hit.id for hit in hits], letters=None)
    by_id = {row["memory_id"]: row for row in rows}
    found = [(by_id[hit.id], 1.0 - hit.distance) for hit in hits if hit.id in by_id]
    return found[:limit]


async def list_newest(
    runtime: Runtime, *, memory_type: MemoryType | None, limit: int, offset: int
) -> tuple[list[Row], int]:
    """A page, and how many there are in all."""
    async with runtime.database.session() as session:
        wanted = memory_type.value if memory_type else None
        rows = await session.all("list_memories", type=wanted, limit=limit, offset=offset)
        total = await session.one("count_memories", type=wanted)
    assert total is not None
    return rows, int(total["memories"])


async def delete(runtime: Runtime, memory_id: str) -> None:
    async with runtime.database.long_transaction() as session:
        await session.run("lock_artifact", uid=memory_id)
        if not await session.run("delete_memory", id=memory_id):
            raise NotFound(
                f"There is no memory {memory_id!r}: nothing was deleted. memory_list and "
                "memory_search give the ids.",
                details={"memory_id": memory_id},
            )
        await runtime.vectors.delete(CollectionName.MEMORY, [memory_id])


def _where(min_confidence: float, memory_type: MemoryType | None) -> dict[str, Any] | None:
    conditions: list[dict[str, Any]] = []
    if min_confidence > 0:
        conditions.append({"confidence": {"$gte": min_confidence}})
    if memory_type is not None:
        conditions.append({"type": memory_type.value})
    if len(conditions) > 1:
        return {"$and": conditions}
    return conditions[0] if conditions else None
