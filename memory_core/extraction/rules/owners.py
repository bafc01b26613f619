"""Owners of a task, from the notations in which lists assign them."""

from dataclasses import dataclass

from memory_core.extraction.rules import sentence_labels, verbs, word_lists
from memory_core.extraction.rules.patterns import HANDLE, NAME, NAMES, word_set, words
from memory_core.extraction.rules.people import (
    NOT_NAMES,
    Roster,
    is_name,
    may_be_person,
    names_in,
    tidy,
)
from memory_core.text import timed_patterns as re

# A lower-case word, or one with digits or underscores: "OBI1", "Dr_Willis".
_LOWER = r"(?:[a-z][\w\-]{2,30}|(?=[A-Za-z]\w{0,30}[\d_])[A-Za-z][\w\-]{1,30})"
_TASK = words(verbs.IMPERATIVE)

# "Ann to send", "Ann will send", "[ann] send", "Ann: send", "@ann send".
_LEADING = (
    re.compile(
        rf"(?P<who>{NAMES}|{_LOWER}(?:(?:/|, ?| and | & ){_LOWER}){{0,3}}) (?:to|will|shall|should|"
        rf"is going to|is to|are to|needs to)(?: also)? (?P<body>\w.*)",
        re.DOTALL,
    ),
    re.compile(
        rf"[\[(](?P<who>{NAMES}|{_LOWER}(?:, ?{_LOWER}){{0,3}})[\])](?!\()\s?[:\-–]?\s?"
        r"(?P<body>\S.*)",
        re.DOTALL,
    ),
    re.compile(rf"(?P<who>{NAMES})(?::| [-–—]) (?P<body>\S.*)", re.DOTALL),
    re.compile(rf"(?P<who>{_LOWER}): (?P<body>\S.*)", re.DOTALL),
    re.compile(
        rf"(?P<who>{HANDLE}(?:(?:,| and|/) ?{HANDLE}){{0,3}}) (?P<body>{_TASK}\b.*)",
        re.DOTALL | re.IGNORECASE,
    ),
)
# "... (Ann, by 12 March)", "... [ann]", "... - Ann", "... @ann", "... Owner: Ann".
_TRAILING = (
    re.compile(
        rf"(?P<body>.*?)[(\[](?:owners?|assignee|assigned to|action|ai|who)"
        rf"?:? ?(?P<who>{NAMES}|@?{_LOWER})"
        rf"(?P<rest>(?:[,;:]| by| due| before| until)[^()\[\]]{{0,40}})?[)\]][.\s]*$",
        re.DOTALL | re.IGNORECASE,
    ),
    re.compile(
        rf"(?P<body>.*?)[\s,;.\-–—(]*\b(?:[Oo]wner|[Aa]ssignee|[Aa]ssigned to|[Rr]esponsible|"
        rf"[Ww]ho):? "
        rf"(?P<who>{NAMES})[).\s]*$",
        re.DOTALL,
    ),
    re.compile(rf"(?P<body>.*?) [-–—] (?P<who>{NAMES}|{HANDLE})[.\s]*$", re.DOTALL),
    re.compile(
        rf"(?P<body>.*?) (?P<who>{HANDLE}(?:(?:,| and|/)? {HANDLE}){{0,3}})[.\s]*$", re.DOTALL
    ),
)
_MAX_ITEM = 600


@dataclass(frozen=True, slots=True)
class Assignment:
    owners: tuple[str, ...]
    body: str


def assignment(raw: str, roster: Roster) -> Assignment:
    """The owners of a task, and the task; no owners if the text names none."""
    item = " ".join(raw.replace("*", "").split())[:_MAX_ITEM]
    for pattern in _LEADING:
        match = pattern.match(item)
        if match and (owners := _people(match["who"], roster)):
            does = "to " if pattern is _LEADING[0] else ""
            return Assignment(owners, does + match["body"])
    for pattern in _TRAILING:
        match = pattern.match(item)
        if match and (owners := _people(match["who"], roster)):
            rest = (match.groupdict().get("rest") or "").strip(" ,;:")
            return Assignment(owners, f"{match['body'].rstrip()} {rest}".strip())
    return Assignment((), item)


def named_owner(raw: str, roster: Roster) -> tuple[str, ...]:
    """The owner that an entry states explicitly: "... (Owner: Ann)"."""
    match = _OWNED.search(" ".join(raw.replace("*", "").split())[:_MAX_ITEM])
    return _people(match["who"], roster) if match else ()


def dated_assignment(item: str) -> re.Match[str] | None:
    """ "(Ann, by 12 March)" at the end: an assignment wherever it stands."""
    return _DATED.search(item)


_OWNED = re.compile(rf"\b(?:[Oo]wner|[Aa]ssignee|[Aa]ssigned to|[Oo]wned by):? (?P<who>{NAMES})")
_DATED = re.compile(rf"\((?P<who>{NAME}|{HANDLE}),? (?:by|due|before|until) [^()]{{2,30}}\)[.\s]*$")


def _people(phrase: str, roster: Roster) -> tuple[str, ...]:
    handles = [tidy(part) for part in _SEPARATOR.split(phrase)]
    if all(_HANDLE.fullmatch(handle) for handle in handles):
        all_handles = all(_handle(h, roster) for h in handles)
        return tuple(roster.resolve(h) for h in handles) if all_handles else ()
    names = [name for name in names_in(phrase) if len(name) > 1]
    if any(_is_word(name, roster) for name in names):
        return ()
    if not all(roster.knows(name) or is_name(name) for name in names):
        return ()
    return tuple(dict.fromkeys(roster.resolve(name) for name in names))


_HANDLE = re.compile(_LOWER)
_SEPARATOR = re.compile(r"\s*(?:/|,|&|\band\b)\s*")


# Lower-case words that open an item or a parenthesis and are no handles.
_COMMON = word_set(verbs.IMPERATIVE, word_lists.words("people", "not_handles")) | NOT_NAMES


def _is_word(name: str, roster: Roster) -> bool:
    """ "Convert to labels": a capital at the start of an item does not make it a name."""
    if roster.knows(name) or name.startswith("@"):
        return False
    return name.lower() in _COMMON or sentence_labels.is_label(name) or not may_be_person(name)


def _handle(word: str, roster: Roster) -> bool:
    is_handle = is_name(word) and word not in _COMMON and not sentence_labels.is_label(word)
    return roster.knows(word) or is_handle
