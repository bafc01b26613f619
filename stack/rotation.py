"""Rotation keeps log files small while their writers run.

A child keeps its log open and cannot be told to open another. So the content is copied to a second
file and the log is emptied; the child continues to append at its beginning. Lines written between
the two steps are lost: this window is short, and occurs once per ten megabytes.
"""

import contextlib
import shutil
from pathlib import Path

LIMIT_BYTES = 10_000_000


def rotate_large(folder: Path, limit: int = LIMIT_BYTES) -> None:
    """Rotate every log of the folder that exceeds the limit; one older file of each is kept."""
    for log in folder.glob("*.log"):
        # A full disk must not stop the rotation: a log that cannot be copied is at least emptied.
        with contextlib.suppress(OSError):
            if log.stat().st_size > limit:
                _rotate(log)


def _rotate(log: Path) -> None:
    try:
        draft = log.with_suffix(".log.new")
        shutil.copyfile(log, draft)
        draft.chmod(log.stat().st_mode & 0o777)
        draft.replace(log.with_suffix(".log.1"))
    finally:
        with log.open("r+b") as file:
            file.truncate()
