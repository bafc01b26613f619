"""The worker: hosts all projections, and leads those that no other process leads.

One separate connection holds the leaderships (advisory locks that end with the process, however it
ends) and listens for new changes. Every worker looks each second for a projection without a leader.
"""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol
from uuid import uuid4

import psycopg

from memory_core.kernel import principal, queries
from memory_core.kernel.database import Database, postgres_faults
from memory_core.kernel.end_tasks import end_tasks
from memory_core.kernel.errors import MemoryFault
from memory_core.log import log_partitions, rebase
from memory_core.log.projection import Projection
from memory_core.log.runner import LeadershipLost, Runner

log = logging.getLogger(__name__)

# The application name of its connection in Postgres.
APPLICATION = "mcp-memory worker"
_UPKEEP_SECONDS = 6 * 3600.0
LOOK_SECONDS = 1.0
_BACKOFF_FIRST_SECONDS = 0.25
_BACKOFF_LIMIT_SECONDS = 5.0
# A leader whose machine has gone silent loses its leadership after about 20 s.
_KEEPALIVE: dict[str, Any] = {"keepalives_idle": 5, "keepalives_interval": 5, "keepalives_count": 3}


class LeaderTask(Protocol):
    """The work of a leader, until it is cancelled."""

    async def run(self) -> None: ...

    def wake(self) -> None:
        """Called when there may be new work."""


class Duty(Protocol):
    """Work that one process at a time does, without a checkpoint in the log."""

    name: str

    def lead(self, leader: str) -> LeaderTask: ...

    async def settle(self) -> None:
        """Give work in progress a moment to finish before the process ends."""


class Worker:
    """`run` never returns; cancel it to stop. While Postgres is away it waits."""

    def __init__(
        self,
        database: Database,
        projections: Sequence[Projection],
        duties: Sequence[Duty] = (),
    ) -> None:
        self._database = database
        self._projections = {projection.name: projection for projection in projections}
        self._begin: dict[str, Callable[[str], LeaderTask]] = {}
        for projection in projections:
            self._begin[projection.name] = partial(Runner, database, projection)
        for duty in duties:
            self._begin[duty.name] = duty.lead
        self._running: dict[str, tuple[LeaderTask, asyncio.Task[None]]] = {}
        self._faults = 0  # consecutive
        self._failures: dict[str, int] = {}
        self._not_before: dict[str, float] = {}
        # Set once it has tried to lead every projection.
        self.settled = asyncio.Event()

    @property
    def names(self) -> list[str]:
        return sorted(self._projections)

    async def run(self) -> None:
        with principal.system("the worker follows the changes of all tenants"):
            await self._run()

    async def _run(self) -> None:
        while True:
            try:
                with postgres_faults():
                    async with await psycopg.AsyncConnection.connect(
                        self._database.dsn,
                        autocommit=True,
                        connect_timeout=5,
                        application_name=APPLICATION,
                        **_KEEPALIVE,
                    ) as connection:
                        try:
                            await self._host(connection)
                        finally:
                            await self._end(connection)
            except MemoryFault as fault:
                if not self._faults:
                    log.warning("the worker waits: %s", fault.message)
                self._faults += 1
            except Exception:
                # Without a restart, the process would live on without its worker, and projections
                # would stop.
                log.exception("the worker failed and will start again")
                self._faults += 1
            pause = _BACKOFF_FIRST_SECONDS * 2 ** min(self._faults, 8)
            await asyncio.sleep(min(pause, _BACKOFF_LIMIT_SECONDS))

    def wake(self) -> None:
        for runner, _ in self._running.values():
            runner.wake()

    async def _host(self, connection: psycopg.AsyncConnection[Any]) -> None:
        async with self._database.session() as session:
            await rebase.refuse_foreign_positions(session)
        await connection.execute(queries.get("listen_to_log"))
        loop = asyncio.get_running_loop()
        upkeep_at = loop.time()
        while True:
            if loop.time() >= upkeep_at:
                await log_partitions.make_ahead(self._database)
                upkeep_at = loop.time() + _UPKEEP_SECONDS
            await self._take_leads(connection)
            self._faults = 0
            self.settled.set()
            async for _ in connection.notifies(timeout=LOOK_SECONDS, stop_after=1):
                self.wake()

    async def _take_leads(self, connection: psycopg.AsyncConnection[Any]) -> None:
        now = asyncio.get_running_loop().time()
        for name, begin in self._begin.items():
            if name in self._running:
                if self._running[name][1].done():
                    await self._give_up(connection, name)
                continue
            if self._not_before.get(name, 0.0) > now:
                continue
            cursor = await connection.execute(queries.get("try_leadership"), {"name": name})
            row = await cursor.fetchone()
            if row is not None and row[0]:
                self._lead(name, begin)

    def _lead(self, name: str, begin: Callable[[str], LeaderTask]) -> None:
        running = begin(f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}")
        self._running[name] = (running, asyncio.create_task(running.run()))

    async def _give_up(self, connection: psycopg.AsyncConnection[Any], name: str) -> None:
        """A runner ended: log why, and release its leadership so that any process can try again."""
        _, task = self._running.pop(name)
        await connection.execute(queries.get("end_leadership"), {"name": name})
        error = task.exception()
        if isinstance(error, LeadershipLost):
            log.info("%s is led by another process now", name)
        elif isinstance(error, MemoryFault):
            log.warning("%s stopped and will start again: %s", name, error.message)
        elif error is not None:
            log.error("%s stopped and will start again", name, exc_info=error)
        failures = self._failures[name] = self._failures.get(name, 0) + 1
        pause = min(_BACKOFF_FIRST_SECONDS * 2 ** min(failures, 8), _BACKOFF_LIMIT_SECONDS)
        self._not_before[name] = asyncio.get_running_loop().time() + pause

    async def _end(self, connection: psycopg.AsyncConnection[Any]) -> None:
        """Release the leaderships now: Postgres notices a closed connection only later."""
        led = dict(self._running)
        self._running.clear()
        try:
            await end_tasks(*(task for _, task in led.values()))
        finally:
            with contextlib.suppress(psycopg.Error):
                for name in led:
                    await connection.execute(queries.get("end_leadership"), {"name": name})
