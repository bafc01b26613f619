"""Finding headings: Markdown, setext, RST, plain labels and labels that are list items."""

from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from memory_core.extraction.rules import sections
from memory_core.extraction.rules.lines import Line
from memory_core.extraction.rules.sections import SectionKind
from memory_core.text import timed_patterns as re

_ATX = re.compile(r"[ \t]{0,3}(?P<marks>#{1,6})[ \t]+(?P<title>[^\n]{1,300})")
_UNDERLINE = re.compile(r"[ \t]{0,3}(?P<mark>[=\-~^\"'+#*.:_])(?P=mark){2,}[ \t]*$")
_BOLD = re.compile(r"[ \t]*(?:\*\*|__)(?P<title>[^*_\n]{2,80})(?:\*\*|__)[ \t]*:?[ \t]*$")
_PACKAGE = re.compile(
    r"(?P<name>[a-z0-9][a-z0-9+.\-]{1,60}) \((?P<version>\S{1,60})\) [^;\n]{1,80};"
)
_SIGNED = re.compile(r" -- [^<>\n]{1,80} <[^<>\n]{1,100}>  (?P<day>[^\n]{10,40})$")
_MOST_CHANGES = 400
_LABEL_LEVEL = 9
_UNDERLINE_LEVELS = {"=": 1, "-": 2, "~": 3, "^": 4}


@dataclass(frozen=True, slots=True)
class Heading:
    title: str
    kind: SectionKind
    level: int
    # A label such as "Action items:" applies to the list that follows, not to the rest of the text.
    label: bool = False
    indent: int = -1


def find(text: str, lines: list[Line], skip: set[int]) -> tuple[dict[int, Heading], set[int]]:
    """Headings by line, and the underlines and rules that belong to them."""
    headings: dict[int, Heading] = {}
    rules: set[int] = set()
    for i, line in enumerate(lines):
        if i in skip or i in rules or line.blank:
            continue
        if _UNDERLINE.match(text, line.start, line.end):
            rules.add(i)
            continue
        heading = (
            _atx(text, line)
            or _packaged(text, lines, i)
            or _underlined(text, lines, i, skip)
            or _label(text, lines, i)
        )
        if heading is not None:
            headings[i] = heading
    return headings, rules


def _atx(text: str, line: Line) -> Heading | None:
    match = _ATX.match(text, line.start, line.end)
    if match is None:
        return None
    title = sections.clean_title(match["title"])
    return Heading(title, sections.kind_of(title), len(match["marks"]))


def _packaged(text: str, lines: list[Line], i: int) -> Heading | None:
    """A release of a Debian package. Its day stands below its changes."""
    match = _PACKAGE.match(text, lines[i].start, lines[i].end)
    if match is None:
        return None
    for line in lines[i + 1 : i + _MOST_CHANGES]:
        if _PACKAGE.match(text, line.start, line.end):
            break
        if signed := _SIGNED.match(text, line.start, line.end):
            try:
                day = parsedate_to_datetime(signed["day"]).date()
            except ValueError:
                break
            return Heading(f"{match['name']} {match['version']} ({day})", SectionKind.CHANGE, 1)
    return Heading(match["version"], SectionKind.CHANGE, 1)


def _underlined(text: str, lines: list[Line], i: int, skip: set[int]) -> Heading | None:
    line = lines[i]
    following = lines[i + 1] if i + 1 < len(lines) and i + 1 not in skip else None
    if following is None or line.bullet or line.end - line.start > sections.MAX_HEADING:
        return None
    rule = _UNDERLINE.match(text, following.start, following.end)
    # A rule much shorter than the words above it is a separator below a paragraph.
    if rule is None or rule["mark"] in ".:" or following.end - following.body < 3:
        return None
    if (following.end - following.body) * 2 < line.end - line.body:
        return None
    if (
        i
        and not lines[i - 1].blank
        and not _UNDERLINE.match(text, lines[i - 1].start, lines[i - 1].end)
    ):
        return None
    title = sections.clean_title(text[line.body : line.end])
    return Heading(title, sections.kind_of(title), _UNDERLINE_LEVELS.get(rule["mark"], 5))


def _label(text: str, lines: list[Line], i: int) -> Heading | None:
    """A short line that is only a known section name, in any markup."""
    line = lines[i]
    if line.end - line.body > 70:
        return None
    raw = text[line.body : line.end].strip()
    title = sections.clean_title(raw)
    kind = sections.kind_of(title)
    if kind is SectionKind.PLAIN:
        bold = _BOLD.match(text, line.start, line.end)
        if bold is None or line.bullet:
            return None
        return Heading(title, kind, _LABEL_LEVEL, True, line.indent)
    dressed = raw.endswith(":") or raw.isupper() or raw != title
    if line.bullet:
        following = next((n for n in lines[i + 1 : i + 4] if not n.blank), None)
        dressed = following is not None and following.indent > line.indent
    alone = i == 0 or lines[i - 1].blank
    if not dressed and not alone:
        return None
    return Heading(title, kind, _LABEL_LEVEL, True, line.indent if line.bullet else -1)
