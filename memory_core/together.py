"""One round trip for many: whoever comes while one is under way goes with the next."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")
_AT_ONCE = 100


class Together(Generic[T, R]):
    """Hundreds of documents in work at once would else queue for a store until its answer, late
    by then, looks like an outage. A trip that fails fails for all that were on it."""

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
            futures = [future for _, future in batch]
            try:
                results = await self._trip([item for item, _ in batch])
            except Exception as error:
                for future in futures:
                    if not future.done():
                        future.set_exception(error)
                continue
            for future, result in zip(futures, results, strict=True):
                if not future.done():
                    future.set_result(result)
