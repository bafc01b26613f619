"""Blocks: paragraphs, list items and turns, each with its section, speaker and day."""

from dataclasses import dataclass, field, replace
from datetime import date
from email.utils import parsedate_to_datetime

from memory_core.extraction.model import DocumentContext
from memory_core.extraction.rules import (
    headings,
    lines,
    mail,
    masks,
    people,
    sections,
    sentence_labels,
    turns,
)
from memory_core.extraction.rules.headings import Heading
from memory_core.extraction.rules.lines import Line
from memory_core.extraction.rules.manner import AUTHORED, TALK
from memory_core.extraction.rules.people import Roster
from memory_core.extraction.rules.sections import Section, SectionKind
from memory_core.text import dates
from memory_core.text import timed_patterns as re
from memory_core.text.dates import Anchor

_DATE_LINE = re.compile(
    r"\**(?:(?:meeting )?date|when)\**\s?:\**\s{1,4}(?P<labelled>.{4,60})|(?P<bare>[^\n]{6,90})$",
    re.IGNORECASE,
)
_STARTS_WITH_DATE = re.compile(
    r"[*_\-=\s]{0,6}(?:[A-Z][a-z]{2,8}\.?,?\s)?(?:\d|[A-Z][a-z]{2,8}\s\d)"
)
_MAX_DATE_LINE = 90
# "We decided the following:" makes the list below it the decisions.
_ANNOUNCES = re.compile(
    r"\b(?:as follows|decisions?|decided|agreed|resolved|we(?:'ll| will)|drawbacks|risks)\b"
    r"[^.!?]{0,60}:\s*$",
    re.IGNORECASE,
)
_FIELD = re.compile(r"\**[A-Z][A-Za-z\-]{1,24}(?: [A-Za-z]{1,12})?\**:\**(?:[ \t]|$)")
MAX_ENTRY = 4000
_MAX_TITLE = 40


