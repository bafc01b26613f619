"""A limit on concurrent calls per user. A few more calls may wait for a free place."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from memory_core.access.credential import RateLimited
from memory_core.kernel.principal import Principal

WAIT_SECONDS = 10.0
# How many calls may wait, per allowed concurrent call.
_WAITING_PER_CALL = 4
# How many streams a user may hold open, per allowed concurrent call.
_STREAMS_PER_CALL = 16


@dataclass(slots=True)
class _UnderWay:
    turns: asyncio.Semaphore
    calls: int = 0  # running or waiting
    streams: int = 0


@dataclass(slots=True)
class CallsAtOnce:
    limit: int
    wait_seconds: float = WAIT_SECONDS
    _users: dict[tuple[object, str], _UnderWay] = field(default_factory=dict)

    @asynccontextmanager
    async def call(self, principal: Principal) -> AsyncIterator[None]:
        under_way = self._of(principal)
        if under_way.calls >= (1 + _WAITING_PER_CALL) * self.limit:
            raise _too_many(f"{under_way.calls} of your calls are running or waiting.")
        under_way.calls += 1
        try:
            try:
                async with asyncio.timeout(self.wait_seconds):
                    await under_way.turns.acquire()
            except TimeoutError:
                raise _too_many(f"{self.limit} of your calls are running.") from None
            try:
                yield
            finally:
                under_way.turns.release()
        finally:
            under_way.calls -= 1
            self._forget(principal)

    @asynccontextmanager
    async def stream(self, principal: Principal) -> AsyncIterator[None]:
        """Hold a stream open. An idle stream costs nothing, so more of them are allowed, and none
        waits for a place."""
        under_way = self._of(principal)
        if under_way.streams >= _STREAMS_PER_CALL * self.limit:
            raise _too_many(f"{under_way.streams} of your streams are open.")
        under_way.streams += 1
        try:
            yield
        finally:
            under_way.streams -= 1
            self._forget(principal)

    def _of(self, principal: Principal) -> _UnderWay:
        name = principal.tenant_id, principal.user
        if name not in self._users:
            self._users[name] = _UnderWay(asyncio.Semaphore(self.limit))
        return self._users[name]

    def _forget(self, principal: Principal) -> None:
        name = principal.tenant_id, principal.user
        if not self._users[name].calls and not self._users[name].streams:
            del self._users[name]


def _too_many(what: str) -> RateLimited:
    return RateLimited(f"{what} Try again when one has ended.", 1)
