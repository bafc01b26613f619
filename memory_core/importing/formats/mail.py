"""Mail: one message becomes one artifact.

Our own few rules parse headers, with limits on their length, because `email`'s parser of structured
headers takes quadratic time on hostile ones. The standard library parses bodies and parts.
"""

import email
import re
from collections.abc import Iterator
from datetime import datetime
from email.header import decode_header
from email.message import Message
from email.utils import getaddresses, parsedate_to_datetime
from typing import Any

from memory_core.artifacts.document import ArtifactType
from memory_core.importing import quoted_replies, sandbox
from memory_core.importing.charset import decode
from memory_core.importing.formats import html
from memory_core.importing.item import Item, Skip, Unusable
from memory_core.importing.limits import LIMITS
from memory_core.kernel.times import as_utc

_HEADER_CHARS = 20_000
_SHOWN_ADDRESSES = 100
_SHOWN_REFERENCES = 20
_MESSAGE_ID = re.compile(r"<([^<>\s]{1,500})>")
_BETWEEN_PEOPLE = re.compile(r"(?<=>)\s{0,9}[,;]")
_QUOTED_NAME = re.compile(r'"((?:[^"\\]|\\.)*)"')
_BOUNDARY_LINE = re.compile(
    rb"\n--([^\s\"\\](?:[^\n\"\\]{0,68}[^\s\"\\])?)[ \t]*\ncontent-[\w-]{1,40}:", re.IGNORECASE
)
# Text that is meant for programs.
_NOT_TO_READ = {"text/rtf", "text/css", "text/javascript", "text/x-javascript"}
_TAGS = re.compile(r"<(?:html|body|div|p|br|table|span)\b", re.IGNORECASE)
_ENVELOPE = re.compile(rb"\A(?:\xef\xbb\xbf)?(?:[ \t]*\r?\n)*(?:>?From [^\r\n]{0,1000}\r?\n)?")
_BLANK_LINE = re.compile(rb"\n\r?\n")
_CONTENT_FIELD = re.compile(
    rb"^content-(?:type|disposition)[ \t]*:[^\n]*(?:\n[ \t][^\n]*)*", re.IGNORECASE | re.MULTILINE
)
_HEADERS_BYTES = 2_000_000
# The parser compares every line with the boundaries of all enclosing parts.
_BOUNDARY = re.compile(rb"\bboundary[ \t]*=", re.IGNORECASE)
_INLINE_LINES = 1_000_000
_INLINE_MARKS = 5_000
_INLINE_LEVELS = 20
_INLINE_CHECKS = 2_000_000
_MAX_NESTING = 20
_MAX_SALVAGES = 3


def parse(data: bytes) -> Item:
    """Parse a message. The standard library's parser takes time per line, more for nested parts,
    and memory per part. So an expensive message is parsed in a process with limits."""
    _refuse_endless_headers(data)
    if not _is_costly(data):
        return read(data)
    return Item.unpacked(sandbox.parse("mail", data))


def extract(data: bytes) -> dict[str, Any]:
    """Runs in the sandbox."""
    return read(data).packed()


def _is_costly(data: bytes) -> bool:
    lines = data.count(b"\n")
    if lines > _INLINE_LINES or data.count(b"\n--") > _INLINE_MARKS:
        return True
    levels = sum(1 for _ in _BOUNDARY.finditer(data))
    return levels > _INLINE_LEVELS and levels * lines > _INLINE_CHECKS


def read(data: bytes) -> Item:
    try:
        message = email.message_from_bytes(_ENVELOPE.sub(b"", data, count=1))
        return _item(message)
    except RecursionError:
        raise Unusable("a message that nests deeper than is read") from None


def _item(message: Message) -> Item:
    if not message.keys() and not message.get_payload():
        raise Unusable("an empty message")
    if not any(_raw(message, name) for name in ("From", "To", "Subject", "Date", "Message-ID")):
        raise Unusable("not a message: it has none of the headers of one")
    sender = addresses(message, "From") or addresses(message, "Sender")
    written = _date(message)
    references = _references(message)
    subject = header(message, "Subject")
    text = _heading(message, subject, references) + "\n\n" + _body(message)
    identity = _ids(message, "Message-ID")
    others = [*addresses(message, "To"), *addresses(message, "Cc")]
    return Item(
        ArtifactType.EMAIL,
        "email",
        text.rstrip() + "\n",
        global_id=identity[0] if identity else None,
        title=subject or "(no subject)",
        author=sender[0] if sender else None,
        participants=(*sender, *others),
        ts=written,
        thread=references[0] if references else (identity[0] if identity else None),
    )


def _refuse_endless_headers(data: bytes) -> None:
    """Refuse huge headers: the standard library takes quadratic time on the parameters of a content
    type."""
    end = _BLANK_LINE.search(data)
    if (end.start() if end else len(data)) > _HEADERS_BYTES or any(
        match.end() - match.start() > _HEADER_CHARS for match in _CONTENT_FIELD.finditer(data)
    ):
        raise Unusable("a message with headers of a size that no message has")


