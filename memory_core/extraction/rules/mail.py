"""Mail: header blocks, and quoted text."""

from dataclasses import dataclass

from memory_core.extraction.rules.lines import Line
from memory_core.text import quotation
from memory_core.text import timed_patterns as re

_HEADER = re.compile(
    r"[ \t]{0,4}\*{0,2}(?P<key>From|To|Cc|Bcc|Date|Sent|Subject|Reply-To|Message-ID|In-Reply-To|"
    r"References|MIME-Version|Content-[\w-]{1,30}|X-[\w-]{1,30}|Received|Return-Path|"
    r"Delivered-To|Authentication-Results|DKIM-Signature|List-[\w-]{1,20}|ARC-[\w-]{1,30})"
    r"\*{0,2}:\*{0,2}[ \t]*(?P<value>.{0,1000})",
    re.IGNORECASE,
)
# After a header block has begun, every field belongs to it.
_ANY_HEADER = re.compile(
    r"[ \t]{0,4}\*{0,2}(?P<key>[A-Za-z][\w-]{1,40})\*{0,2}:\*{0,2}(?:[ \t]+|$)(?P<value>.{0,1000})"
)
_RULE = re.compile(r"[ \t]*_{20,}[ \t]*$")
_SIGNATURE = re.compile(r"--[ \t]*$")
_MIN_HEADERS = 2


@dataclass(frozen=True, slots=True)
class MailHeader:
    """The start of a message, given by its header block. Lines before `body` are its header."""

    first: int
    body: int
    headers: dict[str, str]


def is_quoted(text: str, line: Line) -> bool:
    """'>' at the start, also nested or after initials ("AC> ...")."""
    start = line.start
    while start < line.end and text[start] in " \t":
        start += 1
    return text.startswith(">", start) and not text.startswith(">>> ", start)


def messages(text: str, lines: list[Line]) -> list[MailHeader]:
    """Header blocks of at least two fields, one of them From. Inside a text, only blocks that the
    import marks as headers count, so that a writer cannot forge a message of another person."""
    letters = []
    i = 0
    while i < len(lines):
        headers: dict[str, str] = {}
        stop = i
        last = ""
        while stop < len(lines) and not lines[stop].blank:
            line = lines[stop]
            pattern = _ANY_HEADER if headers else _HEADER
            match = pattern.match(text, line.start, line.end)
            if match:
                last = match["key"].lower()
                headers.setdefault(last, match["value"].strip())
            elif last and text[line.start] in " \t":
                headers[last] += " " + text[line.body : line.end].strip()
            else:
                break
            stop += 1
        if "from" in headers and len(headers) >= _MIN_HEADERS:
            block = [text[line.start : line.end] for line in lines[i:stop]]
            if i == 0 or quotation.header_block(block, 0)[1]:
                letters.append(MailHeader(i, stop, headers))
        i = max(stop, i + 1)
    return letters


def quoted(text: str, lines: list[Line], letters: list[MailHeader], is_mail: bool) -> set[int]:
    """Lines that repeat another person's words: '>' lines everywhere, and in mail the lines after
    an "On ... wrote:", an "Original Message" mark or an Outlook header."""
    skip = {i for i, line in enumerate(lines) if is_quoted(text, line)}
    if not is_mail:
        return skip
    starts = {m.first: m for m in letters}
    plain = [text[line.start : line.end] for line in lines]
    foreign = _foreign_headers(plain)
    quoting = until_end = signed = False
    for i, line in enumerate(plain):
        message = starts.get(i)
        if message is not None:
            own = not until_end and (message.first == 0 or "sent" not in message.headers)
            quoting, signed = not own, False
            until_end = until_end or not own
        elif quotation.separator(line) or _RULE.match(line) or i in foreign:
            quoting = until_end = True
        elif size := quotation.attribution(plain, i):
            skip.update(range(i, i + size))
            # With '>' marks only the marked lines are quoted: answers may be between them.
            quoting = quoting or not _next_is_quoted(text, lines, i + size)
        elif _SIGNATURE.match(line) and line != "---":
            signed = True
        if quoting or signed:
            skip.add(i)
    return skip


def _foreign_headers(plain: list[str]) -> set[int]:
    """The first lines of Outlook headers in languages other than English; `messages` finds the
    English ones."""
    starts = set()
    i = 0
    while i < len(plain):
        size, is_header = quotation.header_block(plain, i)
        if is_header and not _HEADER.match(plain[i]):
            starts.add(i)
        i += max(size, 1)
    return starts


def _next_is_quoted(text: str, lines: list[Line], i: int) -> bool:
    for line in lines[i : i + 6]:
        if not line.blank:
            return is_quoted(text, line)
    return False
