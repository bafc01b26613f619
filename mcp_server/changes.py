"""`GET /changes`: the log as server-sent events, from a given position."""

import asyncio
from collections.abc import Collection, Sequence
from http import HTTPStatus
from uuid import UUID

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from mcp_server.tool import MemoryServer
from memory_core.kernel import principal
from memory_core.kernel.end_tasks import end_tasks
from memory_core.kernel.errors import InvalidInput, MemoryFault
from memory_core.log.change import Position
from memory_core.log.change_types import change_types
from memory_core.log.feed import Feed, FeedEntry

MAX_STREAMS = 256
HEARTBEAT_SECONDS = 15.0
# How long a client waits before it reconnects, in milliseconds.
_RETRY_MS = 2_000
_AGAIN_SECONDS = "10"
_HEADERS = {
    "cache-control": "no-store",
    "x-accel-buffering": "no",  # a proxy must not buffer them
    "x-content-type-options": "nosniff",
}


class ChangeStreams:
    """The open streams of one server."""

    def __init__(self, feed: Feed, *, heartbeat: float = HEARTBEAT_SECONDS) -> None:
        self._feed = feed
        self._heartbeat = heartbeat
        self._ending = asyncio.Event()

    def register(self, server: MemoryServer) -> None:
        server.custom_route("/changes", methods=["GET"])(self.answer)

    def end(self) -> None:
        """End all streams; their clients reconnect with their positions."""
        self._ending.set()

    async def answer(self, request: Request) -> Response:
        try:
            types = change_types(request.query_params.get("types"))
            after = _position(request)
            if after is not None:
                await self._feed.refuse_unknown(after)
        except InvalidInput as fault:
            return PlainTextResponse(f"{fault.message}\n", HTTPStatus.BAD_REQUEST)
        except MemoryFault as fault:
            return _busy(fault.message)
        if self._feed.readers >= MAX_STREAMS:
            return _busy(f"{MAX_STREAMS} clients follow the changes already. Try again later.")
        if request.method == "HEAD":
            return Response(media_type=_Stream.media_type, headers=_HEADERS)
        tenant = principal.current().tenant_id
        return _Stream(self._feed, after, types, tenant, self._ending, self._heartbeat)


class _Stream(Response):
    media_type = "text/event-stream"

    def __init__(
        self,
        feed: Feed,
        after: Position | None,
        types: Collection[str] | None,
        tenant: UUID,
        ending: asyncio.Event,
        heartbeat: float,
    ) -> None:
        super().__init__(headers=_HEADERS)
        del self.headers["content-length"]
        self._feed = feed
        self._after = after
        self._types = types
        self._tenant = tenant
        self._ending = ending
        self._heartbeat = heartbeat

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send changes until the client leaves or the server ends."""
        try:
            async with self._feed.reading():
                await self._serve(receive, send)
        except MemoryFault as fault:
            await _busy(fault.message)(scope, receive, send)

    async def _serve(self, receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": self.status_code}
        await send({**start, "headers": self.raw_headers})
        tasks = [
            asyncio.create_task(self._send_changes(send)),
            asyncio.create_task(self._ending.wait()),
            asyncio.create_task(_leaves(receive)),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            outcomes = await end_tasks(*tasks)
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome
        await send({"type": "http.response.body", "body": b""})

    async def _send_changes(self, send: Send) -> None:
        after = self._after if self._after is not None else self._feed.reached
        clock = asyncio.get_running_loop().time
        sent, told_at = after, clock()
        await _send(send, f"retry: {_RETRY_MS}\nid: {after}\n\n".encode())
        while True:
            try:
                page = await self._feed.page(after, self._types)
            except MemoryFault as fault:
                await _send(send, f": waiting: {fault.message}\n\n".encode())
                await asyncio.sleep(_RETRY_MS / 1000)
                continue
            after = page.reached
            frames = self._frames(await self._feed.visible(page))
            if not frames and clock() - told_at >= self._heartbeat:
                frames = self._beat(sent, after)
            if frames:
                await _send(send, frames)
                sent, told_at = after, clock()
            await self._feed.wait(after, max(told_at + self._heartbeat - clock(), 0))

    def _frames(self, entries: Sequence[FeedEntry]) -> bytes:
        return b"".join(
            b"id: %b\nevent: %b\ndata: %b\n\n"
            % (str(entry.position).encode(), entry.type.encode(), entry.data)
            for entry in entries
            if entry.tenant_id == self._tenant
        )

    def _beat(self, sent: Position, after: Position) -> bytes:
        """It also advances the position of a client whose filter matched no change."""
        why = f" waiting: {self._feed.fault}" if self._feed.fault else ""
        moved = f"id: {after}\n" if after != sent else ""
        return f"{moved}:{why}\n\n".encode()


async def _send(send: Send, frames: bytes) -> None:
    """Returns when the client has received most of what was sent before."""
    await send({"type": "http.response.body", "body": frames, "more_body": True})


async def _leaves(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _position(request: Request) -> Position | None:
    """The client's position. A reconnecting client sends it in a header, which takes precedence
    over its URL."""
    text = request.headers.get("last-event-id") or request.query_params.get("after")
    if not text:
        return None
    try:
        return Position.parse(text)
    except ValueError:
        raise InvalidInput(
            f"{text[:80]!r} is no position: give the `id` of the last event, or 0:0 for all."
        ) from None


def _busy(message: str) -> Response:
    return PlainTextResponse(
        f"{message}\n", HTTPStatus.SERVICE_UNAVAILABLE, {"retry-after": _AGAIN_SECONDS}
    )
