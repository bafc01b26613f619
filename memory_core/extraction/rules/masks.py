"""Lines that are not prose: code, front matter, licences, tables of contents, comments.

Each function returns the indices of the lines that it hides. A hidden line is never read again: it
contains no sentence about what happened.
"""

from collections.abc import Iterable

from memory_core.extraction.rules.lines import Line
from memory_core.text import timed_patterns as re

_FENCE = re.compile(
    r"[ \t]{0,12}(?:[-*+][ \t]+)?(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]{0,60})$"
)
_LICENCE = re.compile(
    r"copyright (?:\(c\)|©|\d{4})|licen[sc]ed under|permission is hereby granted|"
    r"without warrant|all rights reserved|spdx-license|redistribution and use|"
    r"placed in the public domain",
    re.IGNORECASE,
)
_TOC_ENTRY = re.compile(
    r"(?:[-*+]|\d{1,3}[.)])?[ \t]*(?:\[[^\]\n]{1,150}\]\(#[^)\n]{0,200}\)|"
    r".{1,100}?\.{4,}\s?\d+)[ \t]*$"
)
_LINK_DEFINITION = re.compile(
    r"(?:\[[^\]\n]{1,80}\]:[ \t]|\.\. (?:\[[^\]\n]{1,40}\]|_[^:\n]{1,80}:))"
)
_DIRECTIVE = re.compile(r"[ \t]*\.\. [\w\-]{1,40}::")
# A line that looks like a shell prompt, a diff, a log or a traceback.
_MACHINE = re.compile(
    r"(?:\$ |>>> |\.\.\. |@@ |\+\+\+ |--- a/|diff --git|"
    r"From \S{3,80}@\S{3,80} \w{3} \w{3} |Traceback \(|[ \t]+at [\w.$]{3,80}\(|"
    r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}\S{0,8} (?:DEBUG|INFO|WARN|ERROR)|#!|//|/\*|"
    r"\s{0,8}(?:\.\. )?[\w\-]{2,30}::|[\d:.,]{8,12} --> |\d{1,5}$|WEBVTT)"
)
_CODE_INDENT = 4


def hidden(text: str, lines: list[Line]) -> set[int]:
    skip = front_matter(text, lines) | fences(text, lines) | comments(text, lines)
    skip |= literal_blocks(text, lines) | indented_code(lines, skip)
    skip |= licences(text, lines)
    skip |= {
        i
        for i, line in enumerate(lines)
        if _TOC_ENTRY.match(text, line.body if not line.bullet else line.start, line.end)
        or _TOC_ENTRY.match(text, line.body, line.end)
        or _LINK_DEFINITION.match(text, line.start, line.end)
        or _MACHINE.match(text, line.start, line.end)
        or (line.bullet and _MACHINE.match(text, line.body, line.end))
    }
    return skip


def front_matter(text: str, lines: list[Line]) -> set[int]:
    if not lines or text[lines[0].start : lines[0].end].rstrip() != "---":
        return set()
    for i, line in enumerate(lines[1:60], start=1):
        content = text[line.start : min(line.end, line.start + 200)].rstrip()
        if content in ("---", "..."):
            return set(range(i + 1))
        if content and ":" not in content and not content.lstrip().startswith(("-", "#")):
            return set()
    return set()


def fences(text: str, lines: list[Line]) -> set[int]:
    """Fenced code. A chunk may start inside a block. Then a fence that names a language, which can
    only open a block, stands where a closing fence is expected, and everything before the first
    fence is code."""
    marks = [
        (i, fence["mark"], fence["info"].strip())
        for i, line in enumerate(lines)
        if (fence := _FENCE.match(text, line.start, line.end))
    ]
    if not marks:
        return set()
    inside = any(info for _, _, info in marks[1::2]) and not any(i for _, _, i in marks[0::2])
    skip = set(range(marks[0][0] + 1)) if inside else set()
    opened: tuple[int, str] | None = None
    for i, mark, info in marks[1:] if inside else marks:
        if opened is None:
            opened = (i, mark)
        elif mark[0] == opened[1][0] and len(mark) >= len(opened[1]) and not info:
            skip.update(range(opened[0], i + 1))
            opened = None
    if opened is not None:
        skip.update(range(opened[0], len(lines)))
    return skip


def comments(text: str, lines: list[Line]) -> set[int]:
    skip: set[int] = set()
    open_comment = False
    for i, line in enumerate(lines):
        start = text.find("<!--", line.start, line.end)
        if open_comment or start == line.body:
            skip.add(i)
        if start >= 0:
            open_comment = True
        if open_comment and text.find("-->", max(start, line.start), line.end) >= 0:
            open_comment = False
    # A comment that never closes hides only its own line.
    return {i for i in skip if not open_comment or text.startswith("<!--", lines[i].body)}


def literal_blocks(text: str, lines: list[Line]) -> set[int]:
    """RST: the lines indented below a line that ends in '::', or below a directive."""
    skip: set[int] = set()
    base: int | None = None
    for i, line in enumerate(lines):
        if line.blank:
            continue
        if base is not None and line.indent > base:
            skip.add(i)
            continue
        base = None
        directive = _DIRECTIVE.match(text, line.start, line.end)
        if directive or text.endswith("::", line.start, line.end):
            base = line.indent
            if directive:
                skip.add(i)
    return skip


def indented_code(lines: list[Line], skip: Iterable[int]) -> set[int]:
    """Markdown: a paragraph indented by four, after a blank line and outside of any list."""
    hidden_already = set(skip)
    code_lines: set[int] = set()
    in_list = False
    after_blank = True
    in_code = False
    for i, line in enumerate(lines):
        if line.blank:
            after_blank = True
            continue
        if i in hidden_already:
            after_blank = in_code = False
            continue
        if line.bullet and line.indent < _CODE_INDENT:
            in_list = True
        elif line.indent == 0:
            in_list = False
        deep = line.indent >= _CODE_INDENT and not line.bullet and not in_list
        in_code = deep and (after_blank or in_code)
        if in_code:
            code_lines.add(i)
        after_blank = False
    return code_lines


def licences(text: str, lines: list[Line]) -> set[int]:
    """The whole paragraph around a licence phrase."""
    skip: set[int] = set()
    paragraph: list[int] = []
    marked = False
    for i, line in enumerate([*lines, Line(0, 0, 0, 0)]):
        if line.blank:
            if marked:
                skip.update(paragraph)
            paragraph, marked = [], False
            continue
        paragraph.append(i)
        head = text[line.start : min(line.end, line.start + 400)]
        marked = marked or _LICENCE.search(head) is not None
    return skip
