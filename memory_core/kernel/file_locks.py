"""File locks that the kernel releases when their holder dies, however it dies."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from memory_core.kernel.errors import StackFault

_POLL_SECONDS = 0.05


class FileLock:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None

    @property
    def held(self) -> bool:
        return self._fd is not None

    def try_acquire(self, *, shared: bool = False) -> bool:
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        # Children must not inherit the lock: it would outlive its holder.
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except PermissionError as error:
            raise StackFault(
                f"{self._path} belongs to another user. Set DATA_DIR to a directory of your own."
            ) from error
        try:
            fcntl.flock(fd, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return False
        self._fd = fd
        return True

    def acquire(self, *, shared: bool = False, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        while not self.try_acquire(shared=shared):
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def release(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


@contextmanager
def holding(path: Path, *, timeout: float) -> Iterator[bool]:
    """Hold the lock for a block; yields whether it was obtained in time."""
    with FileLock(path) as lock:
        yield lock.acquire(timeout=timeout)


def is_held(path: Path) -> bool:
    """Whether a process holds the lock exclusively now."""
    if not path.exists():
        return False
    with FileLock(path) as probe:
        return not probe.try_acquire(shared=True)


def is_held_shared(path: Path) -> bool:
    """Whether any process holds the lock now, shared or not."""
    if not path.exists():
        return False
    with FileLock(path) as probe:
        return not probe.try_acquire()
