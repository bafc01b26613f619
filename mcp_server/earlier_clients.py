"""Clients of protocols before 2026-07-28. They get notifications on their connection, not in the
answer to a request."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import ResourcesListChanged, ResourceUpdated, ServerEvent
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

_STATE = "mcp-memory client"


class EarlierClient:
    """One connection. The pending notifications are a set, because a repeated one adds nothing. So
    a client that does not read holds no more than its subscriptions."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._waiting: dict[ServerEvent, None] = {}
        self._news = asyncio.Event()
        self.addresses: set[str] = set()
        self.beginning = asyncio.Lock()
        self.is_following = False
        sending = asyncio.create_task(self._send())
        self.on_leaving(sending.cancel)

    @staticmethod
    def is_one(context: ServerRequestContext[Any, Any]) -> bool:
        return context.protocol_version not in MODERN_PROTOCOL_VERSIONS

    @classmethod
    def of(cls, context: ServerRequestContext[Any, Any]) -> "EarlierClient":
        # The only way from a request to its connection.
        connection = context.session._connection
        client = connection.state.get(_STATE)
        if not isinstance(client, cls):
            client = connection.state[_STATE] = cls(connection)
        return client

    async def keep(self, used: AbstractAsyncContextManager[None]) -> None:
        """Hold the resource until the client leaves."""
        await self._connection.exit_stack.enter_async_context(used)

    def on_leaving(self, do: Callable[[], object]) -> None:
        self._connection.exit_stack.callback(do)

    def tell(self, event: ServerEvent) -> None:
        if isinstance(event, ResourcesListChanged) or (
            isinstance(event, ResourceUpdated) and event.uri in self.addresses
        ):
            self._waiting[event] = None
            self._news.set()

    async def _send(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            while self._waiting:
                event = next(iter(self._waiting))
                del self._waiting[event]
                if isinstance(event, ResourceUpdated):
                    await self._connection.send_resource_updated(event.uri)
                else:
                    await self._connection.send_resource_list_changed()
