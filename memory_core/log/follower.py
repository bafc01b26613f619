"""Following the log: changes as they become readable, for readers without a checkpoint."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Any

import psycopg

from memory_core.kernel import principal, queries
from memory_core.kernel.database import Database, postgres_faults
from memory_core.kernel.end_tasks import end_tasks
from memory_core.kernel.errors import MemoryFault
from memory_core.log.change import START, Change, Position
from memory_core.log.log_reader import end, read, until_readable

log = logging.getLogger(__name__)

# The followers of each server. Each runs only while it has clients.
CHANGE_STREAMS, RESOURCE_NOTIFICATIONS = "change streams", "resource notifications"
FOLLOWERS = (CHANGE_STREAMS, RESOURCE_NOTIFICATIONS)

Connection = psycopg.AsyncConnection[Any]
_PAGE = 200
# Also poll without a notification: a connection pooler may not pass notifications on.
_LOOK_SECONDS = 1.0
_BACKOFF_FIRST_SECONDS = 0.25
_BACKOFF_LIMIT_SECONDS = 5.0
_KEEPALIVE: dict[str, Any] = {"keepalives_idle": 5, "keepalives_interval": 5, "keepalives_count": 3}


async def follow(
    database: Database, after: Position, types: Collection[str] | None = None
) -> AsyncIterator[Change]:
    """Every change after a position, in order, without end."""
    async with contextlib.aclosing(pages(database, after, types)) as all_pages:
        async for page in all_pages:
            for change in page:
                yield change


async def pages(
    database: Database,
    after: Position,
    types: Collection[str] | None = None,
    *,
    name: str | None = None,
) -> AsyncGenerator[list[Change], None]:
    """The same in pages. The first page is empty, and means that the follower listens.

    `name`: the name of a follower, which `projections status` shows with its position. Both are
    stored in the application name of its connection: that ends with the process, however it ends,
    and costs no transaction.
    """
    with postgres_faults():
        connection = await psycopg.AsyncConnection.connect(
            database.dsn, autocommit=True, connect_timeout=5, **_KEEPALIVE
        )
        try:
            await connection.execute(queries.get("listen_to_log"))
            await _say_position(connection, name, after)
            yield []
            while True:
                async with database.session() as session:
                    page = await read(session, after, _PAGE, types)
                if page:
                    yield page
                    after = page[-1].position
                    await _say_position(connection, name, after)
                if len(page) < _PAGE:
                    await _wait_for_more(connection, database, after)
        finally:
            # Not `async with`: that would first roll back, during a wait.
            await connection.close()


async def _say_position(connection: Connection, name: str | None, after: Position) -> None:
    if name is not None:
        await connection.execute(
            queries.get("name_follower"), {"name": name, "position": str(after)}
        )


async def _wait_for_more(connection: Connection, database: Database, after: Position) -> None:
    if await until_readable(database, after):
        return
    async with contextlib.aclosing(
        connection.notifies(timeout=_LOOK_SECONDS, stop_after=1)
    ) as notices:
        async for _ in notices:
            pass


class Follower:
    """Passes every change since its start, in order, to one consumer, for as long as it has a user.
    While Postgres is away it waits, and then continues at the same position."""

    def __init__(
        self,
        name: str,
        opened: Callable[[], Awaitable[Database]],
        take: Callable[[Sequence[Change]], Awaitable[None]],
    ) -> None:
        self.name = name
        self._opened = opened
        self._take = take
        self._beginning = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self.users = 0
        self.begun: Position = START
        self.reached: Position = START
        self.fault: str | None = None  # the outage that it waits for

    @asynccontextmanager
    async def used(self) -> AsyncIterator[None]:
        """The follower starts with its first user and stops with the last. Changes that commit
        after this block was entered are passed on."""
        self.users += 1
        try:
            async with self._beginning:
                if self._task is None:
                    with principal.system("the log is read once for all who follow it"):
                        await self._begin()
            yield
        finally:
            self.users -= 1
            task = self._task
            if not self.users and task is not None:
                self._task = None
                await end_tasks(task)

    async def _begin(self) -> None:
        database = await self._opened()
        async with database.session() as session:
            self.begun = self.reached = await end(session)
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        faults = 0
        while True:
            try:
                database = await self._opened()
                changes = pages(database, self.reached, name=self.name)
                async with contextlib.aclosing(changes):
                    async for page in changes:
                        self.fault, faults = None, 0
                        if page:
                            await self._take(page)
                            self.reached = page[-1].position
            except MemoryFault as fault:
                if self.fault is None:
                    log.warning("%s wait: %s", self.name, fault.message)
                self.fault = fault.message
                faults += 1
            pause = _BACKOFF_FIRST_SECONDS * 2 ** min(faults, 8)
            await asyncio.sleep(min(pause, _BACKOFF_LIMIT_SECONDS))
