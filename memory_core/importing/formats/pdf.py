"""PDF: the text of its pages. A scanned PDF has none, and the report says so."""

from pathlib import PurePosixPath
from typing import Any

from memory_core.artifacts.document import MAX_CONTENT_CHARS
from memory_core.importing.formats import office
from memory_core.importing.item import Item, Unusable

_MAX_PAGES = 5_000


def parse(data: bytes, path: PurePosixPath) -> Item:
    return office.document("pdf", data, path, empty="a PDF without text: its pages are pictures")


def extract(data: bytes) -> dict[str, Any]:
    """Runs in the sandbox."""
    import io
    import logging

    from pypdf import PdfReader  # if it is missing, the caller says what to install
    from pypdf.errors import PyPdfError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unusable("a PDF that needs a password")
        pages: list[str] = []
        total = 0
        for number, page in enumerate(reader.pages):
            text = page.extract_text().strip()
            total += len(text) + 2
            if number >= _MAX_PAGES or total > MAX_CONTENT_CHARS:
                raise Unusable("a PDF with more pages or text than is read: split it")
            if text:
                pages.append(text)
        title, author, written = _metadata(reader)
    except (Unusable, MemoryError):
        raise
    except (*office.BROKEN, ImportError, PyPdfError) as error:
        raise Unusable(f"not a readable PDF ({type(error).__name__})") from error
    text = "\n\n".join(pages).encode(errors="replace").decode()
    return {"text": text, "title": title, "author": author, "ts": written}


def _metadata(reader: Any) -> tuple[str | None, str | None, str | None]:
    """Metadata is optional, so broken metadata is dropped."""
    try:
        about = reader.metadata
        if about is None:
            return None, None, None
        written = about.creation_date
        return (
            str(about.title) if about.title else None,
            str(about.author) if about.author else None,
            written.isoformat() if written else None,
        )
    except Exception:
        return None, None, None
