"""What a file becomes when it is imported."""

from pathlib import PurePosixPath

from memory_core.importing import formats
from memory_core.importing.item import Item


def items(name: str, data: bytes | str, users: dict[str, str] | None = None) -> list[Item]:
    raw = data.encode() if isinstance(data, str) else data
    path = PurePosixPath(name)
    form = formats.recognise(raw[:4096], path)
    return list(formats.parse(form, raw, path, lambda: users or {}))


def item(name: str, data: bytes | str) -> Item:
    [found] = items(name, data)
    return found
