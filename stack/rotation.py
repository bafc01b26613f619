"""Log files stay small while their writers run.

A child has its log open and cannot be told to open another. So the content is copied aside and the
file is emptied; the child appends, and goes on at the beginning. Lines written between the two are
lost, which takes a moment and one turn in ten megabytes.
"""

import contextlib
import shutil
from pathlib import Path

LIMIT_BYTES = 10_000_000


def rotate_large(folder: Path, limit: int = LIMIT_BYTES) -> None:
    """Every log of the folder that has outgrown the limit; one older piece of each is kept."""
    for log in folder.glob("*.log"):
        # A full disk must not end what is logged, and what cannot be copied is emptied at least.
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
