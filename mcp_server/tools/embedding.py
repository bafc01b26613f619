"""embedding_health: which embedder is configured, and whether it works."""

import time

from pydantic import BaseModel

from mcp_server.tool import read_tool
from memory_core.index.generation import CollectionName
from memory_core.kernel import principal
from memory_core.runtime import Runtime


class EmbeddingHealth(BaseModel):
    provider: str
    model: str
    dimension: int
    probe_ms: float
    # Entries per collection, counted over all users, so only an admin gets them.
    collections: dict[str, int]


async def embedding_health(runtime: Runtime) -> EmbeddingHealth:
    """Which embedding model is at work, how fast, and how much is indexed. Use it when
    searches fail or find nothing. Example: embedding_health()
    """
    await runtime.open()
    begun = time.perf_counter()
    await runtime.embedder.embed(["A test."])
    elapsed = (time.perf_counter() - begun) * 1000
    counted = CollectionName if "admin" in principal.current().scopes else ()
    return EmbeddingHealth(
        provider=runtime.embedder.provider,
        model=runtime.embedder.model,
        dimension=runtime.embedder.dimension,
        probe_ms=round(elapsed, 2),
        collections={name.value: await runtime.vectors.count(name) for name in counted},
    )


TOOLS = (read_tool("Embedding health", embedding_health),)
