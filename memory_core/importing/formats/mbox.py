"""mbox: a file of messages, read one by one, so that its size does not matter."""

import re
from collections.abc import Iterator
from typing import BinaryIO

from memory_core.importing.limits import LIMITS

_FROM = re.compile(rb"From \S.{0,200}\d{4}", re.DOTALL)
_ESCAPED = re.compile(rb"^>(>*From )", re.MULTILINE)
_LINE = 1 << 20


def looks_like(head: bytes) -> bool:
    """A "From " line and then a header. One message alone is a mailbox of one."""
    first, _, rest = head.lstrip(b"\xef\xbb\xbf").partition(b"\n")
    return _FROM.match(first) is not None and re.match(rb"[\w-]{1,60}:", rest) is not None


def messages(file: BinaryIO) -> Iterator[bytes | None]:
    """Each message; None stands for one that is too large."""
    lines: list[bytes] = []
    size = 0
    after_blank = at_start = True
    begun = False
    while line := file.readline(_LINE):
        if at_start and after_blank and _FROM.match(line):
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


def _joined(lines: list[bytes], size: int) -> bytes | None:
    if size > LIMITS.message_bytes:
        return None
    return _ESCAPED.sub(rb"\1", b"".join(lines))
