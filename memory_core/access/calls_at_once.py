"""How many calls of one user a server works on at the same time; some more wait for their turn."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from memory_core.access.credential import RateLimited
from memory_core.kernel.principal import Principal

WAIT_SECONDS = 10.0
# Calls that may wait for their turn, for each that is at work.
_WAITING_PER_CALL = 4
# Streams that one user may hold open, for each call at once.
_STREAMS_PER_CALL = 16


@dataclass(slots=True)
class _UnderWay:
    turns: asyncio.Semaphore
    calls: int = 0  # at work or waiting
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
            raise _too_many(f"{under_way.calls} calls of yours are under way or wait.")
        under_way.calls += 1
        try:
            try:
                async with asyncio.timeout(self.wait_seconds):
                    await under_way.turns.acquire()
            except TimeoutError:
                raise _too_many(f"{self.limit} calls of yours are under way.") from None
            try:
                yield
            finally:
                under_way.turns.release()
        finally:
            under_way.calls -= 1
            self._forget(principal)

    @asynccontextmanager
    async def stream(self, principal: Principal) -> AsyncIterator[None]:
        """An answer without an end takes nothing while nothing happens: more of these may be open,
        and none waits."""
        under_way = self._of(principal)
        if under_way.streams >= _STREAMS_PER_CALL * self.limit:
            raise _too_many(f"{under_way.streams} streams of yours are open.")
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
