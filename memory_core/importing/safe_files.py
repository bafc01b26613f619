"""Opening files safely: no links are followed, no pipes or devices opened."""

import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from memory_core.importing.item import Skip, Unusable

_NOFOLLOW = os.O_NOFOLLOW | os.O_CLOEXEC
_ATTEMPTS = 3
HEAD_BYTES = 4_096
# For this long after a change, a second change may leave the same times. File systems round times
# to up to two seconds, and notice writes through a memory mapping only when the pages go to disk,
# after half a minute.
SETTLED_NS = 60_000_000_000
CHANGES = "changes while it is read: import it again when its writer has finished"


class FileContent(NamedTuple):
    """A file's bytes at one moment, and a stamp that shows whether it has changed. The stamp is ""
    if the file was written so recently that a later change might leave the same stamp."""

    data: bytes
    stamp: str


def stamp_of(status: os.stat_result) -> str:
    """A stamp that changes with the file's bytes: no program can set the ctime in it."""
    times = f"{status.st_mtime_ns}:{status.st_ctime_ns}"
    return f"{status.st_size}:{times}:{status.st_ino}"


def lasting_stamp(status: os.stat_result, begun: int) -> str:
    """The stamp of a file that was read from `begun` on; "" as in `FileContent`."""
    youngest = max(status.st_mtime_ns, status.st_ctime_ns)
    return stamp_of(status) if youngest + SETTLED_NS < begun else ""


@contextmanager
def opened(root: str, relative: str) -> Iterator[int]:
    """A descriptor of a regular file below `root`, opened folder by folder, so that a folder that
    was replaced by a link is noticed. O_NONBLOCK: opening a pipe must not wait for a writer."""
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        *folders, name = relative.split("/")
        for part in folders:
            _refuse_upwards(part)
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | _NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        _refuse_upwards(name)
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | _NOFOLLOW, dir_fd=folder)
    except OSError as error:
        raise Unusable(f"cannot be opened: {error.strerror}") from error
    finally:
        os.close(folder)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Skip("not a regular file")
        yield descriptor
    finally:
        os.close(descriptor)


def read(root: str, relative: str, limit: Callable[[bytes], int]) -> FileContent:
    """The whole file at one moment. A file that changes while it is read is read again.

    `limit` gives the allowed size from the first bytes.
    """
    for _ in range(_ATTEMPTS):
        begun = time.time_ns()
        with opened(root, relative) as descriptor:
            before = os.fstat(descriptor)
            start = read_all(descriptor, HEAD_BYTES)
            most = limit(start)
            refuse_size(before.st_size, most)
            data = start + read_all(descriptor, most + 1 - len(start))
            if same(before, os.fstat(descriptor)) and len(data) == before.st_size:
                return FileContent(data, lasting_stamp(before, begun))
    raise Unusable(CHANGES)


def refuse_size(size: int, limit: int) -> None:
    if size > limit:
        raise Skip(
            f"too large: {size / 1e6:,.1f} MB, at most {limit / 1e6:,.0f} MB. Split it, or leave "
            "it out"
        )


def read_all(descriptor: int, limit: int) -> bytes:
    parts: list[bytes] = []
    left = limit
    try:
        while left > 0 and (part := os.read(descriptor, min(left, 1 << 20))):
            parts.append(part)
            left -= len(part)
    except OSError as error:
        raise Unusable(f"cannot be read: {error.strerror}") from error
    return b"".join(parts)


def same(before: os.stat_result, after: os.stat_result) -> bool:
    return (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)


def _refuse_upwards(part: str) -> None:
    if part in ("..", "/", ""):
        raise Unusable("leads out of the folder")
