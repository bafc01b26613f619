"""ASGI middleware: passes a request's trace context on, and records requests to our own routes."""

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

from opentelemetry import context as contexts
from opentelemetry.propagate import extract
from starlette.requests import Request

from mcp_server.recording import Call, Recorder
from memory_core.web.guard import Application, Message, Receive, Scope, Send

# Machines request these every few seconds, so they are not recorded. Requests to /mcp are recorded
# per tool.
_UNRECORDED = frozenset({"/mcp", "/health", "/metrics"})


class RecordedRequests:
    """`routes`: the existing paths. Any other path may be any text, and is not kept."""

    def __init__(self, app: Application, recorder: Recorder, routes: frozenset[str]) -> None:
        self._app = app
        self._recorder = recorder
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with _asked_within(scope):
            path = str(scope["path"])
            if path in _UNRECORDED or path not in self._routes:
                await self._app(scope, receive, send)
                return
            with self._recorder.recording("page", f"{scope['method']} {path}", {}) as call:
                await self._app(scope, receive, _Observed(call, send))


class _Observed:
    def __init__(self, call: Call, send: Send) -> None:
        self._call = call
        self._send = send

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            status = int(message["status"])
            if status < 400:
                self._call.answered()
            else:
                self._call.failed(f"HTTP_{status}")
        await self._send(message)


@contextmanager
def _asked_within(scope: MutableMapping[str, Any]) -> Iterator[None]:
    """Use the header `traceparent` if the message itself names no span."""
    given = Request(dict(scope)).headers.get("traceparent")
    if given is None:
        yield
        return
    token = contexts.attach(extract({"traceparent": given}))
    try:
        yield
    finally:
        contexts.detach(token)
