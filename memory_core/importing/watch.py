"""Watching: keeps a folder in step with the memory. First everything is imported, then each
change."""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

from watchfiles import Change, awatch

from memory_core.importing import file_walk
from memory_core.importing.roots import ImportPlace
from memory_core.kernel.timed_wait import is_set_within

log = logging.getLogger(__name__)

# Editors write in several steps; what happens within this time is one change.
DEBOUNCE_MS = 1_000
RETRY_FIRST, _RETRY_MOST = 2.0, 60.0

# Imports these places (None: all of them); returns whether it succeeded.
Sync = Callable[[list[ImportPlace] | None], Awaitable[bool]]


async def watch(
    places: list[ImportPlace],
    sync: Sync,
    stop: asyncio.Event,
    *,
    deletions: bool = False,
    without: Path | None = None,
) -> None:
    """Watch until `stop`. Watching begins before the first import, so that no change is missed.
    After a store was away, everything is imported once.

    `deletions`: also look where something was deleted, for `--prune`. `without`: our own data dir,
    which every import writes to.
    """
    changes = _changes(places, stop, deletions)
    coming = asyncio.create_task(anext(changes, None))
    try:
        await _until_done(sync, None, stop)
        while (changed := await coming) is not None and not stop.is_set():
            coming = asyncio.create_task(anext(changes, None))
            if narrowed := narrowed_to(places, changed, without):
                await _until_done(sync, narrowed, stop)
    finally:
        coming.cancel()


async def _until_done(sync: Sync, wanted: list[ImportPlace] | None, stop: asyncio.Event) -> None:
    delay = RETRY_FIRST
    while not stop.is_set() and not await sync(wanted):
        wanted = None  # it is unknown what failed, so import everything
        log.warning("not all was imported; trying again in %.0f s", delay)
        await is_set_within(stop, delay)
        delay = min(delay * 2, _RETRY_MOST)


async def _changes(
    places: list[ImportPlace], stop: asyncio.Event, deletions: bool
) -> AsyncGenerator[set[str], None]:
    folders = {
        place.root.path / (str(Path(place.relative).parent) if place.is_file else place.relative)
        for place in places
    }
    async for batch in awatch(
        *sorted(folders), debounce=DEBOUNCE_MS, stop_event=stop, watch_filter=None,
        ignore_permission_denied=True,
    ):  # fmt: skip
        changed = {path for kind, path in batch if kind is not Change.deleted}
        if deletions:
            gone = [Path(path) for kind, path in batch if kind is Change.deleted]
            changed |= {str(_left_above(path, folders)) for path in gone}
        if changed:
            yield changed


def narrowed_to(
    places: list[ImportPlace], changed: set[str], without: Path | None = None
) -> list[ImportPlace]:
    """The changed files and folders that an import would include."""
    places_by_path: dict[Path, ImportPlace] = {}
    for name in changed:
        path = Path(name)
        if file_walk.is_own(path, without):
            continue
        for place in places:
            base = place.root.path / place.relative
            if place.is_file:
                if path in (base, base.parent) and base.is_file():
                    places_by_path[base] = place
            elif path.is_relative_to(base) and (here := _visible(path, base)) is not None:
                relative = here.relative_to(place.root.path).as_posix()
                places_by_path[here] = ImportPlace(place.root, relative, is_file=here.is_file())
    return [
        place
        for path, place in places_by_path.items()
        if not any(above in places_by_path for above in path.parents)
    ]


def _visible(path: Path, base: Path) -> Path | None:
    """The path, or the folder to look at instead; None if an import would skip it."""
    folder = base
    for part in path.relative_to(base).parts:
        inner = folder / part
        # A Maildir's subfolders begin with a dot.
        if file_walk.is_passed_over(part) and not (
            file_walk.is_maildir(folder) and (inner / "cur").is_dir()
        ):
            return None
        folder = inner
    # A message is renamed whenever it is read, so the whole Maildir must be looked at.
    for inner in (path, path.parent):
        if inner.name in file_walk.MAILDIR and inner != base and file_walk.is_maildir(inner.parent):
            path = inner.parent
            break
    # Editors create and remove files of their own; a file that no longer exists needs no look.
    if path.resolve() != path or not (path.is_dir() or path.is_file()):
        return None
    return path


def _left_above(path: Path, folders: set[Path]) -> Path:
    """The nearest folder that still has files. A folder without any may be a missing disk, which is
    never pruned."""
    folder = path.parent
    while folder not in folders and folder != folder.parent and not _has_files(folder):
        folder = folder.parent
    return folder


def _has_files(folder: Path) -> bool:
    return any(names for _, _, names in os.walk(folder))
