"""File formats, one module each. The content decides the format; where it does not, the extension
does."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import PurePosixPath

from memory_core.artifacts.document import ArtifactType
from memory_core.importing import charset
from memory_core.importing.formats import docx, html, mail, mbox, messenger, pdf, prose, structured
from memory_core.importing.formats.structured import Users
from memory_core.importing.item import Item, Skip
from memory_core.importing.limits import LIMITS
from memory_core.importing.safe_files import refuse_size

# Raise it with every change of how a file is parsed: that invalidates the file cache.
VERSION = 2


class Format(StrEnum):
    MBOX = "mbox"
    MAIL = "mail"
    PDF = "pdf"
    DOCX = "docx"
    HTML = "html"
    SUBTITLES = "subtitles"
    JSON = "json"
    TEXT = "text"


_BY_EXTENSION = {
    ".eml": Format.MAIL, ".mbox": Format.MBOX, ".mbx": Format.MBOX, ".pdf": Format.PDF,
    ".docx": Format.DOCX, ".htm": Format.HTML, ".html": Format.HTML, ".xhtml": Format.HTML,
    ".vtt": Format.SUBTITLES, ".srt": Format.SUBTITLES, ".json": Format.JSON,
    ".jsonl": Format.JSON, ".ndjson": Format.JSON,
}  # fmt: skip
_PROSE = {".md", ".markdown", ".mdown", ".rst", ".txt", ".text"}
_MAIL_FIELDS = (b"received:", b"return-path:", b"delivered-to:", b"message-id:", b"mime-version:")
_OTHER_PROGRAMS = (
    (b"PK\x03\x04", "an archive, or a document of a kind that is not read"),
    (b"\xd0\xcf\x11\xe0", "an old Office document: save it as DOCX or PDF"),
    (b"\x89PNG", "a picture"), (b"\xff\xd8\xff", "a picture"), (b"GIF8", "a picture"),
    (b"\x7fELF", "a program"), (b"MZ\x90", "a program"), (b"\x1f\x8b", "an archive"),
    (b"SQLite format 3", "a database"), (b"{\\rtf", "RTF: save it as DOCX or PDF"),
)  # fmt: skip


def recognise(head: bytes, path: PurePosixPath, *, maildir: bool = False) -> Format:
    """The format, from the first bytes and the name."""
    extension = path.suffix.lower()
    if maildir:
        return Format.MAIL
    if head.startswith(b"%PDF-"):
        return Format.PDF
    if head.startswith(b"PK\x03\x04") and extension == ".docx":
        return Format.DOCX
    for magic, what in _OTHER_PROGRAMS:
        if head.startswith(magic):
            raise Skip(what)
    if extension in (".docx", ".pdf"):
        raise Skip(f"called {extension}, but its content is something else")
    if extension != ".eml" and extension not in _PROSE - {".txt"} and mbox.looks_like(head):
        return Format.MBOX
    by_extension = _BY_EXTENSION.get(extension)
    if by_extension is not None:
        return by_extension
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:2_000].lower()
    if extension not in _PROSE - {".txt"} and _begins_like_mail(start):
        return Format.MAIL
    if start.startswith((b"<!doctype html", b"<html")):
        return Format.HTML
    if start.startswith(b"webvtt"):
        return Format.SUBTITLES
    return Format.TEXT


def limit(form: Format) -> int:
    """The maximum size of a file of this format."""
    return {
        Format.PDF: LIMITS.packed_bytes,
        Format.DOCX: LIMITS.packed_bytes,
        Format.HTML: LIMITS.html_bytes,
        Format.MAIL: LIMITS.message_bytes,
    }.get(form, LIMITS.text_bytes)


def parse(
    form: Format, data: bytes, path: PurePosixPath, users: Users, root: str = ""
) -> Iterator[Item]:
    """The items of a file that was read whole. `root`: the name of the folder in which `path`
    begins."""
    refuse_size(len(data), limit(form))
    if not data.strip(b"\x00 \t\r\n\xef\xbb\xbf"):
        raise Skip("empty")
    if form is Format.MAIL:
        yield mail.parse(charset.in_bytes_of_ascii(data))
    elif form is Format.PDF:
        yield pdf.parse(data, path)
    elif form is Format.DOCX:
        yield docx.parse(data, path)
    else:
        charset.refuse_binary(data)
        text = charset.decode(data, html.declared(data) if form is Format.HTML else None)
        if not text.strip("\x00 \t\r\n\ufeff"):
            raise Skip("empty")
        yield from _parse_text(form, text, path, users, path.parent.name or root)


def _parse_text(
    form: Format, text: str, path: PurePosixPath, users: Users, folder: str
) -> Iterator[Item]:
    if form is Format.HTML:
        words, title = html.read(text)
        if not words.strip():
            raise Skip("a page without text")
        yield Item(ArtifactType.DOC, "files", words + "\n", title=title or path.stem)
    elif form is Format.SUBTITLES:
        yield from structured.read_subtitles(text, path)
    elif form is Format.JSON:
        yield from structured.read_json(text, path, users, folder)
    elif path.suffix.lower() in ("", ".txt", ".text") and messenger.looks_like(text):
        yield from messenger.parse(text, path, folder)
    else:
        yield prose.parse(text, path)


def _begins_like_mail(start: bytes) -> bool:
    lines = start.split(b"\n")[:30]
    if start.startswith(_MAIL_FIELDS[:3]):
        return True
    fields = {line.split(b":", 1)[0] + b":" for line in lines if b":" in line[:60]}
    first = lines[0].split(b":", 1)[0] + b":"
    mailish = first in (*_MAIL_FIELDS, b"from:", b"date:", b"subject:", b"to:")
    return mailish and b"from:" in fields and (
        bool(fields & set(_MAIL_FIELDS)) or {b"subject:", b"date:"} <= fields
    )  # fmt: skip
