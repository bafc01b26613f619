"""Folders for Unix sockets: private, and with paths that are short enough for the kernel."""

import contextlib
import hashlib
import os
import stat
import tempfile
from pathlib import Path

from memory_core.kernel.errors import StackFault

# 108 bytes on Linux, 104 elsewhere, including the NUL at the end.
_MAX_PATH_BYTES = 103


def folder(preferred: Path, longest_name: str) -> Path:
    """`preferred`, or a short folder if a socket's path would be too long there.

    It is always the same for one data dir, so that clients find a restarted server again.
    """
    if len(os.fsencode(preferred / longest_name)) <= _MAX_PATH_BYTES:
        return preferred
    name = hashlib.sha256(os.fsencode(preferred)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"mcp-memory-{os.getuid()}-{name}"


def make_private(folder: Path, owner: tuple[int, int] | None = None) -> None:
    """Create the folder, private to `owner` (uid, gid), which is our own account by default.

    Its name can be guessed: a folder that another user created there, or a link, is refused.
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
