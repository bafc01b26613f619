"""DOCX: headings, paragraphs, lists and tables, in the order in which they stand."""

import zipfile
from collections.abc import Iterator
from typing import Any

from memory_core.artifacts.document import MAX_CONTENT_CHARS
from memory_core.importing.formats import office
from memory_core.importing.item import Item, Unusable
from memory_core.importing.limits import LIMITS

_MAX_MEMBERS = 10_000


def parse(data: bytes) -> Item:
    return office.document("docx", data, empty="a document without text")


def extract(data: bytes) -> dict[str, Any]:
    """In the sandbox."""
    import io

    import docx
    from docx.opc.exceptions import PackageNotFoundError
    from lxml.etree import LxmlError  # type: ignore[import-untyped]

    try:
        _refuse_bombs(zipfile.ZipFile(io.BytesIO(data)))
        document = docx.Document(io.BytesIO(data))
        text = "\n\n".join(_blocks(document))
        about = document.core_properties
        written = about.modified or about.created
        answer = {
            "text": text.encode(errors="replace").decode(),
            "title": about.title or None,
            "author": about.author if about.author != "python-docx" else None,
            "ts": written.isoformat() if written else None,
        }
    except (Unusable, MemoryError):
        raise
    except (*office.BROKEN, zipfile.BadZipFile, PackageNotFoundError, LxmlError) as error:
        raise Unusable(f"not a readable DOCX ({type(error).__name__})") from error
    if len(text) > MAX_CONTENT_CHARS:
        raise Unusable("a document with more text than is read: split it")
    return answer


def _refuse_bombs(archive: zipfile.ZipFile) -> None:
    """By what the directory says; one that lies runs into the memory limit."""
    members = archive.infolist()
    if len(members) > _MAX_MEMBERS or sum(m.file_size for m in members) > LIMITS.unpacked_bytes:
        raise Unusable("unpacks to more than is read: a zip bomb?")


def _blocks(document: Any) -> Iterator[str]:
    from docx.table import Table

    for block in document.iter_inner_content():
        text = _table(block) if isinstance(block, Table) else _paragraph(block)
        if text.strip():
            yield text


def _paragraph(paragraph: Any) -> str:
    style = paragraph.style.name if paragraph.style is not None else ""
    text = str(paragraph.text)
    if style.startswith("Heading") and style[-1:].isdigit() and text.strip():
        return f"{'#' * int(style[-1])} {text}"
    if style == "Title":
        return f"# {text}"
    if style.startswith("List"):
        return f"- {text}"
    return text


def _table(table: Any) -> str:
    """Cells that are merged appear once."""
    rows = []
    for row in table.rows:
        cells = {id(cell._tc): " ".join(cell.text.split()) for cell in row.cells}
        rows.append(" | ".join(cells.values()))
    return "\n".join(rows)
