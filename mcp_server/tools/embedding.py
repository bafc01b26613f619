"""embedding_health: which embedder is at work, and does it work?"""

import time

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations
from pydantic import BaseModel

from memory_core.runtime import Runtime
from memory_core.vectors import CollectionName


class EmbeddingHealth(BaseModel):
    provider: str
    model: str
    dimension: int
    probe_ms: float
    collections: dict[str, int]


def register(server: MCPServer[None], runtime: Runtime) -> None:
    @server.tool(
        title="Embedding health",
        annotations=ToolAnnotations(read_only_hint=True, idempotent_hint=True),
    )
    async def embedding_health() -> EmbeddingHealth:
        """Which embedding provider and model are at work, how fast, and how much is indexed."""
        await runtime.open()
        begun = time.perf_counter()
        await runtime.embedder.embed(["Is anybody there?"])
        elapsed = (time.perf_counter() - begun) * 1000
        return EmbeddingHealth(
            provider=runtime.embedder.provider,
            model=runtime.embedder.model,
            dimension=runtime.embedder.dimension,
            probe_ms=round(elapsed, 2),
            collections={name.value: await runtime.vectors.count(name) for name in CollectionName},
        )
