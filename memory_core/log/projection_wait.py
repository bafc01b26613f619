"""Waiting until a projection has passed a change."""

import asyncio
import weakref

from memory_core.kernel.database import Database
from memory_core.log import checkpoint
from memory_core.log.change import Position

_FIRST_SECONDS = 0.005
_LAST_SECONDS = 0.05


class _Looking:
    """One query of a checkpoint serves all callers that wait for it in this process."""

    def __init__(self, database: Database, projection: str) -> None:
        self._database = database
        self._projection = projection
        self._look: asyncio.Task[Position | None] | None = None

    async def position(self) -> Position | None:
        if self._look is None or self._look.done():
            self._look = asyncio.create_task(self._load())
        return await asyncio.shield(self._look)

    async def _load(self) -> Position | None:
        async with self._database.session() as session:
            point = await checkpoint.load(session, self._projection)
        return point.position if point is not None else None


_looking: weakref.WeakKeyDictionary[Database, dict[str, _Looking]] = weakref.WeakKeyDictionary()


async def wait_until(
    database: Database, projection: str, position: Position, timeout: float
) -> bool:
    """True as soon as the projection has passed the position; False after `timeout` seconds."""
    eyes = _looking.setdefault(database, {}).setdefault(projection, _Looking(database, projection))
    deadline = asyncio.get_running_loop().time() + timeout
    pause = _FIRST_SECONDS
    while True:
        reached = await eyes.position()
        if reached is not None and reached >= position:
            return True
        left = deadline - asyncio.get_running_loop().time()
        if left <= 0:
            return False
        await asyncio.sleep(min(pause, left))
        pause = min(pause * 1.5, _LAST_SECONDS)
