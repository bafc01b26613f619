"""The source id and address of an item. They do not depend on where its root is on the disk."""

import os
import unicodedata
from urllib.parse import quote, quote_from_bytes, unquote

from memory_core.artifacts.document import ArtifactType, Document
from memory_core.importing.item import Item

SCHEME = "import:"


def readable(relative: str) -> str:
    """A path in the form that ids have. macOS and Linux encode accents differently; a name that is
    not Unicode is percent-encoded."""
    try:
        relative.encode()
    except UnicodeEncodeError:
        return quote_from_bytes(os.fsencode(relative), safe="/ ")
    return unicodedata.normalize("NFC", relative)


def address(root: str, relative: str) -> str:
    """The address that an artifact was imported from. `--prune` uses it."""
    return SCHEME + quote(name_of(root, relative))


def path_of(url: str) -> str:
    """The "root/path" of such an address."""
    return unquote(url.removeprefix(SCHEME).partition("?")[0])


def name_of(root: str, relative: str) -> str:
    """ "root/path", or the root alone."""
    return root if relative in ("", ".") else f"{root}/{readable(relative)}"


def document(
    item: Item, root: str, relative: str, override: ArtifactType | None, **origin: str
) -> Document:
    """The item as a document. `origin` is added to its address, such as the commit."""
    if item.thread:
        origin = {"thread": item.thread, **origin}
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in origin.items())
    tidy = item.tidied()
    return Document(
        artifact_type=override or item.artifact_type,
        source_system=item.source_system,
        content=item.text.encode(errors="replace").decode(),
        source_id=item.global_id or f"{root}/{readable(item.key or relative)}",
        source_url=address(root, relative) + (f"?{query}" if query else ""),
        title=tidy.title,
        author=tidy.author,
        participants=tidy.participants,
        ts=item.ts,
    )
