"""mbox: a file of messages, read one by one, so that its size does not matter."""

import re
from collections.abc import Iterator
from typing import BinaryIO

from memory_core.importing.limits import LIMITS

_FROM = re.compile(rb"From \S[^\n]{0,200}")
_CLOCK = re.compile(rb"\d:\d\d")
_YEAR = re.compile(rb"\d{4}")
_HEADER = re.compile(rb"[\w-]{1,60}[ \t]?:|>From ")
_ESCAPED = re.compile(rb"^>(>*From )", re.MULTILINE)
_LINE = 1 << 20


def looks_like(head: bytes) -> bool:
    """A "From " line followed by a header. A single message is a mailbox of one."""
    first, _, rest = head.lstrip(b"\xef\xbb\xbf").partition(b"\n")
    return _begins(first, rest)


def messages(file: BinaryIO) -> Iterator[bytes | None]:
    """Each message; None for a message that is too large."""
    lines: list[bytes] = []
    size = 0
    after_blank = at_start = True
    begun = False
    following = file.readline(_LINE)
    while line := following:
        following = file.readline(_LINE)
        if at_start and after_blank and _begins(line, following):
            if begun:
                yield _joined(lines, size)
            begun, lines, size = True, [], 0
        elif begun:
            size += len(line)
            if size <= LIMITS.message_bytes:
                lines.append(line)
            else:
                lines.clear()
        after_blank = at_start and line in (b"\n", b"\r\n")
        at_start = line.endswith(b"\n")
    if begun:
        yield _joined(lines, size)


def _begins(line: bytes, following: bytes) -> bool:
    """A sender, a time, and then a header. "From Monday on until 2026 we pay" is an unescaped
    sentence."""
    header = _FROM.match(line)
    return (
        header is not None
        and _CLOCK.search(header[0]) is not None
        and _YEAR.search(header[0]) is not None
        and _HEADER.match(following) is not None
    )


def _joined(lines: list[bytes], size: int) -> bytes | None:
    if size > LIMITS.message_bytes:
        return None
    return _ESCAPED.sub(rb"\1", b"".join(lines))
