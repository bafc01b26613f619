"""A client of server-sent events as the standard describes one: it knows its last id."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from tests.patience import PATIENCE


@dataclass(frozen=True)
class Sent:
    id: str
    type: str
    data: dict[str, Any]


class EventSource:
    def __init__(self, url: str, **query: str) -> None:
        self._url = f"{url}/changes"
        self._query = query
        self.last_id: str | None = None
        self.comments: list[str] = []
        self.ended = False

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[AsyncIterator[Sent]]:
        headers = {"last-event-id": self.last_id} if self.last_id else {}
        async with (
            httpx.AsyncClient(timeout=PATIENCE, trust_env=False) as client,
            client.stream("GET", self._url, params=self._query, headers=headers) as response,
        ):
            assert response.status_code == 200, await response.aread()
            assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
            lines = response.aiter_lines()
            await self._block(lines)  # where it stands
            yield self._events(lines)

    async def _events(self, lines: AsyncIterator[str]) -> AsyncIterator[Sent]:
        while not self.ended:
            sent = await self._block(lines)
            if sent is not None:
                yield sent

    async def _block(self, lines: AsyncIterator[str]) -> Sent | None:
        """None: a block without an event."""
        kind, data = "message", ""
        async for line in lines:
            name, _, value = line.partition(": ")
            if not line:
                return Sent(self.last_id or "", kind, json.loads(data)) if data else None
            if line.startswith(":"):
                self.comments.append(line)
            elif name == "id":
                self.last_id = value
            elif name == "event":
                kind = value
            elif name == "data":
                data += value
        self.ended = True
        return None
