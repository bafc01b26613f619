"""The MCP server over HTTP with authentication, in a thread of its own, and clients with keys."""

import socket
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self

import httpx
import httpx2
import psycopg
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from mcp_server.http import application
from mcp_server.server import build_server
from memory_core.access import keys
from memory_core.kernel.database import Database
from memory_core.kernel.settings import Settings
from tests.patience import PATIENCE
from tests.tool_client import ToolClient

# How each route is asked, and one that there is not.
ROUTES = {
    "/mcp": ("POST", {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}),
    "/health": ("GET", None),
    "/changes": ("GET", None),
    "/metrics": ("GET", None),
    "/nothing-here": ("GET", None),
}


class AccessServer:
    """`mcp-memory serve` as far as requests are concerned."""

    def __init__(self, settings: Settings, **changes: Any) -> None:
        changed = Settings(_env_file=None, **{**settings.model_dump(), **changes})
        app = application(build_server(changed), changed)
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="critical"))
        self._thread = threading.Thread(target=self._serve, name="access-server", daemon=True)

    def _serve(self) -> None:
        self._server.run(sockets=[self._socket])

    def __enter__(self) -> Self:
        self._thread.start()
        deadline = time.monotonic() + PATIENCE
        while not self._server.started:
            assert self._thread.is_alive()
            assert time.monotonic() < deadline
            time.sleep(0.005)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = self._server.force_exit = True
        self._thread.join()
        self._socket.close()

    def ask(self, path: str, token: str | None = None, **headers: str) -> httpx.Response:
        """One request to a route, as its clients make it."""
        method, body = ROUTES.get(path, ("GET", None))
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        if path == "/mcp":
            headers |= {"accept": "application/json, text/event-stream"}
        with httpx.Client(trust_env=False, timeout=PATIENCE) as client:
            return client.request(method, self.url + path, json=body, headers=headers)

    @asynccontextmanager
    async def client(self, token: str, *, mode: Any = "auto") -> AsyncIterator[ToolClient]:
        headers = {"authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(headers=headers, trust_env=False, timeout=PATIENCE) as http:
            transport = streamable_http_client(f"{self.url}/mcp", http_client=http)
            async with Client(transport, mode=mode) as client:
                yield ToolClient(client)


async def make_key(database: Database, **options: Any) -> str:
    """A key for alice of the default tenant, unless told otherwise."""
    async with database.transaction() as session:
        made = await keys.create(session, **{"tenant": "default", "user": "alice", **options})
    return made.text


def make_tenant(sql: "psycopg.Connection[Any]", name: str) -> str:
    row = sql.execute("INSERT INTO tenant (name) VALUES (%s) RETURNING tenant_id", [name])
    return str(row.fetchone()[0])  # type: ignore[index]
