"""Resources: documents by address, for clients that attach rather than call."""

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError

from memory_core.artifacts import reading
from memory_core.errors import MemoryFault, NotFound
from memory_core.runtime import Runtime


def register(server: MCPServer[None], runtime: Runtime) -> None:
    @server.resource(
        "memory://artifact/{artifact_uid}", title="A document, latest", mime_type="text/plain"
    )
    async def latest_artifact(artifact_uid: str) -> str:
        """The full text of a document's latest revision, exactly as ingested."""
        return await _text(runtime, artifact_uid, None)

    @server.resource(
        "memory://artifact/{artifact_uid}/{revision_id}",
        title="A document, one revision",
        mime_type="text/plain",
    )
    async def artifact_revision(artifact_uid: str, revision_id: str) -> str:
        """The full text of one revision, exactly as ingested."""
        return await _text(runtime, artifact_uid, revision_id)


async def _text(runtime: Runtime, artifact_uid: str, revision_id: str | None) -> str:
    try:
        await runtime.open()
        stored = await reading.get_revision(
            runtime, artifact_uid=artifact_uid, revision_id=revision_id
        )
    except NotFound as fault:
        raise ResourceNotFoundError(fault.message) from fault
    except MemoryFault as fault:
        raise ResourceError(fault.message) from fault
    return stored.content or ""
