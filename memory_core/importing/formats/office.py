"""What PDF and DOCX have in common: they are parsed in the sandbox, and may have no text."""

from datetime import UTC, datetime
from pathlib import PurePosixPath

from memory_core.artifacts.document import ArtifactType
from memory_core.importing import sandbox
from memory_core.importing.item import Item, Skip

# What third-party parsers raise for broken files.
BROKEN = (ValueError, TypeError, KeyError, IndexError, AttributeError, OSError, EOFError,
          RecursionError, ArithmeticError, AssertionError, NotImplementedError)  # fmt: skip


def document(kind: str, data: bytes, path: PurePosixPath, *, empty: str) -> Item:
    """`empty`: the message for a file without text."""
    parsed = sandbox.parse(kind, data)
    if not parsed["text"].strip():
        raise Skip(empty)
    written = datetime.fromisoformat(parsed["ts"]) if parsed["ts"] else None
    if written is not None and written.tzinfo is None:
        written = written.replace(tzinfo=UTC)
    return Item(
        ArtifactType.DOC,
        "files",
        parsed["text"],
        title=parsed["title"] or path.stem,
        author=parsed["author"],
        ts=written,
    )
