"""The worker in the process of a command: starts with its first change, and comes to the end."""

import asyncio
import math
from collections.abc import Sequence

from memory_core.kernel.database import Database
from memory_core.kernel.errors import ChromaUnavailable
from memory_core.log import checkpoint
from memory_core.log.change import Change, ChangeType, of_memory
from memory_core.log.host import Host
from memory_core.log.lag import Lag, read_lags
from memory_core.log.log_writer import append
from memory_core.log.projection import Commit
from tests.patience import PATIENCE


class Slow:
    name = "slow"
    types = None
    batch = 2
    away = False

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def apply(self, changes: Sequence[Change], commit: Commit) -> None:
        if self.away:
            raise ChromaUnavailable("Chroma does not answer.")
        await asyncio.sleep(0.01)
        async with commit():
            self.seen += [change.payload["memory_id"] for change in changes]

    async def rebuild(self) -> None:
        return None


async def lags_of_slow(database: Database) -> list[Lag]:
    """Other tests of this session may have projections of their own."""
    return [lag for lag in await read_lags(database) if lag.point.name == Slow.name]


async def store(database: Database, *names: str) -> None:
    for name in names:
        async with database.transaction() as session:
            await append(session, [of_memory(ChangeType.MEMORY_STORED, name)])


async def test_a_process_that_changes_nothing_hosts_nothing(database: Database) -> None:
    host = Host(database, lambda: [Slow()])
    database.on_append.append(host.start)

    async with database.session() as session:
        await session.run("ping")
    await host.finish()

    assert await lags_of_slow(database) == []


async def test_the_end_of_the_log_is_reached_before_the_process_ends(database: Database) -> None:
    slow = Slow()
    host = Host(database, lambda: [slow], patience=PATIENCE)
    database.on_append.append(host.start)
    names = [f"mem_{n}" for n in range(12)]

    await store(database, *names)
    await host.finish()

    # What was stored before the projection's first start is left to its rebuilding.
    assert slow.seen == names[len(names) - len(slow.seen) :]
    [lag] = await lags_of_slow(database)
    assert (lag.changes, lag.is_led, lag.point.status) == (0, False, "running")


async def test_a_process_does_not_wait_for_what_is_away(database: Database) -> None:
    slow = Slow()
    host = Host(database, lambda: [slow], patience=math.inf)
    database.on_append.append(host.start)
    await store(database, "mem_0")
    await host.finish()

    slow.away = True
    await store(database, "mem_1")
    async with asyncio.timeout(PATIENCE):
        await host.finish()

    async with database.session() as session:
        point = await checkpoint.load(session, "slow")
    assert point is not None
    assert point.fault_code == "CHROMA_CONNECTION_ERROR"
    [lag] = await lags_of_slow(database)
    assert lag.changes == 1
