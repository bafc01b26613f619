"""Webhooks while the worker is killed and Postgres restarted at random: nothing is lost."""

import asyncio
import random
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psycopg
import pytest

from memory_core.kernel import migrations
from memory_core.kernel.database import Database
from memory_core.kernel.errors import PostgresUnavailable
from memory_core.log.change import ChangeType, of_memory
from memory_core.log.log_writer import append
from memory_core.webhooks import subscriptions
from memory_core.webhooks.subscriptions import Subscription
from stack.postgres import EmbeddedPostgres, identity
from tests.integration.failing_servers import Server, until
from tests.patience import PATIENCE
from tests.webhook_receiver import Answer, Received, Receiver

PROJECT = Path(__file__).resolve().parents[2]
OUTBOX_BYTES = 4_000_000


@pytest.fixture(scope="module")
def postgres() -> Iterator[tuple[Server, str]]:
    # Not in pytest's own folder: a second pytest would close it to the account of Postgres.
    with tempfile.TemporaryDirectory(prefix="memory-tests-") as folder:
        yield from _postgres(Path(folder) / "postgres")


def _postgres(folder: Path) -> Iterator[tuple[Server, str]]:
    embedded = EmbeddedPostgres(folder)
    embedded.prepare()

    def ready() -> bool:
        with psycopg.connect(embedded.dsn) as connection:
            return connection.execute("SELECT 1").fetchone() is not None

    server = Server(embedded.command(), ready, cwd="/", **identity(embedded.account))
    server.start()
    asyncio.run(server.ready())
    migrations.apply(embedded.dsn)
    yield server, embedded.dsn
    server.stop(signal.SIGQUIT)


@pytest.fixture
async def database(postgres: tuple[Server, str]) -> AsyncIterator[Database]:
    database = Database(postgres[1])
    await database.open()
    yield database
    await database.close()


class MortalWorker:
    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._process: subprocess.Popen[bytes] | None = None
        self.kills = 0

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.webhook_worker", self._dsn],
            cwd=PROJECT,
            stderr=subprocess.DEVNULL,
        )

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self.kills += 1


async def write(database: Database, number: int) -> None:
    """Each change until it is committed. One whose commit was not heard of may be there twice."""
    for n in range(number):
        while True:
            try:
                async with database.transaction() as session:
                    await append(session, [of_memory(ChangeType.MEMORY_STORED, f"mem_{n}")])
                break
            except PostgresUnavailable:
                await asyncio.sleep(0.05)


async def disturb(worker: MortalWorker, server: Server, receiver: Receiver, times: int) -> None:
    """Kill the worker, then Postgres, then the worker…, each once some more messages have come."""
    dice = random.Random(7)
    for turn in range(times):
        enough = len(receiver.received) + dice.randrange(5, 40)
        await until(lambda enough=enough: len(receiver.received) >= enough)
        if turn % 3 == 2:
            server.stop(dice.choice([signal.SIGQUIT, signal.SIGINT]))
            server.start()
            await server.ready()
        else:
            worker.kill()
            worker.start()


def answers(dice: random.Random) -> Iterator[Answer]:
    """Now and then the connection ends before the answer: the message comes again."""
    while True:
        yield Answer(drop=dice.random() < 0.02)


def changes_made(sql: psycopg.Connection) -> set[str]:
    return {str(id_) for (id_,) in sql.execute("SELECT event_id FROM log.events")}


def told(receiver: Receiver, to: Subscription) -> dict[str, set[str]]:
    """The ids of the messages that told of each change."""
    received = defaultdict(set)
    for one in receiver.received:
        received[_change(one, to)].add(one.id)
    return received


def _change(one: Received, to: Subscription) -> str:
    return str(one.verified(to.secret)["data"]["change_id"])


@pytest.mark.parametrize(
    ("changes", "times"),
    [(150, 4), pytest.param(1_000, 18, marks=pytest.mark.slow)],
    ids=["some", "a thousand"],
)
async def test_every_change_is_told_and_a_repetition_has_the_same_id(
    postgres: tuple[Server, str], database: Database, changes: int, times: int
) -> None:
    server, dsn = postgres
    worker = MortalWorker(dsn)
    with Receiver() as receiver:
        script = answers(random.Random(3))
        receiver.decide = lambda _: next(script)
        async with database.transaction() as session:
            to = await subscriptions.add(
                session, receiver.url, ["memory.stored"], allow_private=True
            )
        with psycopg.connect(dsn, autocommit=True) as sql:
            before = changes_made(sql)
        worker.start()
        try:
            disturbing = asyncio.create_task(disturb(worker, server, receiver, times))
            await write(database, changes)
            await disturbing
            with psycopg.connect(dsn, autocommit=True) as sql:
                await _until_empty(sql)
                made = changes_made(sql) - before
                [size] = sql.execute(
                    "SELECT pg_total_relation_size('log.event_outbox')"
                ).fetchone() or [0]
                sql.execute("DELETE FROM log.webhook_subscriptions")
        finally:
            worker.kill()

    received = told(receiver, to)
    assert len(made) >= changes
    assert made <= set(received), "a change was never told"
    assert all(len(ids) == 1 for ids in received.values()), "a message came with another id"
    assert size < OUTBOX_BYTES
    print(
        f"{changes} changes, {worker.kills} kills, {times // 3} restarts of Postgres: "
        f"{len(receiver.received)} messages, outbox {size:,} bytes"
    )


async def _until_empty(sql: psycopg.Connection) -> None:
    """What was put off, for minutes when it failed twice, is made due."""
    async with asyncio.timeout(PATIENCE):
        while sql.execute("SELECT 1 FROM log.event_outbox LIMIT 1").fetchone():
            sql.execute(
                "UPDATE log.event_outbox SET next_attempt_at = now() WHERE leased_by IS NULL"
            )
            sql.execute("UPDATE log.webhook_subscriptions SET not_before = NULL")
            sql.execute("NOTIFY memory_log")
            await asyncio.sleep(0.2)
