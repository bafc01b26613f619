"""Folders for Unix sockets: private, and with paths that the kernel takes."""

import contextlib
import hashlib
import os
import stat
import tempfile
from pathlib import Path

from memory_core.kernel.errors import StackFault

# 108 bytes on Linux, 104 elsewhere, with the NUL at the end.
_MAX_PATH_BYTES = 103


def folder(beside: Path, longest_name: str) -> Path:
    """`beside`, or a short folder of its own when a socket's path would be too long there.

    Always the same for one data dir, so that clients find a restarted server again.
    """
    if len(os.fsencode(beside / longest_name)) <= _MAX_PATH_BYTES:
        return beside
    name = hashlib.sha256(os.fsencode(beside)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"mcp-memory-{os.getuid()}-{name}"


def make_private(folder: Path, owner: tuple[int, int] | None = None) -> None:
    """Make the folder, private to `owner` (uid, gid), which is our own account by default.

    Its name can be guessed: one that another user made there, or a link, is refused.
    """
    uid, gid = owner or (os.getuid(), os.getgid())
    folder.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid not in (uid, os.getuid()):
        raise StackFault(
            f"{folder} is needed for the sockets of the stack, but it is a link or belongs to "
            "another user. Remove it, or choose another DATA_DIR."
        )
    if status.st_uid != uid:
        os.chown(folder, uid, gid, follow_symlinks=False)
    folder.chmod(0o700)
