"""Whether the disk of a data dir has enough free space: servers on a full disk crash."""

import os
import shutil
import tempfile
from pathlib import Path

from memory_core.kernel.errors import FULL_DISK, StackFault

# A new Postgres takes 60 MB, a start up to two WAL segments, and Dagster some more.
NEEDED_BYTES = 150_000_000
_PROBE_BYTES = 1_000_000


def require_room(data_dir: Path) -> None:
    """Raises a one-line StackFault if the servers would soon run out of disk."""
    place = next(folder for folder in (data_dir, *data_dir.parents) if folder.is_dir())
    free = shutil.disk_usage(place).free
    # A quota or a lack of inodes shows only when something is written.
    if free < NEEDED_BYTES or not _can_write(place):
        raise no_room(data_dir, free)


def no_room(data_dir: Path, free: int) -> StackFault:
    return StackFault(
        f"The disk is full: {free / 1e6:.0f} MB are left at {data_dir}, and the servers need "
        f"{NEEDED_BYTES / 1e6:.0f} MB. What is stored is safe. Free some space and start again, or "
        "set DATA_DIR to a larger disk.",
        details={"free_bytes": free, "needed_bytes": NEEDED_BYTES},
    )


def _can_write(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(b"\0" * _PROBE_BYTES)
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        if error.errno in FULL_DISK:
            return False
        # Another problem, such as a folder of another user, is reported where it occurs.
    return True
