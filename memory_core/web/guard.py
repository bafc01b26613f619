"""ASGI middleware: requests that are not allowed, too large or too slow do not reach the
application.

app = Guard(app, Admission.of("127.0.0.1"), max_body_bytes=70_000_000)
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from memory_core.kernel.admission import Admission, Refusal

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
# An additional rule of one server, over method, path and headers of an admitted request.
Rule = Callable[[str, str, Mapping[str, list[str]]], Refusal | None]

# The time for a body, plus one second for each further part of this size that has arrived.
BODY_SECONDS = 30.0
BODY_BYTES_PER_SECOND = 10_000
# No page of another server may show ours in a frame (clickjacking).
_NO_FRAMES = (b"x-frame-options", b"SAMEORIGIN")


class Guard:
    def __init__(
        self,
        app: Application,
        admission: Admission,
        *,
        max_body_bytes: int,
        rule: Rule | None = None,
        body_seconds: float = BODY_SECONDS,
    ) -> None:
        self._app = app
        self._admission = admission
        self._max_body_bytes = max_body_bytes
        self._rule = rule
        self._body_seconds = body_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if (refusal := self._refusal(scope)) is not None:
            await _refuse(scope, refusal, send)
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _Answer(send)
        body = _Body(receive, self._max_body_bytes, self._body_seconds, answer.cut_off)
        try:
            await self._app(scope, body.receive, answer.send)
        except Exception:
            # The request was cut off, so the application only reports that its client has left.
            if not answer.is_cut_off:
                raise

    def _refusal(self, scope: Scope) -> Refusal | None:
        method = str(scope.get("method", "GET"))
        headers = _headers(scope)
        refusal = self._admission.refusal(method, headers)
        if refusal is not None or scope["type"] != "http":
            return refusal
        if any(not _fits(length, self._max_body_bytes) for length in headers["content-length"]):
            return _too_large(self._max_body_bytes)
        return self._rule(method, str(scope["path"]), headers) if self._rule else None


class _Body:
    """The body of a request, with limits on its size and time."""

    def __init__(
        self,
        receive: Receive,
        limit: int,
        seconds: float,
        cut_off: Callable[[Refusal], Awaitable[None]],
    ) -> None:
        self._receive = receive
        self._limit = limit
        self._seconds = seconds
        self._cut_off = cut_off
        self._begun = asyncio.get_running_loop().time()
        self._bytes = 0
        self._complete = False

    async def receive(self) -> Message:
        if self._complete:  # from now on the application waits for the client to disconnect
            return await self._receive()
        until = self._begun + self._seconds + self._bytes / BODY_BYTES_PER_SECOND
        try:
            async with asyncio.timeout_at(until):
                message = await self._receive()
        except TimeoutError:
            return await self._end(Refusal(408, "The request took too long to arrive."))
        self._bytes += len(message.get("body", b""))
        self._complete = not message.get("more_body", False)
        if self._bytes > self._limit:
            return await self._end(_too_large(self._limit))
        return message

    async def _end(self, refusal: Refusal) -> Message:
        await self._cut_off(refusal)
        return {"type": "http.disconnect"}


class _Answer:
    """The application's answer, unless the request was cut off."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._begun = False
        self.is_cut_off = False

    async def send(self, message: Message) -> None:
        if self.is_cut_off:
            return
        if message["type"] == "http.response.start":
            self._begun = True
            message["headers"] = [*message.get("headers", ()), _NO_FRAMES]
        await self._send(message)

    async def cut_off(self, refusal: Refusal) -> None:
        self.is_cut_off = True
        if not self._begun:
            await _send_refusal(refusal, self._send)


async def _refuse(scope: Scope, refusal: Refusal, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": refusal.reason[:100]})
        return
    await _send_refusal(refusal, send)


async def _send_refusal(refusal: Refusal, send: Send) -> None:
    body = f"{refusal.reason}\n".encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"x-content-type-options", b"nosniff"),
        # The rest of a refused request must not be parsed as the next request.
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _headers(scope: Scope) -> "_Headers":
    headers = _Headers()
    for name, value in scope["headers"]:
        headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return headers


class _Headers(dict[str, list[str]]):
    def __missing__(self, _: str) -> list[str]:
        return []


def _fits(length: str, limit: int) -> bool:
    return length.isdecimal() and len(length) < 20 and int(length) <= limit


def _too_large(limit: int) -> Refusal:
    return Refusal(413, f"A request may have at most {limit / 1e6:,.0f} MB.")
