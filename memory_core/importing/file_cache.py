"""What is remembered of files, so that unchanged ones are neither read nor parsed again.

Only a cache: Postgres says what is stored. Losing it costs time.
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
from memory_core.kernel.file_locks import FileLock

log = logging.getLogger(__name__)

_LOCK_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Known:
    """An item by what identifies it and its content."""

    uid: str
    source_id: str
    content_hash: str


class _Entry(NamedTuple):
    digest: str  # "" for a mailbox
    # None: other options, or another version, made something else of it. Its bytes stay known.
    items: Sequence[tuple[str, str, str]] | None
    # How the file looked when it was read (`files.Content`).
    stamp: str = ""

    @property
    def known(self) -> list[Known] | None:
        return None if self.items is None else [Known(*item) for item in self.items]


class Memo:
    def __init__(self, data_dir: Path, root: str, options: str) -> None:
        """`options`: whatever else decides what a file becomes."""
        self._file = _file(data_dir, root)
        self._label = f"{formats.VERSION} {options}"
        self._files = self._load()
        self._noted: dict[str, _Entry] = {}

    def recall(self, relative: str, digest: str) -> list[Known] | None:
        """What a file of these bytes holds."""
        entry = self._files.get(relative)
        return entry.known if entry is not None and entry.digest == digest else None

    def recall_unread(self, relative: str, stamp: str) -> list[Known] | None:
        """What a file holds that looks as it did when it was read."""
        entry = self._files.get(relative)
        return entry.known if entry is not None and stamp and entry.stamp == stamp else None

    def note(self, relative: str, digest: str, items: list[Known], stamp: str = "") -> None:
        if not items or not _is_plain(relative):
            return
        known = [(item.uid, item.source_id, item.content_hash) for item in items]
        self._files[relative] = self._noted[relative] = _Entry(digest, known, stamp)

    def save(self) -> None:
        """Beside what another import has noted meanwhile."""
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
        except OSError as error:  # a full disk: the next import parses what it finds
            log.warning("what was read is not remembered in %s: %s", self._file, error)
        self._noted = {}

    def _load(self) -> dict[str, _Entry]:
        label, files = _read(self._file)
        if label == self._label:
            return files
        return {path: _Entry(entry.digest, None) for path, entry in files.items()}


def digests(data_dir: Path, root: str) -> list[tuple[str, str]]:
    """The files of a root and the hashes of their bytes, whatever they became."""
    _, files = _read(_file(data_dir, root))
    return [(relative, digest) for relative, (digest, *_) in files.items() if digest]


def _file(data_dir: Path, root: str) -> Path:
    name = hashlib.sha256(root.encode()).hexdigest()[:16]
    return data_dir / "imports" / f"{name}.json"


def _read(file: Path) -> tuple[str, dict[str, _Entry]]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        return str(content["label"]), {
            path: _Entry(str(digest), _items(items), *map(str, more))
            for path, (digest, items, *more) in content["files"].items()
            if _is_plain(path)
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return "", {}


def _items(listed: Any) -> list[tuple[str, str, str]] | None:
    """None as well for what was damaged."""
    items = [(uid, source_id, content_hash) for uid, source_id, content_hash in listed or []]
    is_whole = all(isinstance(value, str) and _is_plain(value) for item in items for value in item)
    return items if items and is_whole else None


def _is_plain(text: str) -> bool:
    """As Postgres and a file of ours can hold it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text
