"""uvicorn, with bounds on what happens before an application is asked.

As shipped it waits for ever for a request to begin and for its headers to end, takes headers of any
length and any number of connections.
"""

import asyncio
import contextlib
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from memory_core.web.guard import Application

# How long a connection may take from its opening, or from the first byte of a further request, to
# the end of the headers.
HEADER_SECONDS = 20.0
MAX_HEADER_BYTES = 64_000
MAX_CONNECTIONS = 1_000


class BoundedConnection(HttpToolsProtocol):
    header_seconds = HEADER_SECONDS
    max_connections = MAX_CONNECTIONS

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._header_bytes = 0
        self._deadline: asyncio.TimerHandle | None = None
        if len(self.connections) > self.max_connections:
            transport.abort()
        else:
            self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._headers_came()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._deadline is not None:
            self._header_bytes += len(data)
        super().data_received(data)
        # Still waiting: all of these bytes were headers.
        if self._deadline is not None and self._header_bytes > MAX_HEADER_BYTES:
            self._headers_came()
            self.send_400_response("The headers are too long.")
        elif self._deadline is None and self._is_idle:
            # uvicorn ends its own wait at any byte, also at one that begins no request.
            self._await_headers()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._deadline is None:
            self._await_headers()

    def on_headers_complete(self) -> None:
        self._headers_came()
        super().on_headers_complete()

    @property
    def _is_idle(self) -> bool:
        is_ours = self.transport.get_protocol() is self  # not a WebSocket's by now
        return is_ours and (self.cycle is None or self.cycle.response_complete)

    def _await_headers(self) -> None:
        self._header_bytes = 0
        self._deadline = self.loop.call_later(self.header_seconds, self._give_up)

    def _headers_came(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            self.transport.close()


def serve(app: Application, *, host: str, port: int, log_level: str, **options: Any) -> None:
    """Serve until told to stop by a signal."""
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level=log_level,
        http=BoundedConnection,
        # A line for every look of a browser or a probe drowns all others.
        access_log=log_level in {"debug", "trace"},
        **options,
    )
    with contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(config).run()
