"""A real MCP client, with the two things tests say about a call: it works, or it is refused."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar

from mcp import Client

from mcp_server.failures import error_in

T = TypeVar("T")
Json = dict[str, Any]


class ToolClient:
    def __init__(self, client: Client) -> None:
        self.client = client

    async def __call__(self, tool: str, /, **arguments: Any) -> Json:
        """The structured answer of a call that must succeed."""
        answer = await self.client.call_tool(tool, arguments)
        assert not answer.is_error, answer.content
        assert answer.structured_content is not None
        return answer.structured_content

    async def refusal(self, tool: str, /, **arguments: Any) -> Json:
        """The error of a call that must fail, as every client gets it: JSON in a text."""
        answer = await self.client.call_tool(tool, arguments)
        assert answer.is_error, answer.structured_content
        assert answer.structured_content is None, "it would not fit the tool's output schema"
        error = error_in(answer)
        assert set(error) == {"error", "error_code", "details"}
        assert "Traceback" not in error["error"]
        return error


@asynccontextmanager
async def in_one_task(manager: AbstractAsyncContextManager[T]) -> AsyncIterator[T]:
    """Enter and leave in the same task, which fixtures do not do and the SDK insists on."""
    entered: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    leave = asyncio.Event()

    async def hold() -> None:
        try:
            async with manager as value:
                entered.set_result(value)
                await leave.wait()
        except BaseException as error:
            if entered.done():
                raise
            entered.set_exception(error)

    task = asyncio.create_task(hold())
    try:
        yield await entered
    finally:
        leave.set()
        await task