def header(message: Message, name: str) -> str:
    """A header in readable form: encoded words decoded, on one line."""
    return " ".join(_decoded(_raw(message, name)).split())


def _raw(message: Message, name: str) -> str:
    return next(iter(_raw_all(message, name)), "")


def _raw_all(message: Message, name: str) -> list[str]:
    """Headers as written in the file; `Message.get` would fail on non-ASCII bytes."""
    wanted = name.lower()
    values = [str(value) for key, value in message.raw_items() if key.lower() == wanted]
    return [_text(value[:_HEADER_CHARS]) for value in values[:20]]


def _text(raw: str) -> str:
    """Decode a raw header: bytes that are not ASCII arrive as surrogates."""
    return raw if raw.isascii() else decode(raw.encode("utf-8", errors="surrogateescape"))


def _decoded(raw: str) -> str:
    if "=?" not in raw:
        return raw
    try:
        parts = decode_header(raw)
    except (ValueError, LookupError):
        return raw
    return "".join(
        decode(part, charset) if isinstance(part, bytes) else part for part, charset in parts
    )


def addresses(message: Message, name: str) -> list[str]:
    """Names with their addresses, "Alice Chen <alice@example.com>"."""
    pairs = []
    for person, address in _people(_raw_all(message, name))[:1000]:
        shown = " ".join(_decoded(person).split())
        if address and shown and shown != address:
            pairs.append(f"{shown} <{address}>")
        elif address or shown:
            pairs.append(address or shown)
    return pairs


def _people(values: list[str]) -> list[tuple[str, str]]:
    """Split before decoding: a comma inside an encoded name separates nothing."""
    people: list[tuple[str, str]] = []
    for value in values:
        parts = [part for part in _BETWEEN_PEOPLE.split(value) if part.strip()]
        named = [_named(part) for part in parts]
        if named and all(named):
            people += [person for person in named if person]
        else:
            people += _by_standard_library(value)
    return people


def _named(part: str) -> tuple[str, str] | None:
    """The text before the only address in brackets is the name, even if it should have been quoted:
    "Doe, John <j@example.com>", "John [Acme] <…>". Not if that text has other addresses or a
    group."""
    name, _, rest = part.strip().partition("<")
    address, closed, after = rest.partition(">")
    if not closed or after.strip() or "<" in address or " " in address.strip():
        return None
    quoted = _QUOTED_NAME.fullmatch(name.strip())
    plain = re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else name.strip()
    if not quoted and (":" in plain or '"' in plain or "(" in plain or _is_list(plain)):
        return None
    return plain, address.strip()


def _is_list(plain: str) -> bool:
    """ "a@example.com, Bob": two people."""
    return "," in plain[plain.find("@") :] if "@" in plain else False


def _by_standard_library(value: str) -> list[tuple[str, str]]:
    try:
        return getaddresses([value])
    except RecursionError:  # thousands of open brackets
        return []


def _heading(message: Message, subject: str, references: list[str]) -> str:
    lines = []
    for name in ("From", "To", "Cc"):
        people = addresses(message, name)
        if people:
            rest = len(people) - _SHOWN_ADDRESSES
            shown = ", ".join(people[:_SHOWN_ADDRESSES])
            lines.append(f"{name}: {shown}" + (f" and {rest} others" if rest > 0 else ""))
    if date := header(message, "Date"):
        lines.append(f"Date: {date}")
    lines.append(f"Subject: {subject}")
    if answered := _ids(message, "In-Reply-To"):
        lines.append(f"In-Reply-To: <{answered[0]}>")
    if references:
        shown_ids = [references[0], *references[1:][-_SHOWN_REFERENCES:]]
        lines.append("References: " + " ".join(f"<{id_}>" for id_ in shown_ids))
    return "\n".join(lines)


def _references(message: Message) -> list[str]:
    """The messages before this one, oldest first."""
    references = [*_ids(message, "References"), *_ids(message, "In-Reply-To")]
    return list(dict.fromkeys(references))


def _ids(message: Message, name: str) -> list[str]:
    raw = _raw(message, name)
    ids = _MESSAGE_ID.findall(raw)
    if ids or name != "Message-ID":
        return [_storable(id_) for id_ in ids]
    bare = raw.strip()
    return [_storable(bare)] if bare and " " not in bare and len(bare) < 500 else []


def _storable(id_: str) -> str:
    return id_.encode(errors="replace").decode().replace("\x00", "")


def _date(message: Message) -> datetime | None:
    try:
        return as_utc(parsedate_to_datetime(_raw(message, "Date")[:200]))
    except (ValueError, TypeError, OverflowError, IndexError, RecursionError):
        return None


# -- bodies ---------------------------------------------------------------------------------------


def _body(message: Message) -> str:
    reader = _Reader()
    text = quoted_replies.mark(reader.read(message, 0).strip("\n"))
    attachments = "\n".join(f"[Attachment: {name}]" for name in reader.attachments)
    return "\n\n".join(part for part in (text, attachments) if part)


