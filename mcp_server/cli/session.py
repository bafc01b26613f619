"""What a command works with: the memory, opened once, and the same tools that assistants use."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from uuid import UUID

from mcp_server.cli.command_record import opened
from mcp_server.cli.configuration import read_settings
from memory_core.kernel import principal
from memory_core.kernel.database import Session
from memory_core.kernel.errors import ErrorCode, MemoryFault
from memory_core.kernel.short_ids import (
    find_artifact_uid,
    find_event_id,
    find_job_id,
    find_revision_id,
)
from memory_core.runtime import Runtime

T = TypeVar("T")
Answer = dict[str, Any]


class OpenMemory:
    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime

    async def ask(self, tool: str, arguments: dict[str, Any]) -> Answer:
        """Call one tool in this process; a structured error becomes a MemoryFault again."""
        from mcp import Client

        from mcp_server.failures import error_in
        from mcp_server.server import build_server

        given = {name: value for name, value in arguments.items() if value is not None}
        settings, runtime = self.runtime.settings, self.runtime
        async with Client(build_server(settings, every_tool=True, runtime=runtime)) as client:
            result = await client.call_tool(tool, given)
        if result.is_error:
            fault = error_in(result)
            raise MemoryFault(
                fault["error"], code=ErrorCode(fault["error_code"]), details=fault["details"]
            )
        content: Answer = result.structured_content or {}
        return content

    async def document(self, text: str) -> str:
        """The full uid of the document with this short id."""
        async with self.runtime.database.session() as session:
            return await find_artifact_uid(session, text)

    async def revision(self, artifact_uid: str, text: str | None) -> str | None:
        if text is None:
            return None
        async with self.runtime.database.session() as session:
            return await find_revision_id(session, artifact_uid, text)

    async def event(self, text: str) -> str:
        async with self.runtime.database.session() as session:
            return await find_event_id(session, text)

    async def job(self, text: str) -> UUID:
        async with self.runtime.database.session() as session:
            return await find_job_id(session, text)


def with_memory(work: Callable[[OpenMemory], Awaitable[T]]) -> T:
    async def run() -> T:
        settings = read_settings(log_level="ERROR")
        async with opened(settings, worker="when needed") as runtime:
            return await work(OpenMemory(runtime))

    return asyncio.run(run())


def with_operator(work: Callable[[OpenMemory], Awaitable[T]]) -> T:
    """For commands about the whole installation, of every user and tenant."""
    with principal.system("a command of the person who runs the installation"):
        return with_memory(work)


def with_transaction(work: Callable[[Session], Awaitable[T]]) -> T:
    """For such a command that needs one transaction in Postgres and nothing else."""

    async def run(memory: OpenMemory) -> T:
        async with memory.runtime.database.transaction() as session:
            return await work(session)

    return with_operator(run)
