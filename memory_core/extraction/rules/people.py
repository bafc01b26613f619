"""People: who a text names, under which names, and whether a word can be a person at all.

Two names are the same person only if the document says so ("Alice Chen (AC)", a mail address next
to a name). A shared first name never merges two people.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from memory_core.extraction.rules.patterns import HANDLE, NAME, NAME_WORD, UPPER, word_set
from memory_core.extraction.rules.patterns import words as alternatives
from memory_core.extraction.rules.word_lists import words
from memory_core.text import timed_patterns as re

_FULL_NAME = rf"{NAME_WORD}(?: (?:(?:van|von|de|da|del|der|la|bin|al) )?{NAME_WORD}){{1,2}}"
_ADDRESS = re.compile(r"<(?P<mail>[\w.+\-]{1,64}@[\w.\-]{1,100})>")
# The name before an address starts after the last mark that separates people.
_BEFORE_ADDRESS = re.compile(r"[^\"<>@,;:\n]{1,60}\"?\s{0,3}$")
_INITIALS = re.compile(rf"(?P<name>{_FULL_NAME}) \((?P<alias>{UPPER}{{2,4}}|{HANDLE})\)")
_MAX_NAME = 70
_LIST_SEPARATOR = re.compile(r"\s*(?:[,;/]|\band\b|&|\+)\s*")
_ASIDE = re.compile(r"\([^()]{0,80}\)|\[[^\[\]]{0,80}\]|<[^<>]{0,120}>")
_NAME_ONLY = re.compile(rf"{NAME}")
# A lower-case word, or one that no language has: with digits or underscores.
_HANDLE_ONLY = re.compile(r"@?(?:[a-z][\w\-]{1,30}|(?=\w{0,30}[\d_])[A-Za-z][\w\-.]{1,30})")

_CAMEL = ("Mc", "Mac", "O'", "De", "Di", "La", "Le", "Van")
NOT_NAMES = word_set(words("people", "not_names"))
# These make a capitalised word at the start of a sentence a person.
_FIRST_NAMES = word_set(words("people", "first_names"))


@dataclass(slots=True)
class Roster:
    """The people of a text. `aliases` maps a stated alias to the full name."""

    names: dict[str, list[str]] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)
    # In speech: capitalised words inside sentences, which are usually people.
    spoken_of: set[str] = field(default_factory=set)

    def add(self, name: str, *aliases: str) -> None:
        name = tidy(name)
        if not name:
            return
        name = self.resolve(name)
        aliases_of_name = self.names.setdefault(name, [])
        parts = name.lower().split()
        self.tokens.update(p for p in parts if len(p) > 1 and p.strip(".") not in NOT_NAMES)
        for alias in aliases:
            if alias and alias != name and self.aliases.setdefault(_key(alias), name) == name:
                if alias not in aliases_of_name:
                    aliases_of_name.append(alias)
                self.tokens.add(_key(alias).lstrip("@"))

    def resolve(self, ref: str) -> str:
        return self.aliases.get(_key(ref), ref)

    def knows(self, ref: str) -> bool:
        """Whether a name, or each of its words, belongs to a person on the roster."""
        if ref in self.names or _key(ref) in self.aliases:
            return True
        parts = ref.lower().lstrip("@").rstrip(".").split()
        return bool(parts) and parts[0] in self.tokens and all(p not in NOT_NAMES for p in parts)

    def is_person(self, ref: str) -> bool:
        """Whether there is a reason to take a name for a person: it is a handle, the roster has it,
        or it begins with a first name. A capital alone is no reason, since every sentence begins
        with one."""
        if ref.startswith("@") or self.knows(ref):
            return True
        first, *_ = ref.lower().split() or [""]
        return first.partition("-")[0] in _FIRST_NAMES and _name_shaped(ref)


def _key(alias: str) -> str:
    # Initials differ from words by their case; handles and addresses ignore case.
    return alias if alias.isupper() else alias.lower()


def tidy(name: str) -> str:
    return " ".join(_ASIDE.sub("", name).replace("*", "").strip(" \t\"'“”:;,-•").split())


def _name_shaped(ref: str) -> bool:
    parts = ref.split()
    if any(_bare(part) in NOT_NAMES for part in parts):
        return False
    # Acronyms and CamelCase words are things, unless the roster has them.
    return all(part[0].isupper() and not _looks_technical(part) for part in parts)


def may_be_person(ref: str) -> bool:
    """For places where the syntax already requires a person: "Ann: send it"."""
    return _name_shaped(ref) or (is_name(ref) and not _looks_technical(ref))


def _bare(part: str) -> str:
    """The word in lower case, without its clitic ("He's", "Ann's")."""
    return part.lower().rstrip(".").partition("'")[0]


def _looks_technical(part: str) -> bool:
    letters = part.rstrip(".")
    if len(letters) > 1 and letters.isupper():
        return True
    inner = letters[1:].replace("'", "").replace("-", "")
    camel = any(c.isupper() for c in inner) and not part.startswith(_CAMEL)
    return camel and "-" not in part


def names_in(phrase: str) -> list[str]:
    """The names in a phrase such as "Alice, Bob and @carol", or "Yesterday Alice"."""
    names = []
    for part in _LIST_SEPARATOR.split(_ASIDE.sub("", phrase)):
        part = _without_opener(part.strip(" .:;-*"))
        if part and (_NAME_ONLY.fullmatch(part) or part.startswith("@")):
            names.append(part)
    return names


def _without_opener(part: str) -> str:
    """The name without a capitalised opener of its sentence."""
    tokens = part.split()
    while len(tokens) > 1 and _bare(tokens[0]) in NOT_NAMES:
        tokens = tokens[1:]
    return " ".join(tokens)


def is_name(phrase: str) -> bool:
    """Whether it can be a name in a list of people: a person's name, or a lower-case handle."""
    phrase = tidy(phrase)
    if not phrase or len(phrase) > 50:
        return False
    if _HANDLE_ONLY.fullmatch(phrase):
        return phrase.lower() not in NOT_NAMES
    return _NAME_ONLY.fullmatch(phrase) is not None and _listed_person(phrase)


