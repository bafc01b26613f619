"""uvicorn with limits on what happens before an application is called.

As shipped, it waits for ever for a request to begin and for its headers to end, and accepts headers
of any length and any number of connections.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from memory_core.web.guard import Application

# The time from opening a connection, or from the first byte of a further request, to the end of the
# headers.
HEADER_SECONDS = 20.0
MAX_HEADER_BYTES = 64_000
MAX_CONNECTIONS = 1_000
# How long a client may stop reading an answer.
STALL_SECONDS = 60.0
# How long answers may still take after the server was asked to stop.
STOP_SECONDS = 10


class BoundedConnection(HttpToolsProtocol):
    header_seconds = HEADER_SECONDS
    max_connections = MAX_CONNECTIONS
    stall_seconds = STALL_SECONDS

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._header_bytes = 0
        self._deadline: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None
        if len(self.connections) > self.max_connections:
            transport.abort()
        else:
            self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._headers_came()
        self._end_stall()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._deadline is not None:
            self._header_bytes += len(data)
        super().data_received(data)
        # The headers are not complete, so all of these bytes were headers.
        if self._deadline is not None and self._header_bytes > MAX_HEADER_BYTES:
            self._headers_came()
            self.send_400_response("The headers are too long.")
        elif self._deadline is None and self._is_idle:
            # uvicorn ends its own wait at any byte, even at one that begins no request.
            self._await_headers()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._deadline is None:
            self._await_headers()

    def on_headers_complete(self) -> None:
        self._headers_came()
        super().on_headers_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_stall()

    def resume_writing(self) -> None:
        self._end_stall()
        super().resume_writing()

    def _watch_stall(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._stall = self.loop.call_later(self.stall_seconds, self._cut_off_stalled, left)

    def _end_stall(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def _cut_off_stalled(self, before: int) -> None:
        if self.transport.get_write_buffer_size() < before:
            self._watch_stall()
        else:
            # A normal close would wait for the client to read the rest.
            self.transport.abort()

    @property
    def _is_idle(self) -> bool:
        is_ours = self.transport.get_protocol() is self  # not a WebSocket by now
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


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_stop = on_stop

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._on_stop()
        await super().shutdown(sockets)


def serve(
    app: Application,
    *,
    host: str,
    port: int,
    log_level: str,
    on_stop: Callable[[], None] = lambda: None,
    **options: Any,
) -> None:
    """Serve until a signal asks to stop. `on_stop`: called then, to end endless answers."""
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level=log_level,
        http=BoundedConnection,
        timeout_graceful_shutdown=STOP_SECONDS,
        # A line for every request of a browser or a probe would hide all other lines.
        access_log=log_level in {"debug", "trace"},
        **options,
    )
    with contextlib.suppress(KeyboardInterrupt):
        _Server(config, on_stop).run()
