"""Lines with exact offsets: the first step of parsing a text."""

from dataclasses import dataclass

from memory_core.text import timed_patterns as re

_BULLET = re.compile(
    r"[ \t]{0,40}(?:[-*+•‣◦–]|\\[-*]|\d{1,3}[.)]|[a-zA-Z]\)|[a-z]\.)[ \t]{1,10}"
    r"(?:\\?\[(?P<box>[ xX✓])\\?\][ \t]{1,5})?"
)


@dataclass(frozen=True, slots=True)
class Line:
    """`text[start:end]` is the line without its line break; `body` is where its words start."""

    start: int
    end: int
    body: int
    indent: int
    bullet: bool = False
    box: str | None = None

    @property
    def blank(self) -> bool:
        return self.body >= self.end


def split(text: str) -> list[Line]:
    lines = []
    start = 0
    while start <= len(text):
        newline = text.find("\n", start)
        stop = len(text) if newline < 0 else newline
        end = stop - 1 if stop > start and text[stop - 1] == "\r" else stop
        lines.append(_line(text, start, end))
        start = stop + 1
    return lines


def _line(text: str, start: int, end: int) -> Line:
    body = start
    while body < end and text[body].isspace():
        body += 1
    indent = len(text[start:body].expandtabs(4))
    bullet = _BULLET.match(text, start, end)
    if bullet is None:
        return Line(start, end, body, indent)
    body = bullet.end()
    return Line(start, end, body, indent, True, bullet["box"])