class _Reader:
    def __init__(self) -> None:
        self.attachments: list[str] = []
        self._parts = 0
        self._left_out = False
        self._salvages = 0

    def read(self, part: Message, depth: int) -> str:
        self._parts += 1
        if self._parts > LIMITS.mime_parts or depth > _MAX_NESTING:
            return self._leave_out()
        kind = part.get_content_type()
        if kind == "message/rfc822" or kind == "message/global":
            return "\n\n".join(self._enclosed(inner, depth) for inner in _children(part))
        if kind in ("message/feedback-report", "message/delivery-status"):
            return "\n\n".join(filter(None, map(_fields, _children(part))))
        if part.is_multipart():
            inside = list(_children(part))
            if kind == "multipart/alternative":
                return self._best(inside, depth)
            return "\n\n".join(filter(None, (self.read(inner, depth + 1) for inner in inside)))
        if part.get_content_maintype() == "multipart":
            return self._salvaged(part, depth)
        return self._leaf(part, kind, alone=depth == 0)

    def _leave_out(self) -> str:
        """The note is written once, not for each part."""
        note = "" if self._left_out else "[Further parts were left out]"
        self._left_out = True
        return note

    def _best(self, versions: list[Message], depth: int) -> str:
        """The plain version if it has text, because that is what the writer's program meant."""
        ordered = sorted(versions, key=lambda part: part.get_content_type() != "text/plain")
        for version in ordered:
            if (text := self.read(version, depth + 1)).strip():
                return text
        return ""

    def _enclosed(self, message: Message, depth: int) -> str:
        """A message within the message is earlier mail."""
        head = "\n".join(
            f"{name}: {value}"
            for name in ("From", "To", "Date", "Subject")
            if (value := header(message, name))
        )
        inner = self.read(message, depth + 1)
        return quoted_replies.quote(f"{head}\n\n{inner}".strip("\n"))

    def _salvaged(self, part: Message, depth: int) -> str:
        """A part whose boundary is missing or wrong. The first line that looks like a boundary is
        used; without one, all of it is text."""
        data = _payload(part).replace(b"\r\n", b"\n")
        boundary = _BOUNDARY_LINE.search(b"\n" + data)
        self._salvages += 1
        if boundary is not None and self._salvages <= _MAX_SALVAGES:
            head = b'Content-Type: multipart/mixed; boundary="' + boundary[1] + b'"\n\n'
            again = email.message_from_bytes(head + data)
            if again.is_multipart():
                return self.read(again, depth + 1)
        return decode(data).replace("\r", "\n")

    def _leaf(self, part: Message, kind: str, *, alone: bool) -> str:
        if part.get_content_disposition() == "attachment" or not (
            _is_text(kind) or (alone and _holds_text(part, kind))
        ):
            self._attach(part, kind, part.get_filename())
            return ""
        text = _payload_text(part)
        if kind == "text/html" or (kind == "text/plain" and _looks_like_html(text)):
            return _html_text(text)
        return text.replace("\r\n", "\n").replace("\r", "\n")

    def _attach(self, part: Message, kind: str, name: str | None) -> None:
        shown = " ".join(_decoded(name[:500]).split()) if name else "without a name"
        payload = part.get_payload()
        if name or isinstance(payload, str):
            self.attachments.append(f"{shown} ({kind})"[:300])


def _children(part: Message) -> Iterator[Message]:
    payload = part.get_payload()
    if isinstance(payload, list):
        yield from (inner for inner in payload if isinstance(inner, Message))


def _is_text(kind: str) -> bool:
    return kind.startswith("text/") and kind not in _NOT_TO_READ


def _holds_text(part: Message, kind: str) -> bool:
    """Whether a message that is declared as data is text."""
    if part.get_filename() or kind in _NOT_TO_READ:
        return False
    sample = _payload(part)[:20_000]
    controls = sum(byte < 32 and byte not in b"\t\n\r\f" for byte in sample)
    return bool(sample.strip()) and controls <= len(sample) // 100


def _fields(part: Message) -> str:
    """A report for programs: its fields, as written."""
    rows = [f"{key}: {header(part, key)}" for key in dict.fromkeys(part.keys())]
    return "\n".join(rows[:100])


def _payload_text(part: Message) -> str:
    data, charset = _payload(part), part.get_param("charset")
    if not charset and part.get_content_type() == "text/html":
        charset = html.declared(data)
    return decode(data, charset if isinstance(charset, str) else None)


def _payload(part: Message) -> bytes:
    try:
        data = part.get_payload(decode=True)
    except (ValueError, LookupError, AssertionError):
        data = str(part.get_payload()).encode(errors="replace")
    return data if isinstance(data, bytes) else b""


def _looks_like_html(text: str) -> bool:
    start = text[:2000].lstrip()
    return start[:15].lower().startswith(("<!doctype html", "<html")) and bool(_TAGS.search(start))


def _html_text(text: str) -> str:
    if len(text) > LIMITS.html_bytes:
        return "[An HTML part that is too large was left out]"
    try:
        return html.read(text)[0]
    except Skip:
        raise
    except Unusable as error:
        return f"[An HTML part was left out: {error}]"
