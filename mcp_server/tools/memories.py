"""memory_store, memory_search, memory_list, memory_delete."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from mcp_server.arguments import AN_ID
from mcp_server.tool import read_tool, write_tool
from mcp_server.tools.parameters import INDEXED, Query
from memory_core.assistant import memories
from memory_core.assistant.memories import MemoryType
from memory_core.kernel.database import columns
from memory_core.runtime import Runtime
from memory_core.search.passage import MemoryRecord


@dataclass(frozen=True, slots=True)
class FoundMemory(MemoryRecord):
    similarity: float


class MemoryStored(BaseModel):
    memory_id: str
    status: Literal["created", "updated"]
    indexed: bool = Field(description=INDEXED)


class MemoriesFound(BaseModel):
    memories: list[FoundMemory]


class MemoriesListed(BaseModel):
    memories: list[MemoryRecord]
    total: int


class MemoryDeleted(BaseModel):
    memory_id: str
    deleted: Literal[True] = True
    indexed: bool


async def memory_store(
    runtime: Runtime,
    content: Annotated[str, Field(min_length=1, max_length=10_000)],
    type: MemoryType,
    confidence: Annotated[float, Field(ge=0, le=1, description="How sure you are.")],
    conversation_id: Annotated[str | None, Field(max_length=200)] = None,
) -> MemoryStored:
    """Keep one short fact, preference, project note or decision about the user for later
    conversations. The same content and type again updates it. For whole documents use
    artifact_ingest. Example: memory_store(content="Prefers answers in French",
    type="preference", confidence=0.9)
    """
    await runtime.open()
    stored = await memories.store(
        runtime,
        content=content,
        memory_type=type,
        confidence=confidence,
        conversation_id=conversation_id,
    )
    return MemoryStored(
        memory_id=stored.memory_id,
        status=stored.status,
        indexed=await runtime.indexed(stored.position),
    )


async def memory_search(
    runtime: Runtime,
    query: Query,
    limit: Annotated[int, Field(ge=1, le=20)] = 5,
    min_confidence: Annotated[float, Field(ge=0, le=1)] = 0.0,
    type: MemoryType | None = None,
) -> MemoriesFound:
    """Find memories by words and meaning, best first. Use it before answering what the user may
    have told earlier. For documents use hybrid_search. Example:
    memory_search(query="her preferred language")
    """
    await runtime.open()
    hits = await memories.search(
        runtime, query, limit=limit, min_confidence=min_confidence, memory_type=type
    )
    return MemoriesFound(
        memories=[
            FoundMemory(**columns(memory), similarity=round(similarity, 4))
            for memory, similarity in hits
        ]
    )


async def memory_list(
    runtime: Runtime,
    type: MemoryType | None = None,
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
    offset: Annotated[int, Field(ge=0, le=10_000_000)] = 0,
) -> MemoriesListed:
    """List stored memories, newest first: to review what is kept or find an id to delete.
    Example: memory_list(type="decision")
    """
    await runtime.open()
    page, total = await memories.list_newest(runtime, memory_type=type, limit=limit, offset=offset)
    return MemoriesListed(memories=page, total=total)


async def memory_delete(
    runtime: Runtime,
    memory_id: Annotated[str, Field(min_length=1, description="mem_…"), AN_ID],
) -> MemoryDeleted:
    """Forget one stored memory for good, when the user asks for it or it is wrong. For
    documents use artifact_delete. Example: memory_delete(memory_id="mem_0123456789abcdef")
    """
    await runtime.open()
    position = await memories.delete(runtime, memory_id)
    return MemoryDeleted(memory_id=memory_id, indexed=await runtime.indexed(position))


TOOLS = (
    write_tool("Store a memory", memory_store),
    read_tool("Search memories", memory_search),
    read_tool("List memories", memory_list),
    write_tool("Delete a memory", memory_delete, destructive=True),
)
