"""The worker inside a process with another purpose: a command, or a server over stdio."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from memory_core.kernel import principal
from memory_core.kernel.database import Database
from memory_core.kernel.end_tasks import end_tasks
from memory_core.kernel.errors import MemoryFault
from memory_core.kernel.timed_wait import is_set_within
from memory_core.log import checkpoint
from memory_core.log.change import Position
from memory_core.log.projection import Projection
from memory_core.log.worker import Duty, Worker

log = logging.getLogger(__name__)

_SETTLE_SECONDS = 5.0
# After this long without progress, the rest is left to the next worker.
PATIENCE_SECONDS = 10.0
_POLL_SECONDS = 0.02


class Host:
    def __init__(
        self,
        database: Database,
        projections: Callable[[], Sequence[Projection]],
        duties: Callable[[], Sequence[Duty]] = tuple,
        *,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self._database = database
        self._projections = projections
        self._make_duties = duties
        self._patience = patience
        self._duties: Sequence[Duty] = ()
        self._worker: Worker | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Cheap if it has already started."""
        if self._task is not None:
            return
        self._duties = self._make_duties()
        self._worker = Worker(self._database, self._projections(), self._duties)
        self._task = asyncio.create_task(self._worker.run())

    async def finish(self) -> None:
        """Let the projections that this process leads catch up with the log while they progress;
        then stop."""
        if self._worker is None:
            return
        try:
            await is_set_within(self._worker.settled, _SETTLE_SECONDS)
            # Including those that another process leads, or has just stopped leading.
            for name in self._worker.names:
                await self._catch_up(name)
            for duty in self._duties:
                await duty.settle()
        except MemoryFault as fault:
            log.warning("the rest of the log is left to the next worker: %s", fault.message)
        await self.stop()

    async def stop(self) -> None:
        if self._task is not None:
            await end_tasks(self._task)
        self._worker = self._task = None

    async def _catch_up(self, name: str) -> None:
        loop = asyncio.get_running_loop()
        reached: Position | None = None
        moved_at = loop.time()
        while loop.time() - moved_at < self._patience:
            with principal.system("the worker follows the changes of all tenants"):
                async with self._database.session() as session:
                    point = await checkpoint.load(session, name)
                    if point is not None and await checkpoint.is_through(session, point):
                        return
            if point is not None:
                if point.fault is not None or point.status == "paused":
                    return
                if point.position != reached:
                    reached, moved_at = point.position, loop.time()
            await asyncio.sleep(_POLL_SECONDS)
