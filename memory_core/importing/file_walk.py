"""Walking: the files below a place, in a fixed order, without leaving it."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from memory_core.importing.limits import LIMITS
from memory_core.importing.roots import ImportPlace, Registry, Root
from memory_core.importing.safe_files import stamp_of
from memory_core.importing.source_ids import readable

_JUNK = {
    "node_modules", "__pycache__", "__MACOSX", "$RECYCLE.BIN", "lost+found", "Thumbs.db",
    "desktop.ini", "dovecot-uidlist", "maildirfolder",
}  # fmt: skip
MAILDIR = {"cur", "new"}
_OWN = "our own data"


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A regular file. `relative` is relative to its root, as the file system spells it."""

    root: Root
    relative: str
    size: int
    maildir: bool = False
    # Its state (`safe_files.stamp_of`).
    stamp: str = ""

    @property
    def path(self) -> str:
        return os.path.join(self.root.path, self.relative)  # noqa: PTH118 (names may be no Unicode)

    @property
    def name(self) -> PurePosixPath:
        return PurePosixPath(self.relative)


@dataclass(frozen=True, slots=True)
class SkippedPath:
    """A file or folder that is not imported, and why."""

    path: str
    reason: str
    kind: Literal["skipped", "failed"] = "skipped"
    # As ids name it, so that pruning does not take it for deleted.
    name: str = ""


def walk(
    place: ImportPlace, registry: Registry, without: Path | None = None
) -> Iterator[FoundFile | SkippedPath | Root]:
    """Walk a place of one root. A folder inside it that is a root itself switches the root.

    `without`: our own data dir, in case it is inside.
    """
    path = place.root.path / place.relative
    if is_own(path, without):
        yield _passed(place.root, place.relative, _OWN)
        return
    if place.is_file:
        try:
            status = path.lstat()
        except OSError as error:
            reason = f"cannot be read: {error.strerror}"
            yield _passed(place.root, place.relative, reason, "failed")
            return
        yield _file(place.root, place.relative, status, _holds_mail(path.parent))
        return
    start = "" if place.relative == "." else place.relative
    in_maildir = _holds_mail(path)
    yield from _Walker(registry, without).folder(place.root, start, depth=0, in_maildir=in_maildir)


class _Walker:
    def __init__(self, registry: Registry, without: Path | None) -> None:
        self._roots = {str(path): Root(name, path) for name, path in registry.paths.items()}
        self._without = str(without) if without is not None else None

    def folder(
        self, root: Root, relative: str, *, depth: int, in_maildir: bool
    ) -> Iterator[FoundFile | SkippedPath | Root]:
        path = os.path.join(root.path, relative)  # noqa: PTH118
        if path.rstrip("/") == self._without:
            yield _passed(root, relative, _OWN)
            return
        if depth > LIMITS.folder_depth:
            reason = f"nested deeper than {LIMITS.folder_depth} folders"
            yield _passed(root, relative, reason, "failed")
            return
        # A folder that is a root keeps its name, even when a folder above it is imported.
        own = self._roots.get(path)
        if own is not None and own != root:
            root, relative = own, ""
            yield own
        try:
            with os.scandir(path) as entries:
                listed = sorted(entries, key=lambda entry: os.fsencode(entry.name))
        except OSError as error:
            yield _passed(root, relative, f"cannot be listed: {error.strerror}", "failed")
            return
        is_maildir = {e.name for e in listed if e.is_dir(follow_symlinks=False)} >= MAILDIR
        for entry in listed:
            yield from self._entry(root, relative, entry, depth, is_maildir, in_maildir)

    def _entry(
        self,
        root: Root,
        folder: str,
        entry: "os.DirEntry[str]",
        depth: int,
        is_maildir: bool,
        in_maildir: bool,
    ) -> Iterator[FoundFile | SkippedPath | Root]:
        relative = f"{folder}/{entry.name}" if folder else entry.name
        if is_passed_over(entry.name) and not (is_maildir and _has_mail(entry)):
            yield _passed(root, relative, "hidden, or a program's own")
            return
        if entry.is_symlink():
            yield _passed(root, relative, "a symbolic link: not followed")
        elif entry.is_dir(follow_symlinks=False):
            if is_maildir and entry.name == "tmp":
                return
            mail = is_maildir and entry.name in MAILDIR
            yield from self.folder(root, relative, depth=depth + 1, in_maildir=mail)
        elif entry.is_file(follow_symlinks=False):
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError as error:
                yield _passed(root, relative, f"cannot be read: {error.strerror}", "failed")
                return
            yield _file(root, relative, status, in_maildir)
        else:
            yield _passed(root, relative, _reason_to_skip(entry))


def is_maildir(folder: Path) -> bool:
    return all((folder / name).is_dir() for name in MAILDIR)


def _holds_mail(folder: Path) -> bool:
    """Whether it is the cur or new of a Maildir: a walk may begin there."""
    return folder.name in MAILDIR and is_maildir(folder.parent)


def is_own(path: Path, data_dir: Path | None) -> bool:
    """Whether this is in our own data dir, where every import writes."""
    return data_dir is not None and path.is_relative_to(data_dir)


def is_passed_over(name: str) -> bool:
    """Hidden files, files that programs keep for themselves, and backups of editors."""
    return name.startswith(".") or name in _JUNK or name.endswith("~")


def _file(root: Root, relative: str, status: os.stat_result, maildir: bool) -> FoundFile:
    return FoundFile(root, relative, status.st_size, maildir, stamp_of(status))


def _passed(
    root: Root, relative: str, reason: str, kind: Literal["skipped", "failed"] = "skipped"
) -> SkippedPath:
    path = os.path.join(root.path, relative)  # noqa: PTH118
    name = f"{root.name}/{readable(relative)}" if relative else root.name
    return SkippedPath(path, reason, kind, name)


def _has_mail(entry: "os.DirEntry[str]") -> bool:
    """Whether a folder is a Maildir's subfolder: their names begin with a dot."""
    return entry.is_dir(follow_symlinks=False) and Path(entry.path, "cur").is_dir()


def _reason_to_skip(entry: "os.DirEntry[str]") -> str:
    try:
        mode = entry.stat(follow_symlinks=False).st_mode
    except OSError:
        return "not a regular file"
    for test, what in (
        (stat.S_ISFIFO, "a named pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
    ):
        if test(mode):
            return what
    return "not a regular file"
