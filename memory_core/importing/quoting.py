"""Quoted replies: kept in the text, and marked so that nobody takes an old promise for a new one.

Mail programs mark what they quote in many ways. Here each becomes the oldest one, "> " at the
start of the line, which both extractors know, and which a passage cut out of the middle of a
long quotation still carries.
"""

import re

_SEPARATOR = re.compile(
    r"\s*-{2,}\s*(?:original|forwarded|reply|weitergeleitete|urspr|message d'origine|"
    r"mensaje original|messaggio originale)[^\n]{0,40}-{2,}\s*$|\s*begin forwarded message:\s*$",
    re.IGNORECASE,
)
_OUTLOOK_RULE = re.compile(r"\s*_{20,}\s*$")
_HEADER = re.compile(
    r"\s{0,4}\*{0,2}(?:From|Von|De|Da|Sent|Gesendet|Envoyé|To|An|Date|Datum|Subject|Betreff|Objet|"
    r"Cc)\*{0,2}\s?:\*{0,2}\s",
    re.IGNORECASE,
)
_ATTRIBUTION = re.compile(
    r"\s*(?:On\b|Le\b|Am\b|El\b|Il\b|Op\b|\d{4}-|\d{1,2}[./]|\w{3}, )[^\n]{4,250}"
    r"(?:wrote|schrieb|a écrit|escribió|ha scritto|schreef)\b[^\n]{0,80}:\s*$",
    re.IGNORECASE,
)
_ATTRIBUTION_TAIL = re.compile(r"[^\n]{0,150}\bwrote:\s*$")
_OUTLOOK_HEADERS = 3
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
    """Where a quotation begins that goes on to the end without marks of its own."""
    for i, line in enumerate(lines):
        if line.startswith(">"):
            continue
        if _SEPARATOR.match(line):
            return i
        if _OUTLOOK_RULE.match(line) and _headers_follow(lines, i + 1):
            return i
        if _HEADER.match(line) and i > 0 and _headers_follow(lines, i):
            return i
        if (size := _attribution(lines, i)) and not _marked_below(lines, i + size):
            return i
    return None


def _attribution(lines: list[str], i: int) -> int:
    """How many lines an "On … wrote:" takes here; they are often wrapped."""
    if len(lines[i]) > 400:
        return 0
    if _ATTRIBUTION.match(lines[i]):
        return 1
    if (
        lines[i].startswith(("On ", "Am ", "Le "))
        and i + 1 < len(lines)
        and len(lines[i + 1]) < 200
        and (_ATTRIBUTION_TAIL.match(lines[i + 1]) or _ATTRIBUTION.match(lines[i] + lines[i + 1]))
    ):
        return 2
    return 0


def _marked_below(lines: list[str], i: int) -> bool:
    """With marks of its own only the marked lines are quoted: answers may stand between them."""
    for line in lines[i : i + _LOOK_AHEAD]:
        if line.strip():
            return line.lstrip().startswith(">")
    return True  # nothing follows: nothing to mark


def _headers_follow(lines: list[str], i: int) -> bool:
    """From, Sent, To, Subject: the header that Outlook puts above what it quotes."""
    while i < len(lines) and not lines[i].strip():
        i += 1
    block = []
    for line in lines[i : i + 8]:
        if not _HEADER.match(line[:200]):
            break
        block.append(line)
    return len(block) >= _OUTLOOK_HEADERS
