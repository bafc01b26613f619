"""Quoted replies: kept in the text, and marked so that an old promise is not taken for a new one.

Mail programs mark what they quote in many ways. Here each becomes the oldest one, "> " at the
start of the line, which both extractors know, and which a passage cut out of the middle of a
long quotation still carries.
"""

from collections.abc import Iterator

from memory_core.text import quotation

_RULE = "_" * 20
_LOOK_AHEAD = 6


def mark(text: str) -> str:
    """The text with every quoted line marked. What is the writer's own stays as it is."""
    lines = text.split("\n")
    start = _quotation(lines)
    if start is None:
        return text
    quoted = [line if line.startswith(">") else f"> {line}".rstrip() for line in lines[start:]]
    while quoted and quoted[-1] == ">":
        quoted.pop()
    return "\n".join([*lines[:start], *quoted])


def quote(text: str) -> str:
    """All of it quoted, one level deeper."""
    return "\n".join(f">{line}" if line.startswith(">") else f"> {line}".rstrip()
                     for line in text.split("\n"))  # fmt: skip


def _quotation(lines: list[str]) -> int | None:
    """Where a quotation begins that goes on to the end without marks of its own. A header of
    mail is none of the writer's words, wherever it stands: it may name any person as the writer."""
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
    """Every beginning has a colon, there or in one of the next lines, or is ruled. A message may
    have millions of lines, and hardly any of them does."""
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
    """With marks of its own only the marked lines are quoted: answers may stand between them."""
    for line in lines[i : i + _LOOK_AHEAD]:
        if line.strip():
            return line.lstrip().startswith(">")
    return True  # nothing follows: nothing to mark
