"""Roots: the registered names of folders, so that documents keep their ids.

A document's id consists of the name of its root and its path below it. So a folder can be moved,
and two folders of the same name are never confused:

- a path inside an imported folder belongs to that folder (the deepest one);
- otherwise the folder's own name is used, or the one that `--source` gives;
- a folder with the files of a vanished one was moved or renamed, and keeps the name;
- a name that belongs to another folder is refused.

The paths of roots are specific to this machine, and are stored in DATA_DIR.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_core.kernel.errors import ConfigurationFault, Conflict, InvalidInput
from memory_core.kernel.file_locks import FileLock

_LOCK_SECONDS = 10.0
_NAME_CHARS = 100


@dataclass(frozen=True, slots=True)
class Root:
    name: str
    path: Path  # resolved


@dataclass(frozen=True, slots=True)
class ImportPlace:
    """A requested folder or file below a root. `relative` is "." for the root itself."""

    root: Root
    relative: str
    is_file: bool


class Registry:
    def __init__(self, data_dir: Path) -> None:
        self._file = data_dir / "imports.json"
        self._lock = data_dir / "imports.lock"
        self.paths: dict[str, Path] = self._load()

    def root_at(self, path: Path) -> Root | None:
        """The root at exactly this path."""
        for name, registered in self.paths.items():
            if registered == path:
                return Root(name, registered)
        return None

    def root_above(self, path: Path) -> Root | None:
        """The deepest root that contains this folder."""
        for folder in (path, *path.parents):
            if root := self.root_at(folder):
                return root
        return None

    def remember(self, root: Root, *, save: bool = True) -> None:
        """Register a root. Roots inside a folder that moved have moved with it."""
        if self.paths.get(root.name) == root.path:
            return
        if not save:
            self.paths = _with(self.paths, root)
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self._lock) as lock:
            if not lock.acquire(timeout=_LOCK_SECONDS):
                raise Conflict("Another import keeps DATA_DIR/imports.lock: try again.")
            current = self._load()
            elsewhere = current.get(root.name)
            if elsewhere not in (None, root.path, self.paths.get(root.name)):
                raise taken(root.name, elsewhere)
            current = _with(current, root)
            content = {"roots": {name: str(path) for name, path in sorted(current.items())}}
            temporary = self._file.with_suffix(f".{os.getpid()}")
            temporary.touch(mode=0o600)
            temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
            temporary.replace(self._file)
            self.paths = current

    def _load(self) -> dict[str, Path]:
        try:
            content: Any = json.loads(self._file.read_text(encoding="utf-8"))
            return {str(name): Path(path) for name, path in content["roots"].items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigurationFault(
                f"{self._file} cannot be read ({type(error).__name__}). It says which folder has "
                "which name. Restore it, or delete it and name your folders with --source."
            ) from error


def locate(
    registry: Registry, path: Path, source: str | None, within: Path | None = None
) -> ImportPlace:
    """The place of a path given by a person. Nothing is registered yet, and the name of a new root
    is not final.

    `within`: the folder that ids should be relative to if no root is known (default: the folder
    itself, or the one that contains the file).
    """
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise InvalidInput(f"{path} cannot be found: nothing was imported.") from error
    if not real.is_dir() and not real.is_file():
        raise InvalidInput(f"{path} is neither a folder nor a regular file: nothing was imported.")
    folder = real if real.is_dir() else real.parent
    root = _named(registry, folder, source) if source else registry.root_above(folder)
    if root is None:
        base = within if within is not None and real.is_relative_to(within) else folder
        root = Root(check_name(base.name or "root"), base)
    return ImportPlace(root, real.relative_to(root.path).as_posix(), is_file=not real.is_dir())


def settled(place: ImportPlace, registry: Registry) -> ImportPlace:
    """A place inside a nested root belongs to the inner root."""
    path = place.root.path / place.relative
    inner = registry.root_above(path.parent if place.is_file else path)
    if inner is None or len(inner.path.parts) <= len(place.root.path.parts):
        return place
    return ImportPlace(inner, path.relative_to(inner.path).as_posix(), place.is_file)


def _named(registry: Registry, folder: Path, source: str) -> Root:
    name = check_name(source)
    registered = registry.paths.get(name)
    if registered is not None and registered != folder and registered.is_dir():
        if folder.is_relative_to(registered):
            return Root(name, registered)
        raise taken(name, registered)
    return Root(name, folder)


def _with(paths: dict[str, Path], root: Root) -> dict[str, Path]:
    before = paths.get(root.name)
    roots = {**paths, root.name: root.path}
    for name, path in paths.items():
        if before is None or path == before or not path.is_relative_to(before) or path.is_dir():
            continue
        there = root.path / path.relative_to(before)
        if there.is_dir():
            roots[name] = there
    return roots


def check_name(name: str) -> str:
    bare = name.strip()
    if not bare or "/" in bare or len(bare) > _NAME_CHARS or not bare.isprintable():
        raise InvalidInput(
            f"{name!r} cannot be the name of a source: give 1 to {_NAME_CHARS} printable "
            "characters without a slash, with --source NAME."
        )
    return bare


def taken(name: str, path: Path | None) -> Conflict:
    return Conflict(
        f"Documents named {name!r} come from {path}, which still exists: their ids would mix with "
        "those of this folder. Nothing was imported. Give this folder a name of its own with "
        "--source NAME."
    )
