"""Quoted replies stay in the text, marked so that an old promise is not taken for a new one.

Mail programs mark quotations in many ways. Here each becomes the oldest form, "> " at the start of
the line. Both extractors know it, and a chunk from the middle of a long quotation still has it.
"""

from collections.abc import Iterator

from memory_core.text import quotation

_RULE = "_" * 20
_LOOK_AHEAD = 6


def mark(text: str) -> str:
    """The text with every quoted line marked. The writer's own lines stay unchanged."""
    lines = text.split("\n")
    start = _quotation(lines)
    if start is None:
        return text
    quoted = [line if line.startswith(">") else f"> {line}".rstrip() for line in lines[start:]]
    while quoted and quoted[-1] == ">":
        quoted.pop()
    return "\n".join([*lines[:start], *quoted])


def quote(text: str) -> str:
    """All lines quoted, one level deeper."""
    return "\n".join(f">{line}" if line.startswith(">") else f"> {line}".rstrip()
                     for line in text.split("\n"))  # fmt: skip


def _quotation(lines: list[str]) -> int | None:
    """The start of a quotation that runs to the end without marks. A mail header is never the
    writer's own text, wherever it is: it may name any person as the writer."""
    asked = 0
    for i in _candidates(lines):
        line = lines[i]
        if line.startswith(">"):
            continue
        if quotation.separator(line):
            return i
        if i >= asked:
            size, is_header = quotation.header_block(lines, i)
            if is_header:
                return _above(lines, i)
            asked = i + size
        if (size := quotation.attribution(lines, i)) and not _marked_below(lines, i + size):
            return i
    return None


def _candidates(lines: list[str]) -> Iterator[int]:
    """Lines where a quotation may begin: they have a colon, there or in one of the next lines, or
    are a rule. A message may have millions of lines, and hardly any of them qualifies."""
    done = -1
    for i, line in enumerate(lines):
        if ":" in line or "：" in line or "----" in line:
            yield from range(max(done + 1, i - quotation.ATTRIBUTION_LINES + 1), i + 1)
            done = i


def _above(lines: list[str], i: int) -> int:
    """Outlook draws a rule above its headers."""
    before = i - 1
    while before > 0 and not lines[before].strip():
        before -= 1
    bare = lines[before].strip() if before >= 0 else ""
    return before if bare.startswith(_RULE) and not bare.strip("_") else i


def _marked_below(lines: list[str], i: int) -> bool:
    """If the quoted lines have marks, only they are quoted: answers may be between them."""
    for line in lines[i : i + _LOOK_AHEAD]:
        if line.strip():
            return line.lstrip().startswith(">")
    return True  # nothing follows, so there is nothing to mark
