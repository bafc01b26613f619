"""Batched round trips: calls that arrive during a trip share the next one."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from memory_core.kernel.errors import OUTAGES, MemoryFault

T = TypeVar("T")
R = TypeVar("R")
_AT_ONCE = 100


class BatchedCalls(Generic[T, R]):
    """Without batching, hundreds of concurrent documents would queue for a store, and the late
    answers would look like an outage.

    If the other side is away, the trip fails for all callers. Any other failure may be the fault of
    one caller: then each call is repeated alone, and only the faulty one fails.
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
