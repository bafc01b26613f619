"""Workers in processes of their own, killed without warning."""

import asyncio
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from memory_core.kernel.database import Database
from memory_core.kernel.settings import Settings
from memory_core.log import deadletters
from memory_core.log.change import ChangeType, Position, of_memory
from memory_core.log.checkpoint import load
from memory_core.log.log_writer import append
from memory_core.log.projection_wait import wait_until
from memory_core.log.worker import LOOK_SECONDS
from tests.patience import PATIENCE

PROJECT = Path(__file__).resolve().parents[2]
NAME = "recording"


@pytest.fixture
def recorded(settings: Settings) -> Iterator[psycopg.Connection]:
    with psycopg.connect(settings.dsn, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE recorded (n BIGINT GENERATED ALWAYS AS IDENTITY, name TEXT, pid INT)"
        )
        yield connection
        connection.execute("DROP TABLE recorded")


class Workers:
    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.recording_worker", self._dsn], cwd=PROJECT
        )
        self.processes.append(process)
        return process

    def revive(self) -> None:
        """A new one for each that has died, as a supervisor would."""
        for process in list(self.processes):
            if process.poll() is not None:
                self.processes.remove(process)
                self.start()


@pytest.fixture
def workers(settings: Settings, recorded: psycopg.Connection) -> Iterator[Workers]:
    started = Workers(settings.dsn)
    yield started
    for process in started.processes:
        process.kill()
        process.wait()


async def store(database: Database, *names: str) -> Position:
    async with database.transaction() as session:
        changes = [of_memory(ChangeType.MEMORY_STORED, name) for name in names]
        return (await append(session, changes))[-1]


async def leader(database: Database) -> int:
    """The process that leads, once one does."""
    async with asyncio.timeout(PATIENCE):
        while True:
            async with database.session() as session:
                point = await load(session, NAME)
            if point is not None and point.leader is not None and point.status == "running":
                return int(point.leader.split(":")[-2])
            await asyncio.sleep(0.02)


def names(recorded: psycopg.Connection) -> list[str]:
    return [name for (name,) in recorded.execute("SELECT name FROM recorded ORDER BY n")]


async def test_another_worker_takes_over(
    database: Database, workers: Workers, recorded: psycopg.Connection
) -> None:
    first, second = workers.start(), workers.start()
    leading = await leader(database)
    assert await wait_until(database, NAME, await store(database, "mem_1"), PATIENCE)
    # Both are up: the standby has had its first look.
    await asyncio.to_thread(_wait_for_connections, recorded, 2)

    killed = first if first.pid == leading else second
    killed.kill()
    killed.wait()
    assert await wait_until(database, NAME, await store(database, "mem_2"), PATIENCE)

    # How long that takes is up to how often a standby looks for a projection without a leader.
    assert LOOK_SECONDS <= 1
    assert names(recorded) == ["mem_1", "mem_2"]


def _wait_for_connections(recorded: psycopg.Connection, wanted: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        [found] = recorded.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'mcp-memory worker'"
        ).fetchone() or [0]
        if found >= wanted:
            return
        time.sleep(0.05)
    raise AssertionError(f"there are not {wanted} workers")


async def test_nothing_is_lost_doubled_or_out_of_order_when_workers_are_killed_at_random(
    database: Database, workers: Workers, recorded: psycopg.Connection
) -> None:
    chance = random.Random(7)
    workers.start()
    workers.start()
    await leader(database)
    wanted = [f"mem_{n}" for n in range(150)]
    position = None
    for n, name in enumerate(wanted):
        position = await store(database, name)
        if n % 30 == 15:
            chance.choice(workers.processes).kill()
        if n % 10 == 0:
            workers.revive()
    workers.revive()
    assert position is not None

    assert await wait_until(database, NAME, position, PATIENCE)
    assert names(recorded) == wanted


async def test_a_change_that_kills_every_worker_is_set_aside(
    database: Database, workers: Workers, recorded: psycopg.Connection
) -> None:
    workers.start()
    await leader(database)
    position = await store(database, "mem_1", "mem_2", "mem_death", "mem_3", "mem_4")

    async with asyncio.timeout(120):
        while not await wait_until(database, NAME, position, 0.2):
            workers.revive()

    assert names(recorded) == ["mem_1", "mem_2", "mem_3", "mem_4"]
    async with database.session() as session:
        [letter], _ = await deadletters.find(session)
    assert letter.change.payload == {"memory_id": "mem_death"}
    assert "process ended" in letter.error_message
