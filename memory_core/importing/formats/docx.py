"""DOCX: headings, paragraphs, lists and tables in document order; text boxes below their paragraph,
notes at the end. Pending insertions are included, pending deletions are not."""

import zipfile
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from memory_core.artifacts.document import MAX_CONTENT_CHARS
from memory_core.importing.formats import office
from memory_core.importing.item import Item, Unusable
from memory_core.importing.limits import LIMITS

_MAX_MEMBERS = 10_000
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_PARAGRAPH, _TABLE, _ROW, _CELL, _BOX = (
    f"{_W}{tag}" for tag in ("p", "tbl", "tr", "tc", "txbxContent")
)
_TEXT = f"{_W}t"
# Elements that represent a character.
_MARKS = {f"{_W}tab": "\t", f"{_W}br": "\n", f"{_W}cr": "\n", f"{_W}noBreakHyphen": "-"}
_NOTES = {f"{_W}footnoteReference": "", f"{_W}endnoteReference": "e"}
# Formatting, deleted or moved text, and text-box fallbacks for old programs.
_LEFT_OUT = {f"{_W}{tag}" for tag in ("pPr", "rPr", "sectPr", "del", "moveFrom")} | {
    "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
}


def parse(data: bytes, path: PurePosixPath) -> Item:
    return office.document("docx", data, path, empty="a document without text")


def extract(data: bytes) -> dict[str, Any]:
    """Runs in the sandbox."""
    import io

    import docx
    from docx.opc.exceptions import PackageNotFoundError
    from lxml.etree import LxmlError  # type: ignore[import-untyped]

    try:
        _refuse_bombs(zipfile.ZipFile(io.BytesIO(data)))
        document = docx.Document(io.BytesIO(data))
        blocks = [*_blocks(document.element.body, document), *_notes(document)]
        text = "\n\n".join(blocks)
        about = document.core_properties
        written = about.modified or about.created
        answer = {
            "text": text.encode(errors="replace").decode(),
            "title": about.title or _first_heading(blocks),
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
    """Refuse by the sizes in the zip directory. A directory that lies runs into the memory
    limit."""
    members = archive.infolist()
    if len(members) > _MAX_MEMBERS or sum(m.file_size for m in members) > LIMITS.unpacked_bytes:
        raise Unusable("unpacks to more than is read: a zip bomb?")


def _blocks(container: Any, document: Any) -> Iterator[str]:
    """Paragraphs and tables, including those in content controls and insertions."""
    for child in container:
        if child.tag == _PARAGRAPH:
            if (text := _paragraph(child, document)).strip():
                yield text
            for box in _boxes(child):
                yield from _blocks(box, document)
        elif child.tag == _TABLE:
            if (text := _table(child, document)).strip():
                yield text
        elif child.tag not in _LEFT_OUT:
            yield from _blocks(child, document)


def _paragraph(element: Any, document: Any) -> str:
    from docx.text.paragraph import Paragraph

    word_style = Paragraph(element, document).style
    style = str(word_style.name or "") if word_style is not None else ""
    text = "".join(_inline(element))
    if style.startswith("Heading") and style[-1:].isdigit() and text.strip():
        return f"{'#' * int(style[-1])} {text}"
    if style == "Title":
        return f"# {text}"
    if style.startswith("List"):
        return f"- {text}"
    return text


def _inline(element: Any) -> Iterator[str]:
    for child in element:
        if child.tag == _TEXT:
            yield child.text or ""
        elif child.tag in _MARKS:
            yield _MARKS[child.tag]
        elif child.tag in _NOTES:
            yield f"[^{_NOTES[child.tag]}{child.get(f'{_W}id')}]"
        elif child.tag not in _LEFT_OUT and child.tag != _BOX:
            yield from _inline(child)


def _boxes(element: Any) -> Iterator[Any]:
    for child in element:
        if child.tag == _BOX:
            yield child
        elif child.tag not in _LEFT_OUT:
            yield from _boxes(child)


def _table(table: Any, document: Any) -> str:
    """One line per row. A cell's content, even a table, is on that line."""
    rows = []
    for row in _inside(table, _ROW):
        cells = (" ".join(_blocks(cell, document)) for cell in _inside(row, _CELL))
        rows.append(" | ".join(" ".join(cell.split()) for cell in cells))
    return "\n".join(rows)


def _inside(element: Any, tag: str) -> Iterator[Any]:
    """The rows or cells of a table, including those in a content control, without nested tables."""
    for child in element:
        if child.tag == tag:
            yield child
        elif child.tag not in _LEFT_OUT and child.tag not in (_PARAGRAPH, _TABLE, _CELL):
            yield from _inside(child, tag)


def _notes(document: Any) -> Iterator[str]:
    """Footnotes and endnotes, each with the mark that the text has."""
    from docx.opc.constants import RELATIONSHIP_TYPE
    from docx.oxml import parse_xml

    for kind, sign in ((RELATIONSHIP_TYPE.FOOTNOTES, ""), (RELATIONSHIP_TYPE.ENDNOTES, "e")):
        for relation in document.part.rels.values():
            if relation.reltype != kind or relation.is_external:
                continue
            for note in parse_xml(relation.target_part.blob):
                text = " ".join(" ".join(_blocks(note, document)).split())
                # The separator line above the notes is a note as well.
                if text and not note.get(f"{_W}type"):
                    yield f"[^{sign}{note.get(f'{_W}id')}]: {text}"


def _first_heading(blocks: list[str]) -> str | None:
    return next((block.lstrip("# ") for block in blocks if block.startswith("#")), None)
