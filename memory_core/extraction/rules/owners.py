"""Owners of a task, from the ways in which lists assign them."""

import re
from dataclasses import dataclass

from memory_core.extraction.rules import labels, verbs
from memory_core.extraction.rules.patterns import HANDLE, NAME, NAMES, word_set, words
from memory_core.extraction.rules.people import Roster, is_name, may_be_person, names_in, tidy

_LOWER = r"[a-z][\w\-]{2,30}"
_TASK = words(verbs.IMPERATIVE)

# "Ann to send", "Ann will send", "[ann] send", "Ann: send", "@ann send".
_LEADING = (
    re.compile(
        rf"(?P<who>{NAMES}|{_LOWER}(?:(?:/|, ?| and | & ){_LOWER}){{0,3}}) (?:to|will|shall|should|"
        rf"is going to|is to|are to|needs to)(?: also)? (?P<body>\w.*)",
        re.DOTALL,
    ),
    re.compile(
        rf"[\[(](?P<who>{NAMES}|{_LOWER}(?:, ?{_LOWER}){{0,3}})[\])]\s?[:\-–]?\s?(?P<body>\S.*)",
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
    """Who a task is given to and what it is; no owners when it does not say."""
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
    """The owner that an entry names in so many words: "... (Owner: Ann)"."""
    match = _OWNED.search(" ".join(raw.replace("*", "").split())[:_MAX_ITEM])
    return _people(match["who"], roster) if match else ()


def dated_assignment(item: str) -> re.Match[str] | None:
    """ "(Ann, by 12 March)" at the end: an assignment wherever it stands."""
    return _DATED.search(item)


_OWNED = re.compile(rf"\b(?:[Oo]wner|[Aa]ssignee|[Aa]ssigned to|[Oo]wned by):? (?P<who>{NAMES})")
_DATED = re.compile(rf"\((?P<who>{NAME}|{HANDLE}),? (?:by|due|before|until) [^()]{{2,30}}\)[.\s]*$")


def _people(phrase: str, roster: Roster) -> tuple[str, ...]:
    if phrase.islower() and not phrase.startswith("@"):
        handles = [tidy(part) for part in _SEPARATOR.split(phrase)]
        known = all(_handle(h, roster) for h in handles)
        return tuple(roster.resolve(h) for h in handles) if known else ()
    found = [name for name in names_in(phrase) if len(name) > 1]
    if any(_is_word(name, roster) for name in found):
        return ()
    if not all(roster.knows(name) or is_name(name) for name in found):
        return ()
    return tuple(dict.fromkeys(roster.resolve(name) for name in found))


_SEPARATOR = re.compile(r"\s*(?:/|,|&|\band\b)\s*")


# Lower-case words that open an item or a parenthesis and are no handles.
_COMMON = word_set(
    verbs.IMPERATIVE,
    """everyone everybody anyone someone nobody somebody all team group need want someone
        optional done wip tbd blocked stretch maybe later today tomorrow yesterday soon asap high
        low medium urgent internal external links link more see above below etc open closed merged
        draft new old pending ongoing beta alpha stable issue issues work also note question
        discuss discussed doc docs code tests example first second third next last same similar
        need needs want wants plan plans how able ready due going try trying back have has according
        related proposal request requests ability way ways time decision link links support changes
        change reason reasons effort efforts attempt attempts option options goal goals idea ideas
        permission chance opportunity failure failures steps step intent intention desire reviewers
        reviewer maintainers maintainer owners owner contributors contributor users user folks
        people leads lead chairs authors author volunteers volunteer developers engineers it this
        that there
        which what who we they you someone's sig wg community release branch job jobs test bug bugs
        feature features api kubelet node service server client cluster system tool tools script
        migration update updates fix fixes patch patches pr prs kep keps adr rfc""",
)


def _is_word(name: str, roster: Roster) -> bool:
    """ "Convert to labels": a capital at the start of an item makes no name."""
    if roster.knows(name) or name.startswith("@"):
        return False
    return name.lower() in _COMMON or labels.is_label(name) or not may_be_person(name)


def _handle(word: str, roster: Roster) -> bool:
    known = is_name(word) and word not in _COMMON and not labels.is_label(word)
    return roster.knows(word) or known
