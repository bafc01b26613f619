"""File locks: exclusive or shared, and gone with their holder however it dies."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from memory_core.kernel import file_locks as locks
from memory_core.kernel.file_locks import FileLock, holding
from tests.patience import PATIENCE

HOLD = """
import subprocess, sys
from pathlib import Path
from memory_core.kernel.file_locks import FileLock
lock = FileLock(Path(sys.argv[1]))
assert lock.try_acquire(shared=sys.argv[2] == "shared")
child = subprocess.Popen(["sleep", "600"])  # inherits whatever can be inherited
print(child.pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "some.lock"


@contextmanager
def another_process_holding(path: Path, kind: str) -> Iterator[subprocess.Popen[str]]:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path), kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert holder.stdout is not None
    sleeper = int(holder.stdout.readline())
    try:
        yield holder
    finally:
        with suppress(ProcessLookupError):
            os.kill(sleeper, signal.SIGKILL)
        holder.kill()
        holder.wait()
        holder.stdout.close()


class TestExclusive:
    def test_one_holder_at_a_time(self, path: Path) -> None:
        with FileLock(path) as mine, FileLock(path) as other:
            assert mine.try_acquire()
            assert not other.try_acquire()
            assert not other.try_acquire(shared=True)
            assert (mine.held, other.held) == (True, False)

    def test_released_it_can_be_taken(self, path: Path) -> None:
        with FileLock(path) as mine, FileLock(path) as other:
            assert mine.try_acquire()
            mine.release()
            assert other.try_acquire()

    def test_it_is_released_at_the_end_of_the_block(self, path: Path) -> None:
        with FileLock(path) as mine:
            assert mine.try_acquire()
        assert not mine.held
        assert not locks.is_held(path)

    def test_releasing_what_is_not_held_is_no_error(self, path: Path) -> None:
        FileLock(path).release()

    def test_waiting_for_it_ends_with_the_time_allowed(self, path: Path) -> None:
        with FileLock(path) as mine, FileLock(path) as other:
            assert mine.try_acquire()
            assert not other.acquire(timeout=0.1)

    def test_waiting_for_it_ends_when_it_is_released(self, path: Path) -> None:
        with another_process_holding(path, "exclusive") as holder, FileLock(path) as mine:
            assert not mine.try_acquire()
            assert holder.stdin is not None
            holder.stdin.close()  # it ends
            assert mine.acquire(timeout=PATIENCE)


class TestShared:
    def test_many_may_hold_it(self, path: Path) -> None:
        with FileLock(path) as one, FileLock(path) as two:
            assert one.try_acquire(shared=True)
            assert two.try_acquire(shared=True)

    def test_no_process_gets_it_alone_meanwhile(self, path: Path) -> None:
        with FileLock(path) as one, FileLock(path) as two, FileLock(path) as alone:
            assert one.try_acquire(shared=True)
            assert two.try_acquire(shared=True)
            one.release()
            assert not alone.try_acquire()
            two.release()
            assert alone.try_acquire()


class TestAsking:
    @pytest.mark.parametrize(
        ("shared", "held_exclusively", "held_at_all"), [(False, True, True), (True, False, True)]
    )
    def test_how_it_is_held(
        self, path: Path, shared: bool, held_exclusively: bool, held_at_all: bool
    ) -> None:
        with FileLock(path) as lock:
            lock.try_acquire(shared=shared)
            assert locks.is_held(path) is held_exclusively
            assert locks.is_held_shared(path) is held_at_all

    def test_no_process_holds_what_does_not_exist(self, path: Path) -> None:
        assert not locks.is_held(path)
        assert not locks.is_held_shared(path)
        assert not path.exists(), "asking must not create it"

    def test_asking_leaves_it_free(self, path: Path) -> None:
        path.touch()
        locks.is_held(path)
        locks.is_held_shared(path)
        with FileLock(path) as lock:
            assert lock.try_acquire()


class TestHolding:
    def test_says_whether_it_was_obtained(self, path: Path) -> None:
        with holding(path, timeout=0) as mine, holding(path, timeout=0) as other:
            assert (mine, other) == (True, False)

    def test_lets_go_also_after_an_error(self, path: Path) -> None:
        with pytest.raises(RuntimeError), holding(path, timeout=0):
            raise RuntimeError
        assert not locks.is_held(path)


class TestAnotherProcess:
    @pytest.mark.parametrize("kind", ["exclusive", "shared"])
    def test_it_is_seen(self, path: Path, kind: str) -> None:
        with another_process_holding(path, kind):
            assert locks.is_held_shared(path)

    @pytest.mark.parametrize("kind", ["exclusive", "shared"])
    def test_killed_it_lets_go_although_its_child_lives_on(self, path: Path, kind: str) -> None:
        with another_process_holding(path, kind) as holder:
            holder.kill()
            holder.wait()
            assert not locks.is_held_shared(path)


def test_only_its_owner_may_open_it(path: Path) -> None:
    with FileLock(path) as lock:
        lock.try_acquire()
    assert path.stat().st_mode & 0o077 == 0
