"""A migration that takes longer than a start may: commands wait for it and say so."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from memory_core.kernel import migrations
from memory_core.kernel.errors import StackFault
from memory_core.kernel.file_locks import holding
from memory_core.kernel.settings import Settings
from stack import stack_state
from stack.connection import START_SECONDS, connected
from stack.layout import Layout
from stack.stack_state import StackState
from stack.supervisor import WAITING_FOR_ANOTHER
from tests.patience import PATIENCE

SLOW = "044_due_time.sql"
BEFORE = 42


class Clock:
    """Hurried, it goes ahead by some seconds whenever it is looked at."""

    STEP = 10.0

    def __init__(self) -> None:
        self.hurried = False
        self.ahead = 0.0
        self.far_ahead = threading.Event()

    def monotonic(self) -> float:
        if self.hurried:
            self.ahead += self.STEP
            if self.ahead > 10 * START_SECONDS:
                self.far_ahead.set()
        return time.monotonic() + self.ahead


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of the deadlines for a start."""
    clock = Clock()
    monkeypatch.setattr("stack.start_deadline.time", clock)
    return clock


@pytest.fixture
def old(own_database: str, tmp_path: Path) -> Settings:
    """A memory of an earlier version."""
    migrations.apply(own_database, migrations.shipped()[:BEFORE])
    return Settings(_env_file=None, data_dir=tmp_path / "data", events_db_dsn=own_database)


@contextmanager
def held_up(old: Settings) -> Iterator[None]:
    """The slow migration waits for a reader of its table."""
    with psycopg.connect(old.dsn) as reader:
        reader.execute("LOCK TABLE semantic_event IN ACCESS SHARE MODE")
        yield


def start(old: Settings) -> list[str]:
    """What the memory lacks after a start."""
    with connected(old) as resolved:
        return migrations.pending(resolved.dsn)


def migrating(old: Settings) -> StackState:
    """The stack, when it has said what it is at."""
    deadline = time.monotonic() + PATIENCE
    while True:
        stack = stack_state.running(Layout(old.data_dir))
        if stack is not None and stack.migrating is not None:
            return stack
        assert time.monotonic() < deadline, "no migration was announced"
        time.sleep(0.05)


def test_commands_wait_as_long_as_it_takes_and_say_why(
    old: Settings, clock: Clock, capfd: pytest.CaptureFixture[str]
) -> None:
    with ThreadPoolExecutor(2) as pool:
        with held_up(old):
            first = pool.submit(start, old)
            assert migrating(old).migrating == SLOW
            # The second one waits for the first, which starts the services.
            second = pool.submit(start, old)
            clock.hurried = True
            assert clock.far_ahead.wait(PATIENCE)
            clock.hurried = False
            assert not first.done()
            assert not second.done()
        assert (first.result(PATIENCE), second.result(PATIENCE)) == ([], [])
    said = migrations.notice(SLOW)
    assert capfd.readouterr().err.count(said) == 2
    assert said in Layout(old.data_dir).log_of("services").read_text()


def test_while_another_process_migrates_commands_wait_too(old: Settings, clock: Clock) -> None:
    with ThreadPoolExecutor(2) as pool:
        with held_up(old):
            has_begun = threading.Event()
            other = pool.submit(migrations.apply, old.dsn, begins=lambda _: has_begun.set())
            assert has_begun.wait(PATIENCE)
            begun = pool.submit(start, old)
            assert migrating(old).migrating == WAITING_FOR_ANOTHER
            clock.hurried = True
            assert clock.far_ahead.wait(PATIENCE)
            clock.hurried = False
        assert SLOW in other.result(PATIENCE)
        assert begun.result(PATIENCE) == []


def test_without_a_migration_the_time_runs(old: Settings, clock: Clock) -> None:
    layout = Layout(old.data_dir)
    layout.create()
    clock.hurried = True
    with (
        holding(layout.transition_lock, timeout=0),
        pytest.raises(StackFault, match="Another command has been starting the services"),
    ):
        start(old)


def test_a_start_that_is_killed_meanwhile_is_made_up_for_by_the_next(old: Settings) -> None:
    with ThreadPoolExecutor(1) as pool:
        with held_up(old):
            killed: Future[list[str]] = pool.submit(start, old)
            os.kill(migrating(old).pid, signal.SIGKILL)
            with pytest.raises(StackFault):
                killed.result(PATIENCE)
        assert migrations.pending(old.dsn)[0] == SLOW
        assert start(old) == []


def test_a_memory_that_is_up_to_date_says_nothing(
    old: Settings, capfd: pytest.CaptureFixture[str]
) -> None:
    migrations.apply(old.dsn)
    assert start(old) == []
    assert "Migrating" not in capfd.readouterr().err
