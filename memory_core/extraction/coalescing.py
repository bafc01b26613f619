"""One round trip for many callers: those that come during a trip share the next one."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from memory_core.kernel.errors import OUTAGES, MemoryFault

T = TypeVar("T")
R = TypeVar("R")
_AT_ONCE = 100


class Together(Generic[T, R]):
    """Hundreds of documents in work at once would else queue for a store until its answer, late
    by then, looks like an outage.

    A trip that fails since the other side is away fails for all that were on it. Any other failure
    may be the fault of one: then each goes alone, and only who is at fault fails.
    """

    def __init__(self, trip: Callable[[Sequence[T]], Awaitable[list[R]]]) -> None:
        self._trip = trip
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._driver: asyncio.Task[None] | None = None

    async def __call__(self, item: T) -> R:
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._driver is None or self._driver.done():
            self._driver = asyncio.create_task(self._drive())
        return await future

    async def _drive(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:_AT_ONCE], self._waiting[_AT_ONCE:]
            await self._travel(batch)

    async def _travel(self, batch: Sequence[tuple[T, asyncio.Future[R]]]) -> None:
        try:
            results = await self._trip([item for item, _ in batch])
        except Exception as error:
            if len(batch) > 1 and not _is_outage(error):
                for one in batch:
                    await self._travel([one])
                return
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, future), result in zip(batch, results, strict=True):
            if not future.done():
                future.set_result(result)


def _is_outage(error: Exception) -> bool:
    return isinstance(error, MemoryFault) and error.code in OUTAGES
