"""ASGI middleware: a client that sends too many requests waits; other clients do not wait for
it."""

import asyncio

from mcp_server.http_refusals import refuse
from memory_core.access.calls_at_once import CallsAtOnce
from memory_core.access.credential import RateLimited
from memory_core.access.rate_limits import RateLimiter
from memory_core.kernel.principal import current
from memory_core.web.guard import Application, Receive, Scope, Send

# A client that exceeds its limit is answered slowly. Only this many wait at once; further ones are
# answered at once.
_PAUSE_SECONDS = 1.0
_MAX_PAUSING = 500


class RateLimitedApp:
    def __init__(
        self, app: Application, limiter: RateLimiter | None, at_once: CallsAtOnce | None
    ) -> None:
        self._app = app
        self._limiter = limiter
        self._at_once = at_once
        self._pausing = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        principal = current()
        if scope["type"] != "http" or not principal.user:  # a stranger's request is cheap
            await self._app(scope, receive, send)
            return
        try:
            if self._limiter is not None:
                await self._limiter.admit(principal)
            if self._at_once is None:
                await self._app(scope, receive, send)
                return
            is_stream = scope["method"] == "GET"
            turn = self._at_once.stream if is_stream else self._at_once.call
            async with turn(principal):
                await self._app(scope, receive, send)
        except RateLimited as fault:
            await self._pause()
            await refuse(fault, send)

    async def _pause(self) -> None:
        if self._pausing >= _MAX_PAUSING:
            return
        self._pausing += 1
        try:
            await asyncio.sleep(_PAUSE_SECONDS)
        finally:
            self._pausing -= 1
