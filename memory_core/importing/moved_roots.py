"""Moved folders: a folder is recognised by its files, under another path or name.

A sample of the documents of a vanished root is compared: the same paths below it, with the same
bytes where the cache has their hashes.
"""

import asyncio
import hashlib
import os
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from memory_core.importing import safe_files, source_ids
from memory_core.importing.file_cache import digests, key_of
from memory_core.importing.file_presence import FilePresence
from memory_core.importing.file_walk import is_passed_over
from memory_core.importing.item import Unusable
from memory_core.importing.limits import LIMITS
from memory_core.importing.roots import Registry, Root
from memory_core.runtime import Runtime

_SAMPLE = 200
# The share of the sample that must match.
_MOST = 0.5
# A few common files, such as a licence, must not make a large folder look like a small one.
_LARGER = 4


@dataclass(frozen=True, slots=True)
class Likeness:
    """How many of a root's documents have a file at their path, and how many have the same
    bytes."""

    documents: int = 0
    there: int = 0
    same: int = 0
    changed: int = 0

    @property
    def is_proved(self) -> bool:
        return self.documents > 0 and self.same >= self.documents * _MOST

    @property
    def is_likely(self) -> bool:
        """The cache has no hashes of mailboxes and chats, so their paths must be enough."""
        return self.documents > 0 and self.there - self.changed >= self.documents * _MOST


async def likeness(runtime: Runtime, name: str, folder: Path) -> Likeness:
    """Compare the documents stored under a root's name with the files of a folder."""
    async with runtime.database.session() as session:
        prefix = source_ids.address(name, "") + "/"
        urls = await session.values(str, "sample_imported", prefix=prefix, limit=_SAMPLE)
    names = {source_ids.path_of(url) for url in urls}
    return await asyncio.to_thread(_compare, runtime.settings.data_dir, name, folder, names)


async def recognise(runtime: Runtime, registry: Registry, folder: Path) -> tuple[Root, bool] | None:
    """The vanished root that this folder is, and whether that is proved; None if there is none."""
    likely: Root | None = None
    best: tuple[int, Root] | None = None
    for name, path in sorted(registry.paths.items()):
        if path.is_dir():
            continue
        like = await likeness(runtime, name, folder)
        if like.is_proved and not _is_much_larger(folder, like):
            if best is None or like.same > best[0]:
                best = (like.same, Root(name, folder))
        elif like.is_likely and (likely is None or name == folder.name):
            likely = Root(name, folder)
    if best is not None:
        return best[1], True
    return (likely, False) if likely is not None else None


def _compare(data_dir: Path, name: str, folder: Path, names: set[str]) -> Likeness:
    disk = FilePresence({name: folder})
    there = [path for path in names if disk.at(path)]
    if len(there) < len(names) * _MOST:
        return Likeness(len(names), len(there))
    digests_by_path = digests(data_dir, name)
    relatives = [path.removeprefix(f"{name}/") for path in there]
    equal = [
        digests_by_path[key] in {_digest(folder, form) for form in _forms(relative)}
        for relative in relatives
        if (key := key_of(relative)) in digests_by_path
    ]
    return Likeness(len(names), len(there), equal.count(True), equal.count(False))


def _forms(relative: str) -> set[str]:
    """The spellings of a path: macOS and Linux encode accents differently."""
    return {relative, unicodedata.normalize("NFD", relative)}


def _digest(folder: Path, relative: str) -> str | None:
    made = hashlib.sha256()
    try:
        with safe_files.opened(str(folder), relative) as descriptor:
            safe_files.refuse_size(os.fstat(descriptor).st_size, LIMITS.packed_bytes)
            while part := os.read(descriptor, 1 << 20):
                made.update(part)
    except (Unusable, OSError):
        return None
    return made.hexdigest()


def _is_much_larger(folder: Path, like: Likeness) -> bool:
    if like.documents == _SAMPLE:  # the size of the whole root is unknown
        return False
    most = like.documents * _LARGER
    return sum(1 for _ in islice(_files(folder), most + 1)) > most


def _files(folder: Path) -> Iterator[str]:
    for _, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not is_passed_over(name)]
        yield from (name for name in names if not is_passed_over(name))
