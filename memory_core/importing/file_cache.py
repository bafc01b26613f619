"""A cache of file contents, so that unchanged files are neither read nor parsed again.

Postgres says what is stored; losing this cache only costs time. It contains only hashes, even of
paths, so that a deleted document is not named here.
"""

import hashlib
import json
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from memory_core.importing import formats
from memory_core.importing.source_ids import readable
from memory_core.kernel.file_locks import FileLock

log = logging.getLogger(__name__)

_LOCK_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class KnownItem:
    """An item, identified by its id and its content. `source_id` is None if the file was not read
    now."""

    uid: str
    content_hash: str
    source_id: str | None = None


class _CachedFile(NamedTuple):
    digest: str  # "" for a mailbox
    # None: other options, or another version, parsed it differently. Its bytes are still known.
    items: Sequence[tuple[str, str]] | None
    # The state of the file when it was read (`safe_files.stamp_of`).
    stamp: str = ""

    @property
    def cached(self) -> list[KnownItem] | None:
        return None if self.items is None else [KnownItem(*item) for item in self.items]


class FileCache:
    def __init__(self, data_dir: Path, root: str, options: str) -> None:
        """`options`: all other settings that decide how a file is parsed."""
        self._file = _file(data_dir, root)
        _named_file(data_dir, root).unlink(missing_ok=True)
        self._label = f"{formats.VERSION} {options}"
        self._files = self._load()
        self._noted: dict[str, _CachedFile] = {}

    def recall(self, relative: str, digest: str) -> list[KnownItem] | None:
        """The items of a file with these bytes."""
        entry = self._files.get(key_of(relative))
        return entry.cached if entry is not None and entry.digest == digest else None

    def recall_unread(self, relative: str, stamp: str) -> list[KnownItem] | None:
        """The items of a file whose state has not changed since it was read."""
        entry = self._files.get(key_of(relative))
        return entry.cached if entry is not None and stamp and entry.stamp == stamp else None

    def note(self, relative: str, digest: str, items: list[KnownItem], stamp: str = "") -> None:
        if not items or not _is_plain(relative):
            return
        hashes = [(item.uid, item.content_hash) for item in items]
        key = key_of(relative)
        self._files[key] = self._noted[key] = _CachedFile(digest, hashes, stamp)

    def save(self) -> None:
        """Write the cache, and keep the entries that another import has added meanwhile."""
        if not self._noted:
            return
        temporary = self._file.with_suffix(f".{os.getpid()}")
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with FileLock(self._file.with_suffix(".lock")) as lock:
                if not lock.acquire(timeout=_LOCK_SECONDS):
                    raise TimeoutError("another import writes there")
                content = {"label": self._label, "files": {**self._load(), **self._noted}}
                temporary.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
                temporary.replace(self._file)
        except OSError as error:  # for example a full disk: the next import parses the files again
            log.warning("what was read is not remembered in %s: %s", self._file, error)
        self._noted = {}

    def _load(self) -> dict[str, _CachedFile]:
        label, files = _read(self._file)
        if label == self._label:
            return files
        return {key: _CachedFile(entry.digest, None) for key, entry in files.items()}


def digests(data_dir: Path, root: str) -> dict[str, str]:
    """The hashes of a root's files, by `key_of` their path."""
    _, files = _read(_file(data_dir, root))
    return {key: digest for key, (digest, *_) in files.items() if digest}


def key_of(relative: str) -> str:
    """The hashed form of a path."""
    return hashlib.sha256(readable(relative).encode()).hexdigest()[:32]


def _file(data_dir: Path, root: str) -> Path:
    return _named_file(data_dir, root).with_suffix(".hashes.json")


def _named_file(data_dir: Path, root: str) -> Path:
    """The file that earlier versions wrote, with paths in plain text."""
    name = hashlib.sha256(root.encode()).hexdigest()[:16]
    return data_dir / "imports" / f"{name}.json"


def _read(file: Path) -> tuple[str, dict[str, _CachedFile]]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        return str(content["label"]), {
            key: _CachedFile(str(digest), _items(items), *map(str, more))
            for key, (digest, items, *more) in content["files"].items()
            if _is_plain(key)
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return "", {}


def _items(listed: Any) -> list[tuple[str, str]] | None:
    """The items; None if they are damaged."""
    items = [(uid, content_hash) for uid, content_hash in listed or []]
    is_whole = all(isinstance(value, str) and _is_plain(value) for item in items for value in item)
    return items if items and is_whole else None


def _is_plain(text: str) -> bool:
    """Whether Postgres and our own files can store it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text
