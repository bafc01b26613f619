"""Speaker turns: who says a line, in minutes, chats and transcripts."""

from collections import Counter
from dataclasses import dataclass

from memory_core.extraction.rules import sentence_labels
from memory_core.extraction.rules.lines import Line
from memory_core.extraction.rules.patterns import LETTER
from memory_core.extraction.rules.people import Roster, is_name, tidy
from memory_core.text import timed_patterns as re

_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,3})?)?(?:\s?[AaPp]\.?[Mm]\.?)?"
_DAY = r"(?P<day>\d{4}-\d{2}-\d{2}|\d{1,2}[./]\d{1,2}[./]\d{2,4})"
_STAMP = rf"(?:{_DAY}[,T ]{{1,2}}\s?)?{_CLOCK}(?:Z|[+-]\d{{2}}:?\d{{2}})?"
_NICK = r"[A-Za-z_\[\]\\`^{}|][\w\-\[\]\\`^{}|.]{0,30}"
_WHO = (
    rf"(?P<who>[@+~]?{LETTER}[^:\[\]<>()\n!?;,]{{0,40}}?|"
    rf"{LETTER}[\w'\-]{{1,30}}, {LETTER}[\w'\-]{{1,30}})"
)

# In order of certainty; all are anchored at the first word of a line.
_CLOCKED = rf"[\[(]?{_STAMP}[\])]?(?:\s?-)?\s{{1,3}}"
_STAMPED_IRC = re.compile(rf"{_CLOCKED}<[ @+%~&]?(?P<who>{_NICK})>(?:\s|$)")
_STAMPED = re.compile(rf"{_CLOCKED}\*{{0,2}}{_WHO}\*{{0,2}}:\*{{0,2}}(?:\s|$)")
_TIMED = re.compile(rf"\*{{0,2}}{_WHO}\*{{0,2}}\s{{1,3}}[(\[]{_STAMP}[)\]]\*{{0,2}}\s?(?::|$)")
_ALONE = re.compile(
    rf"\*{{0,2}}{_WHO}\*{{0,2}}(?:\s[-–—])?\s{{1,4}}(?:{_DAY},? |\w{{5,9}} at )?{_CLOCK}\s*$"
)
_IRC = re.compile(rf"<[ @+%~&]?(?P<who>{_NICK})>\s")
_BOLD = re.compile(rf"\*\*{_WHO}(?::\*\*|\*\*\s?:)(?:\s|$)")
# "[ann] I'd be happy to review": minutes that say who raised a point.
_BRACKETED = re.compile(r"\\?\[(?P<who>@?[^\W\d_][\w .\-]{1,30})\\?\]:?\s")
_PLAIN = re.compile(rf"{_WHO}(?:\s?\([^()\n]{{1,60}}\))?:(?:\s|$)")
# Notices of the chat program: "=== ann is now known as bob", "* ann waves".
_NOISE = re.compile(rf"(?:{_CLOCKED})?(?:===|\*\*\*|-!-|-->|<--|[*•])\s")
# "12.05.23, 18:02 - Ann created the group", in a log whose messages have a clock time.
_CLOCK_ONLY = re.compile(rf"{_CLOCKED}\S")

_CERTAIN = (_STAMPED_IRC, _STAMPED, _TIMED, _ALONE)
_HONORIFIC = re.compile(
    r"(?:(?:right |rt\.? )?hon|mr|mrs|ms|mme|dr)(?:\.\s?|\s)(?=\S+\s\S)", re.IGNORECASE
)
_MAX_WORDS = 5
# A prefix that recurs is a speaker; one that occurs once may be any word with a colon.
_MIN_RETURNS = 2


@dataclass(frozen=True, slots=True)
class SpeakerTurn:
    speaker: str
    # Where the words begin, after the speaker.
    body: int
    day: str | None = None


def find(
    text: str, lines: list[Line], skip: set[int], roster: Roster, kind: str
) -> tuple[dict[int, SpeakerTurn], set[int]]:
    """Turns by line, and the notices of the chat program. A bare "X:" counts in chats and
    transcripts, for people on the roster, and where at least two such prefixes take turns."""
    talk = kind in ("chat", "transcript")
    margin: int | None = None
    certain: dict[int, SpeakerTurn] = {}
    possible: dict[int, SpeakerTurn] = {}
    is_log = stamped = False
    for i, line in enumerate(lines):
        if i in skip or line.blank:
            continue
        if talk and margin is not None and line.indent > margin:
            continue  # a continuation of a turn, whatever it looks like
        turn, logged = _certain(text, line, talk)
        if turn is not None:
            certain[i] = turn
            margin = line.indent
            is_log = is_log or logged
            stamped = stamped or _CLOCK_ONLY.match(text, line.start, line.end) is not None
        elif (turn := _possible(text, line)) is not None:
            possible[i] = turn
    recurring = _recurring(possible)
    for i, turn in possible.items():
        if _takes_turns(
            turn.speaker, talk and not lines[i].bullet, turn.speaker in recurring, roster
        ):
            certain[i] = turn
    marks = ([_NOISE] if is_log else []) + ([_CLOCK_ONLY] if talk and stamped else [])
    noise = {i for i, n in enumerate(lines) if any(m.match(text, n.start, n.end) for m in marks)}
    return dict(sorted(certain.items())), noise - certain.keys()


def _takes_turns(who: str, talk: bool, recurs: bool, roster: Roster) -> bool:
    if sentence_labels.is_event_label(who):
        return False
    if sentence_labels.is_label(who):
        # Transcripts may name their speakers by role: "Project Manager: …".
        return talk and (recurs or who in roster.names)
    # A participant may be given with a title: "Hon. Ann Lee".
    if talk and (is_name(who) or len(who) == 1 or any(n.endswith(who) for n in roster.names)):
        return True
    # "parser: fixed a crash" in a list of changes is no speaker.
    return recurs if talk else is_name(who) and (roster.knows(who) or (recurs and who[0].isupper()))


def _certain(text: str, line: Line, talk: bool) -> tuple[SpeakerTurn | None, bool]:
    """The turn of a line with a clock time, and whether the line is from a chat log."""
    for pattern in _CERTAIN:
        match = pattern.match(text, line.body, line.end)
        if match is None:
            continue
        logged = pattern is _STAMPED_IRC
        who = match["who"] if logged else _speaker(match["who"])
        if who and not sentence_labels.is_event_label(who) and (talk or logged or is_name(who)):
            day = match.groupdict().get("day")
            turn = SpeakerTurn(who, _skip_space(text, match.end(), line.end), day)
            return turn, logged
    return None, False


def _possible(text: str, line: Line) -> SpeakerTurn | None:
    for pattern in (_IRC, _BOLD, _PLAIN, _BRACKETED):
        match = pattern.match(text, line.body, line.end)
        if match and (who := _speaker(match["who"])):
            return SpeakerTurn(who, _skip_space(text, match.end(), line.end))
    return None


def _speaker(raw: str) -> str | None:
    last, comma, first = tidy(raw).partition(", ")
    who = _HONORIFIC.sub("", f"{first} {last}" if comma else last, count=1)
    return who if who and len(who.split()) <= _MAX_WORDS else None


def _skip_space(text: str, start: int, end: int) -> int:
    while start < end and text[start].isspace():
        start += 1
    return start


def _recurring(possible: dict[int, SpeakerTurn]) -> set[str]:
    counts = Counter(turn.speaker for turn in possible.values())
    recurring = {who for who, count in counts.items() if count >= _MIN_RETURNS}
    return recurring if len(recurring) >= 2 else set()
