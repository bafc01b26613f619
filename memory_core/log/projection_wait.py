"""Waiting until a projection has passed a change."""

import asyncio
import weakref

from memory_core.kernel.database import Database
from memory_core.log import checkpoint
from memory_core.log.change import Position

_FIRST_SECONDS = 0.005
_LAST_SECONDS = 0.05


class _SharedQuery:
    """One query of a checkpoint serves all callers that wait for it in this process."""

    def __init__(self, database: Database, projection: str) -> None:
        self._database = database
        self._projection = projection
        self._task: asyncio.Task[Position | None] | None = None

    async def position(self) -> Position | None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._load())
        return await asyncio.shield(self._task)

    async def _load(self) -> Position | None:
        async with self._database.session() as session:
            point = await checkpoint.load(session, self._projection)
        return point.position if point is not None else None


_queries: weakref.WeakKeyDictionary[Database, dict[str, _SharedQuery]] = weakref.WeakKeyDictionary()


async def wait_until(
    database: Database, projection: str, position: Position, timeout: float
) -> bool:
    """True as soon as the projection has passed the position; False after `timeout` seconds."""
    query = _queries.setdefault(database, {}).setdefault(
        projection, _SharedQuery(database, projection)
    )
    deadline = asyncio.get_running_loop().time() + timeout
    pause = _FIRST_SECONDS
    while True:
        reached = await query.position()
        if reached is not None and reached >= position:
            return True
        left = deadline - asyncio.get_running_loop().time()
        if left <= 0:
            return False
        await asyncio.sleep(min(pause, left))
        pause = min(pause * 1.5, _LAST_SECONDS)
