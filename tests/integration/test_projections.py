"""Projections: led by one process, in batches with a checkpoint; poison is set aside."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest

from memory_core.kernel.database import Database
from memory_core.kernel.errors import ChromaUnavailable
from memory_core.kernel.settings import Settings
from memory_core.log import checkpoint, deadletters
from memory_core.log.change import Change, ChangeType, NewChange, Position, of_memory
from memory_core.log.checkpoint import Checkpoint
from memory_core.log.log_writer import append
from memory_core.log.projection import Commit
from memory_core.log.projection_wait import wait_until
from memory_core.log.runner import Runner
from memory_core.log.worker import Worker
from tests.patience import PATIENCE


class Recorder:
    """A projection that writes down what it gets, and fails where it is told to."""

    name = "recorder"
    types: frozenset[str] | None = None

    def __init__(self, *, batch: int = 16) -> None:
        self.batch = batch
        self.seen: list[str] = []
        self.batches: list[int] = []
        self.rebuilds = 0
        self.poison: set[str] = set()
        self.away = False
        self.before: Callable[[], Awaitable[None]] | None = None

    async def apply(self, changes: Sequence[Change], commit: Commit) -> None:
        if self.before is not None:
            await self.before()
        if self.away:
            raise ChromaUnavailable("Chroma does not answer.")
        names = [change.payload["memory_id"] for change in changes]
        if self.poison & set(names):
            raise ValueError(f"poison among {names}")
        async with commit():
            pass
        self.seen += names
        self.batches.append(len(names))

    async def rebuild(self) -> None:
        self.rebuilds += 1


@asynccontextmanager
async def working(database: Database, *projections: Any) -> AsyncIterator[Worker]:
    worker = Worker(database, projections)
    task = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def stored(name: str) -> NewChange:
    return of_memory(ChangeType.MEMORY_STORED, name)


async def append_each(database: Database, *names: str) -> Position:
    position = None
    for name in names:
        async with database.transaction() as session:
            [position] = await append(session, [stored(name)])
    assert position is not None
    return position


async def append_together(database: Database, *names: str) -> Position:
    async with database.transaction() as session:
        return (await append(session, [stored(name) for name in names]))[-1]


async def passed(database: Database, position: Position, name: str = "recorder") -> bool:
    return await wait_until(database, name, position, PATIENCE)


async def point_of(database: Database, name: str = "recorder") -> Checkpoint | None:
    async with database.session() as session:
        return await checkpoint.load(session, name)


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await condition():
            await asyncio.sleep(0.01)


async def is_running(database: Database) -> bool:
    point = await point_of(database)
    return point is not None and point.status == "running"


async def test_changes_arrive_in_order_and_once(database: Database) -> None:
    recorder = Recorder()
    async with working(database, recorder):
        await until(lambda: is_running(database))
        names = [f"mem_{n}" for n in range(40)]
        position = await append_each(database, *names)
        assert await passed(database, position)

    assert recorder.seen == names
    point = await point_of(database)
    assert point is not None
    assert (point.position, point.processed) == (position, 40)


async def test_a_new_projection_is_rebuilt_and_gets_only_what_comes_after(
    database: Database,
) -> None:
    """What was stored before is in Postgres: it is derived from there, not replayed."""
    await append_each(database, "mem_before")
    recorder = Recorder()
    async with working(database, recorder):
        await until(lambda: is_running(database))
        assert await passed(database, await append_each(database, "mem_after"))

    assert recorder.rebuilds == 1
    assert recorder.seen == ["mem_after"]


async def test_work_goes_on_where_the_last_worker_ended(database: Database) -> None:
    async with working(database, Recorder()):
        await until(lambda: is_running(database))
        assert await passed(database, await append_each(database, "mem_1"))
    await append_each(database, "mem_2")
    second = Recorder()
    async with working(database, second):
        assert await passed(database, await append_each(database, "mem_3"))

    assert second.seen == ["mem_2", "mem_3"]
    assert second.rebuilds == 0


async def test_one_of_several_workers_leads(database: Database) -> None:
    recorders = [Recorder() for _ in range(3)]
    async with (
        working(database, recorders[0]),
        working(database, recorders[1]),
        working(database, recorders[2]),
    ):
        await until(lambda: is_running(database))
        assert await passed(database, await append_each(database, *"abcdefgh"))

    assert sorted(len(recorder.seen) for recorder in recorders) == [0, 0, 8]


async def test_a_poison_change_is_set_aside_and_the_others_go_on(database: Database) -> None:
    recorder = Recorder()
    recorder.poison = {"mem_5"}
    names = [f"mem_{n}" for n in range(20)]
    async with working(database, recorder):
        await until(lambda: is_running(database))
        assert await passed(database, await append_together(database, *names))

    assert recorder.seen == [name for name in names if name != "mem_5"]
    async with database.session() as session:
        [letter], total = await deadletters.find(session)
    assert total == 1
    assert letter.change.payload == {"memory_id": "mem_5"}
    assert letter.retry_count == 5
    assert "poison" in letter.error_message
    assert letter.error_stacktrace is not None


async def test_a_dependency_that_is_away_is_waited_for_and_shown(database: Database) -> None:
    recorder = Recorder()
    recorder.away = True

    async def waits() -> bool:
        point = await point_of(database)
        return point is not None and point.fault is not None

    async with working(database, recorder):
        await until(lambda: is_running(database))
        position = await append_each(database, "mem_1")
        await until(waits)
        waiting = await point_of(database)
        recorder.away = False
        assert await passed(database, position)

    assert waiting is not None
    assert waiting.fault_code == "CHROMA_CONNECTION_ERROR"
    assert waiting.attempts == 0
    point = await point_of(database)
    assert point is not None
    assert point.fault is None
    assert recorder.seen == ["mem_1"]
    async with database.session() as session:
        assert await deadletters.find(session) == ([], 0)


async def test_a_process_that_dies_on_a_change_has_counted(
    database: Database, settings: Settings
) -> None:
    """As a kill -9 leaves it: begun, never finished. Here by five leaders in a row."""
    recorder = Recorder(batch=4)
    async with working(database, recorder):
        await until(lambda: is_running(database))
        assert await passed(database, await append_each(database, "mem_0"))
    position = await append_together(database, "mem_1", "mem_2")
    async with database.session() as session:
        for size in (2, 1, 1, 1, 1, 1):
            await checkpoint.lead(session, "recorder", "died")
            await checkpoint.begin(session, "recorder", "died", size)

    async with working(database, recorder):
        assert await passed(database, position)

    assert recorder.seen == ["mem_0", "mem_2"]
    async with database.session() as session:
        [letter], _ = await deadletters.find(session)
    assert letter.change.payload == {"memory_id": "mem_1"}
    assert "process ended" in letter.error_message


async def test_a_paused_projection_stands_still_and_a_resumed_one_goes_on(
    database: Database,
) -> None:
    recorder = Recorder()
    async with working(database, recorder):
        await until(lambda: is_running(database))
        async with database.session() as session:
            await checkpoint.set_status(session, "recorder", "paused")
        position = await append_each(database, "mem_1")
        assert not await wait_until(database, "recorder", position, 0.3)
        async with database.session() as session:
            await checkpoint.set_status(session, "recorder", "running")
        assert await passed(database, position)

    assert recorder.rebuilds == 1


async def test_a_rebuild_is_asked_for_while_changes_go_on(database: Database) -> None:
    recorder = Recorder()
    async with working(database, recorder):
        await until(lambda: is_running(database))
        async with database.session() as session:
            await checkpoint.set_status(session, "recorder", "rebuilding")
        await until(lambda: is_running(database))
        assert await passed(database, await append_each(database, "mem_1"))

    assert recorder.rebuilds == 2
    assert recorder.seen == ["mem_1"]


async def test_a_dead_letter_is_tried_again_when_a_person_asks(database: Database) -> None:
    recorder = Recorder()
    recorder.poison = {"mem_1"}

    async def letters(status: str) -> bool:
        async with database.session() as session:
            return (await deadletters.find(session, status=status))[1] == 1

    async with working(database, recorder):
        await until(lambda: is_running(database))
        assert await passed(database, await append_each(database, "mem_1"))
        recorder.poison = set()
        async with database.session() as session:
            assert await deadletters.retry(session, None, projection="recorder", by="alice") == 1
        await until(lambda: letters("resolved"))

    assert recorder.seen == ["mem_1"]
    async with database.session() as session:
        [letter], _ = await deadletters.find(session, status="resolved")
    assert letter.resolved_by == "alice"


async def test_a_leader_that_was_replaced_keeps_nothing_of_its_work(database: Database) -> None:
    recorder = Recorder()

    async def usurp() -> None:
        async with database.session() as session:
            await checkpoint.lead(session, "recorder", "another")
        recorder.before = None

    async with working(database, recorder):
        await until(lambda: is_running(database))
        recorder.before = usurp
        position = await append_each(database, "mem_1")
        # It leads again after a moment, since the other one holds no lock.
        assert await passed(database, position)

    assert recorder.seen == ["mem_1"]


async def test_the_worker_survives_a_restart_of_its_connection(
    database: Database, settings: Settings
) -> None:
    recorder = Recorder()
    async with working(database, recorder):
        await until(lambda: is_running(database))
        with psycopg.connect(settings.dsn, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_locks "
                "WHERE locktype = 'advisory' AND pid <> pg_backend_pid() AND database = "
                "(SELECT oid FROM pg_database WHERE datname = current_database())"
            )
        assert await passed(database, await append_each(database, "mem_1"))

    assert recorder.seen == ["mem_1"]


@pytest.mark.parametrize("wanted", [{"memory.deleted"}, None])
async def test_a_projection_passes_over_what_it_does_not_want(
    database: Database, wanted: set[str] | None
) -> None:
    recorder = Recorder()
    recorder.types = frozenset(wanted) if wanted else None
    async with working(database, recorder):
        await until(lambda: is_running(database))
        assert await passed(database, await append_each(database, "mem_1"))

    assert recorder.seen == ([] if wanted else ["mem_1"])


async def test_a_stop_that_comes_together_with_a_change_stops(database: Database) -> None:
    """Often enough that it rests in some of them: it is woken and cancelled before it has run."""
    runner = Runner(database, Recorder(), "this process")
    for _ in range(20):
        task = asyncio.create_task(runner.run())
        await until(lambda: is_running(database))
        position = await append_each(database, "mem_1")
        runner.wake()
        assert await passed(database, position)
        runner.wake()
        task.cancel()
        done, _ = await asyncio.wait({task}, timeout=PATIENCE)
        assert done, "the runner goes on"


async def test_the_worker_outlives_a_fault_that_was_not_foreseen(
    database: Database, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    async def was_logged(caplog: pytest.LogCaptureFixture) -> bool:
        return "the worker failed and will start again" in caplog.text

    recorder = Recorder()
    with psycopg.connect(settings.dsn, autocommit=True) as sql:
        sql.execute("ALTER TABLE log.cluster RENAME TO cluster_elsewhere")
        try:
            async with working(database, recorder):
                await until(lambda: was_logged(caplog))
                sql.execute("ALTER TABLE log.cluster_elsewhere RENAME TO cluster")
                await until(lambda: is_running(database))
        finally:
            sql.execute("ALTER TABLE IF EXISTS log.cluster_elsewhere RENAME TO cluster")