@dataclass(frozen=True, slots=True)
class Block:
    start: int
    end: int
    section: Section
    anchor: Anchor
    bullet: bool = False
    box: str | None = None
    # Who speaks, and whether a turn says so (otherwise a mail header or the context does).
    speaker: str | None = None
    spoken: bool = False
    # The first prose below its heading.
    lead: bool = False
    # A list item below another item of its section: a detail, not an entry.
    nested: bool = False
    # A list item after prose that does not announce a list: it explains the prose.
    explains: bool = False
    # The parent of a nested item.
    parent: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Consecutive rows; each cell is a span of the text."""

    rows: tuple[tuple[tuple[int, int], ...], ...]
    section: Section
    anchor: Anchor


@dataclass(slots=True)
class TextLayout:
    blocks: list[Block] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    roster: Roster = field(default_factory=Roster)
    headings: list[Heading] = field(default_factory=list)
    title: str | None = None


@dataclass(slots=True)
class _Open:
    """A heading whose scope has not ended."""

    heading: Heading
    anchor: Anchor | None


def read(text: str, context: DocumentContext) -> TextLayout:
    return _Reader(text, context).read()


class _Reader:
    def __init__(self, text: str, context: DocumentContext) -> None:
        self.text = text
        self.talk = context.artifact_type in TALK
        self.lines = lines.split(text)
        self.letters = mail.messages(text, self.lines)
        is_mail = context.artifact_type == "email" or (
            bool(self.letters) and self.letters[0].first == 0
        )
        self.skip = masks.hidden(text, self.lines)
        self.skip |= mail.quoted(text, self.lines, self.letters, is_mail)
        self.letters = [m for m in self.letters if m.first not in self.skip]
        self.layout = TextLayout()
        roster = self.layout.roster
        given = [context.author] if context.author else []
        people.collect(roster, text, [*given, *context.participants])
        if context.artifact_type == "transcript":
            people.add_mentioned(roster, text)
        self.headings, rules = headings.find(text, self.lines, self.skip)
        for letter in self.letters:
            self.headings = {
                i: h for i, h in self.headings.items() if not letter.first <= i < letter.body
            }
        self.skip |= rules
        self.layout.headings = list(self.headings.values())
        self._add_participants()
        kind = context.artifact_type
        self.turns, noise = turns.find(text, self.lines, self.skip, roster, kind)
        self.skip |= noise
        for turn in self.turns.values():
            roster.add(turn.speaker)

        # The calendar day where the document was written, not the day in UTC.
        self.document_day = context.date.date() if context.date is not None else None
        self.anchor = Anchor(self.document_day, stated=False)
        # Days of headings with a year. They supply the year of nearby headings without one.
        self.dated = [d for h in self.headings.values() if (d := dates.leading_day(h.title))]
        if len(set(self.dated)) > 1:
            self.anchor = Anchor()  # a text that grew over time has no day of its own
        self.author = context.author if context.artifact_type in AUTHORED else None
        if self.author:
            self.author = people.tidy(self.author)
        self.speaker: str | None = None
        self.persists = False
        self.stack: list[_Open] = []
        self.label: Heading | None = None
        self.taken = False
        self.lead = True
        self.top_indent: int | None = None
        self.explained = False
        # The open list items: their indents and spans.
        self.items: list[tuple[int, tuple[int, int]]] = []
        self.current: Block | None = None
        self.after_blank = True

    def read(self) -> TextLayout:
        starts = {m.first: m for m in self.letters}
        i = 0
        while i < len(self.lines):
            line = self.lines[i]
            if i in starts:
                self._letter(starts[i])
                i = starts[i].body
                continue
            if i not in self.skip and not line.blank and self.text[line.body] == "|":
                i = self._table(i)
                continue
            self._line(i, line)
            i += 1
        self._flush()
        return self.layout

    def _add_participants(self) -> None:
        """Put the listed participants on the roster before turns are recognised."""
        listing = False
        for i, line in enumerate(self.lines):
            if i in self.headings:
                listing = self.headings[i].kind is SectionKind.ATTENDEES
            elif not line.blank and i not in self.skip:
                entry = self.text[line.body : min(line.end, line.body + MAX_ENTRY)]
                after = sentence_labels.attendee_label(entry)
                listing = listing and people.is_listing(entry)
                if listing or after is not None:
                    for person in people.listed(entry[after or 0 :]):
                        self.layout.roster.add(person.name)
                    people.explain(self.layout.roster, entry, listing=True)

    # -- one line ---------------------------------------------------------------------------

    def _line(self, i: int, line: Line) -> None:
        if line.blank:
            self._flush()
            self.after_blank = True
            if not self.persists:
                self.speaker = None
            return
        if i in self.skip:
            self._flush()
        elif i in self.headings:
            self._heading(self.headings[i])
        elif i in self.turns and not self._assigns(line):
            self._turn(line, self.turns[i])
        elif self._day_line(line):
            self._flush()
        elif line.bullet:
            self._flush()
            if not self.persists:
                self.speaker = None
            self._begin(line, line.body)
        elif self.current is not None and not self._next_field(line) and not self._titled(line):
            self.current = replace(self.current, end=line.end)
        else:
            self._flush()
            self._begin(line, line.body)
        self.after_blank = False

    def _next_field(self, line: Line) -> bool:
        """ "Author: …" below "Title: …": each field of a head is a separate line."""
        if self.current is not None and self.text[self.current.end - 1] == "\\":
            return True  # the writer marked a line break
        return (
            self.current is not None
            and _FIELD.match(self.text, line.start, line.end) is not None
            and _FIELD.match(self.text, self.current.start, self.current.end) is not None
        )

    def _assigns(self, line: Line) -> bool:
        """ "- Ann: send it" in a list of tasks is no turn."""
        return line.box is not None or (line.bullet and self._section().kind is SectionKind.ACTION)

    def _titled(self, line: Line) -> bool:
        """ "3. Finance" above a line that is not indented is a title, not the beginning of that
        line."""
        current = self.current
        if current is None or not current.bullet or line.indent > 0:
            return False
        title = self.text[current.start : current.end]
        return len(title) < _MAX_TITLE and title[-1].isalnum() and self.text[line.body].isupper()

    def _flush(self) -> None:
        if self.current is not None:
            if not self.current.bullet:
                prose = self.text[
                    max(self.current.start, self.current.end - 200) : self.current.end
                ]
                self.explained = _ANNOUNCES.search(prose) is None
            self.layout.blocks.append(self.current)
            self.current = None

    def _begin(self, line: Line, start: int) -> None:
        self._close_label(line)
        if start < line.end:
            speaker = self.speaker or self.author
            self.current = Block(
                start, line.end, self._section(), self._anchor(), line.bullet, line.box, speaker,
                self.speaker is not None, self.lead, self._nested(line),
                line.bullet and self.explained, self._parent(line, start),
            )  # fmt: skip
            self.lead = False
            self.taken = True

    def _parent(self, line: Line, start: int) -> tuple[int, int] | None:
        if not line.bullet:
            return self.items[-1][1] if self.items and line.indent > self.items[-1][0] else None
        while self.items and self.items[-1][0] >= line.indent:
            self.items.pop()
        parent = self.items[-1][1] if self.items else None
        self.items.append((line.indent, (start, line.end)))
        return parent

    def _nested(self, line: Line) -> bool:
        if not line.bullet:
            return False
        if self.top_indent is None or line.indent < self.top_indent:
            self.top_indent = line.indent
        return line.indent > self.top_indent

    # -- changes of the surroundings ------------------------------------------------------------

    def _heading(self, heading: Heading) -> None:
        self._flush()
        self.speaker, self.persists = None, False
        self.lead, self.taken, self.top_indent = True, False, None
        self.explained = False
        if heading.indent < 0:
            self.items.clear()
        if heading.label:
            self.label = heading
            return
        self.label = None
        while self.stack and self.stack[-1].heading.level >= heading.level:
            self.stack.pop()
        self.stack.append(_Open(heading, self._heading_anchor(heading.title)))
        if self.layout.title is None:
            self.layout.title = heading.title

    def _heading_anchor(self, title: str) -> Anchor | None:
        day = dates.leading_day(title)
        if day is not None:
            return Anchor(day, stated=True)
        if sections.release_of(title):
            return Anchor()  # an older release than the document
        near = self.dated[0] if self.dated else None
        partial, day = dates.leading_partial(title, self.document_day, near)
        # A dated passage must not be resolved against the date of the whole document.
        return Anchor(day, stated=day is not None) if partial else None

    def _close_label(self, line: Line) -> None:
        if self.label is None:
            return
        if self.label.indent >= 0:
            over = line.indent <= self.label.indent
        else:
            over = self.taken and self.after_blank and not line.bullet
            dedented = self.top_indent is not None and line.indent < self.top_indent
            over = over or (line.bullet and dedented)
        if over:
            self.label, self.top_indent = None, None

    def _turn(self, line: Line, turn: turns.SpeakerTurn) -> None:
        self._flush()
        self.speaker = self.layout.roster.resolve(turn.speaker)
        self.persists = self.talk or turn.body >= line.end
        if turn.day is not None:
            day = dates.leading_day(turn.day)
            self.anchor = Anchor(day, stated=day is not None)
        self._begin(line, turn.body)

    def _day_line(self, line: Line) -> bool:
        """A line that is only a date sets the day for the following lines: minutes and chat
        logs."""
        if line.end - line.body > _MAX_DATE_LINE:
            return False
        match = _DATE_LINE.match(self.text, line.body, line.end)
        if match is None:
            return False
        value = match["labelled"] or match["bare"]
        if match["bare"] and (line.bullet or not _STARTS_WITH_DATE.match(value)):
            return False
        day = dates.leading_day(value)
        if day is None:
            return False
        self.anchor = Anchor(day, stated=True)
        return True

    def _letter(self, letter: mail.MailHeader) -> None:
        self._flush()
        senders = people.mailboxes(letter.headers["from"])
        self.author = senders[0][0] if senders else people.tidy(letter.headers["from"])
        for key in ("from", "to", "cc"):
            for name, address in people.mailboxes(letter.headers.get(key, "")):
                self.layout.roster.add(name, address)
        self.speaker, self.persists = None, False
        self.stack.clear()
        self.label = None
        self.layout.title = self.layout.title or letter.headers.get("subject")
        sent = _mail_day(letter.headers.get("date") or letter.headers.get("sent"))
        if sent is not None:
            self.anchor = Anchor(sent, stated=True)

    # -- the surroundings ------------------------------------------------------------------------

    def _anchor(self) -> Anchor:
        for opened in reversed(self.stack):
            if opened.anchor is not None:
                return opened.anchor
        return self.anchor

    def _section(self) -> Section:
        titles = [opened.heading for opened in self.stack]
        if self.label is not None:
            titles.append(self.label)
        topic = next(
            (h.title for h in reversed(titles) if h.kind is SectionKind.PLAIN and not h.label), ""
        )
        release = next((r for h in reversed(titles) if (r := sections.release_of(h.title))), "")
        owner: str | None = None
        for depth, heading in enumerate(reversed(titles)):
            if heading.kind is not SectionKind.PLAIN:
                return Section(heading.kind, titles[-1].title, owner, depth > 0, topic, release)
            if depth == 0 and people.is_name(heading.title):
                owner = people.tidy(heading.title)
        return Section(SectionKind.PLAIN, titles[-1].title if titles else "", topic=topic)

    # -- tables ----------------------------------------------------------------------------------

    def _table(self, i: int) -> int:
        self._flush()
        rows = []
        while i < len(self.lines):
            line = self.lines[i]
            if line.blank or self.text[line.body] != "|" or i in self.skip:
                break
            rows.append(_cells(self.text, line))
            i += 1
        self.layout.tables.append(Table(tuple(rows), self._section(), self._anchor()))
        return i


def _cells(text: str, line: Line) -> tuple[tuple[int, int], ...]:
    cells = []
    start = line.body + 1
    while start < line.end:
        bar = text.find("|", start, line.end)
        end = bar if bar >= 0 else line.end
        left, right = start, end
        while left < right and text[left].isspace():
            left += 1
        while right > left and text[right - 1].isspace():
            right -= 1
        cells.append((left, right))
        start = end + 1
    return tuple(cells)


def _mail_day(value: str | None) -> date | None:
    if not value:
        return None
    try:
        return parsedate_to_datetime(value).date()
    except (ValueError, TypeError, IndexError, OverflowError):
        return dates.leading_day(value)
