"""Speaker turns: who says a line, in minutes, chats and transcripts."""

import re
from collections import Counter
from dataclasses import dataclass

from memory_core.extraction.rules import labels
from memory_core.extraction.rules.lines import Line
from memory_core.extraction.rules.patterns import LETTER
from memory_core.extraction.rules.people import Roster, is_name, tidy

_CLOCK = r"\d{1,2}[:.]\d{2}(?:[:.]\d{2}(?:[.,]\d{1,3})?)?(?:\s?[AaPp]\.?[Mm]\.?)?"
_DAY = r"(?P<day>\d{4}-\d{2}-\d{2}|\d{1,2}[./]\d{1,2}[./]\d{2,4})"
_STAMP = rf"(?:{_DAY}[,T ]{{1,2}}\s?)?{_CLOCK}"
_WHO = rf"(?P<who>[@+~]?{LETTER}[^:\[\]<>()\n!?;,]{{0,40}}?)"

# In order of certainty; all are anchored at the words of a line.
_CLOCKED = rf"[\[(]?{_STAMP}[\])]?(?:\s?-)?\s{{1,3}}"
_STAMPED = re.compile(rf"{_CLOCKED}\*{{0,2}}{_WHO}\*{{0,2}}:\*{{0,2}}(?:\s|$)")
_STAMPED_IRC = re.compile(rf"{_CLOCKED}<[ @+]?{_WHO}>(?:\s|$)")
_IRC = re.compile(r"<[ @+]?(?P<who>[A-Za-z_][\w\-\[\]|]{0,30})>\s")
_TIMED = re.compile(rf"\*{{0,2}}{_WHO}\*{{0,2}}\s{{1,3}}[(\[]{_STAMP}[)\]]\*{{0,2}}\s?(?::|$)")
_ALONE = re.compile(rf"\*{{0,2}}{_WHO}\*{{0,2}}\s{{1,4}}{_CLOCK}\s*$")
_BOLD = re.compile(rf"\*\*{_WHO}(?::\*\*|\*\*\s?:)(?:\s|$)")
_PLAIN = re.compile(rf"{_WHO}:(?:\s|$)")

_CERTAIN = (_STAMPED, _STAMPED_IRC, _TIMED, _ALONE)
_MAX_WORDS = 4
# A prefix that returns is a speaker; one that stands once may be any word with a colon.
_MIN_RETURNS = 2


@dataclass(frozen=True, slots=True)
class Turn:
    speaker: str
    # Where the words begin, after the mark.
    body: int
    day: str | None = None


def find(
    text: str, lines: list[Line], skip: set[int], roster: Roster, kind: str
) -> dict[int, Turn]:
    """Turns by line. A bare "X:" counts in chats and transcripts, for people on the roster, and
    where at least two such prefixes take turns."""
    talk = kind in ("chat", "transcript")
    margin: int | None = None
    certain: dict[int, Turn] = {}
    possible: dict[int, Turn] = {}
    for i, line in enumerate(lines):
        if i in skip or line.blank:
            continue
        if talk and margin is not None and line.indent > margin:
            continue  # further words of a turn, whatever they look like
        turn = _certain(text, line, talk)
        if turn is not None:
            certain[i] = turn
            margin = line.indent
        elif (turn := _possible(text, line, talk)) is not None:
            possible[i] = turn
    speakers = _recurring(possible)
    for i, turn in possible.items():
        if (talk and not lines[i].bullet) or roster.knows(turn.speaker) or turn.speaker in speakers:
            certain[i] = turn
    return dict(sorted(certain.items()))


def _certain(text: str, line: Line, talk: bool) -> Turn | None:
    for pattern in (*_CERTAIN, *((_IRC,) if talk else ())):
        match = pattern.match(text, line.body, line.end)
        if match and (who := _speaker(match["who"], talk)):
            day = match.groupdict().get("day")
            return Turn(who, _skip_space(text, match.end(), line.end), day)
    return None


def _possible(text: str, line: Line, talk: bool) -> Turn | None:
    match = _BOLD.match(text, line.body, line.end) or _PLAIN.match(text, line.body, line.end)
    if match is None:
        return None
    who = _speaker(match["who"], talk)
    if who is None or not (is_name(who) or len(who) == 1):
        return None
    return Turn(who, _skip_space(text, match.end(), line.end))


def _speaker(raw: str, talk: bool) -> str | None:
    who = tidy(raw)
    if not talk and not is_name(who):
        return None
    # Transcripts call their speakers A, B, C; elsewhere "A:" answers "Q:".
    if talk and len(who) == 1 and who.isupper():
        return who
    if not who or len(who.split()) > _MAX_WORDS or labels.is_label(who):
        return None
    return who


def _skip_space(text: str, start: int, end: int) -> int:
    while start < end and text[start].isspace():
        start += 1
    return start


def _recurring(possible: dict[int, Turn]) -> set[str]:
    counts = Counter(turn.speaker for turn in possible.values())
    recurring = {who for who, count in counts.items() if count >= _MIN_RETURNS}
    return recurring if len(recurring) >= 2 else set()