def _listed_person(phrase: str) -> bool:
    # In "Joseph A Davis" the initial is no article.
    parts = [part for part in phrase.split() if len(part) > 1] or [phrase]
    return not any(_bare(part) in NOT_NAMES for part in parts)


def mailboxes(value: str) -> list[tuple[str, str]]:
    """(name, address) pairs of a header field or a participants entry."""
    pairs = []
    for match in _ADDRESS.finditer(value):
        lead = value[max(0, match.start() - _MAX_NAME) : match.start()]
        name = _BEFORE_ADDRESS.search(lead)
        if name and name.group().strip(" '\""):
            pairs.append((name.group().strip(" '\""), match["mail"]))
    return pairs


def collect(roster: Roster, text: str, given: Iterable[str]) -> None:
    """Fill the roster from the document's context and from statements in its text."""
    for entry in given:
        pairs = mailboxes(entry)
        if pairs:
            for name, mail in pairs:
                roster.add(name, mail)
        else:
            _add_entry(roster, entry)
    for name, mail in mailboxes(text):
        if is_name(name):
            roster.add(name, mail)
    explain(roster, text)


# A capital after a lower-case word; plurals and acronyms are things.
_MENTIONED = re.compile(rf"(?<=[a-z,] )(?P<name>{UPPER}[a-z]{{2,12}})(?<!s)(?=[ ,.?])")


def add_mentioned(roster: Roster, text: str) -> None:
    """The names that speech mentions. They make the same word at the start of a sentence a
    person."""
    for match in _MENTIONED.finditer(text):
        if _name_shaped(match["name"]):
            roster.spoken_of.add(match["name"])


def explain(roster: Roster, text: str, listing: bool = False) -> None:
    """Add the initials and handles that follow names. Products have initials as well, so outside of
    a list of people the name must be a person's."""
    for match in _INITIALS.finditer(text):
        name, alias = match["name"], match["alias"]
        is_person = listing or roster.is_person(name)
        if is_person and (alias.startswith("@") or _are_initials(alias, name)):
            roster.add(name, alias)


def _add_entry(roster: Roster, entry: str) -> None:
    match = _INITIALS.match(entry)
    if match:
        roster.add(match["name"], match["alias"])
    else:
        roster.add(entry)


def _are_initials(alias: str, name: str) -> bool:
    capitals = "".join(part[0] for part in name.split() if part[0].isupper())
    return alias == capitals or (len(capitals) > 2 and alias == capitals[0] + capitals[-1])


# What follows a name in a list of people: "Dana Whitlock, CEO", "Bob (QA lead)".
_ROLE_WORD = re.compile(rf"\b{alternatives(words('people', 'roles'))}\b", re.IGNORECASE)
_GROUP_PREFIX = re.compile(r"[^:,\n]{1,40}:\s+")
_ENTRY = re.compile(r"\s*(?:,|;|\s-\s|\s–\s|\s—\s|/|\band\b|&)\s*")


@dataclass(frozen=True, slots=True)
class ListedPerson:
    name: str
    role: str | None = None


def listed(entry: str) -> list[ListedPerson]:
    """The people in one entry of a participants list, each with the role next to the name."""
    prefix = _GROUP_PREFIX.match(entry)
    if prefix and not is_name(entry[: prefix.end()].strip(" :")):
        entry = entry[prefix.end() :]
    people: list[ListedPerson] = []
    for part in _ENTRY.split(_protect(entry)[:4000]):
        name, _, aside = part.partition("(")
        name, aside = tidy(name), aside.rstrip(") .")
        if people and _ROLE_WORD.search(name):
            if people[-1].role is None:
                people[-1] = ListedPerson(people[-1].name, part.strip(" ."))
        elif is_name(name.rstrip(".")) or _is_lower_name(name):
            role = aside if _ROLE_WORD.search(aside) else None
            people.append(ListedPerson(name.rstrip("."), role))
    return people


# "damien grisonnet", "Yu yi": in a list of people, names need no capitals.
_LOWER_NAME = re.compile(r"[^\W\d_][\w\-'.]{1,20}(?: [^\W\d_][\w\-'.]{0,20}){1,2}")
_LONGEST_ENTRY = 4
_APART = str.maketrans(",/", "  ")


def _is_lower_name(name: str) -> bool:
    return _LOWER_NAME.fullmatch(name) is not None and _listed_person(name)


def is_listing(entry: str) -> bool:
    """Whether a line of a participants list only names people."""
    parts = _ENTRY.split(_ASIDE.sub("", entry.partition(": ")[2] or entry))
    return all(len(part.split()) <= _LONGEST_ENTRY for part in parts)


def _protect(entry: str) -> str:
    """Commas inside parentheses do not separate people."""
    protected: str = _ASIDE.sub(lambda m: m.group().translate(_APART), entry)
    return protected
