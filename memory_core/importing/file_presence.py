"""Whether a file exists at an address now. Checked before anything is deleted or replaced."""

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote_from_bytes

from memory_core.importing.source_ids import readable


class FilePresence:
    def __init__(self, roots: Mapping[str, Path]) -> None:
        self._roots = roots

    def at(self, name: str) -> bool | None:
        """`name`: "root/path". None if this machine cannot tell: an unknown root, a missing disk,
        or a folder without permission."""
        root, _, relative = name.partition("/")
        path = self._roots.get(root)
        if path is None:
            return None
        try:
            with os.scandir(path) as entries:
                if next(entries, None) is None:  # an empty mount point
                    return None
            return _find(str(path), [part for part in relative.split("/") if part])
        except OSError:
            return None


def _find(folder: str, parts: list[str]) -> bool:
    """Look up by the names in ids, which may be encoded differently on the disk."""
    if not parts:
        return True
    path = os.path.join(folder, parts[0])  # noqa: PTH118 (names may be no Unicode)
    if os.path.lexists(path) and _below(path, parts[1:]):
        return True
    if parts[0].isascii() and "%" not in parts[0]:
        return False
    with os.scandir(folder) as entries:
        others = [entry for entry in entries if entry.path != path and parts[0] in _names(entry)]
    return any(_below(entry.path, parts[1:]) for entry in others)


def _below(path: str, parts: list[str]) -> bool:
    try:
        return _find(path, parts)
    except (FileNotFoundError, NotADirectoryError):
        return False


def _names(entry: "os.DirEntry[str]") -> set[str]:
    return {readable(entry.name), quote_from_bytes(os.fsencode(entry.name), safe="/ ")}
