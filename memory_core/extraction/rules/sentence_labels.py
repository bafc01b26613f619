"""Labels before a sentence: "Decision: ...", "AI(@bob): ...", "Owner: ..."."""

from dataclasses import dataclass

from memory_core.extraction.model import ActorRole, Category
from memory_core.extraction.rules.patterns import HANDLE, NAME, word_set
from memory_core.extraction.rules.word_lists import phrases, words
from memory_core.text import timed_patterns as re

_EVENT_LABELS = (
    Category.DECISION, Category.COMMITMENT, Category.EXECUTION, Category.QUALITY_RISK,
    Category.FEEDBACK, Category.CHANGE,
)  # fmt: skip
_ROLES = (
    ActorRole.OWNER, ActorRole.REVIEWER, ActorRole.STAKEHOLDER, ActorRole.CONTRIBUTOR,
)  # fmt: skip
ROLE_LABELS = {label: role for role in _ROLES for label in phrases("labels", role)}
ATTENDEE_LABELS = phrases("labels", "attendees")
# Words with a colon that are neither events nor people.
_PLAIN_LABELS = word_set(words("labels", "plain"))

_EVENTS = {label: category for category in _EVENT_LABELS for label in phrases("labels", category)}
_ALL = {*_EVENTS, *ROLE_LABELS, *ATTENDEE_LABELS, *_PLAIN_LABELS, "status", "action items"}

# "Decision 7: …", "Risk #12: …". A longer number is a year, or a ticket.
_NUMBER = r"(?:#|(?:no|nr)\.?\s?)?[0-9]{1,3}(?:\.[0-9]{1,2})?"
_NUMBERED = re.compile(rf"(?P<label>.+?)\s{{0,2}}{_NUMBER}", re.IGNORECASE)
_EVENT_PREFIX = re.compile(
    r"(?:(?:[^\w#]|\ufe0f){0,6}(?P<bot>#)?)(?P<label>(?:"
    + "|".join(sorted(map(re.escape, _EVENTS), key=len, reverse=True))
    + rf")s?)(?:\s{{0,2}}{_NUMBER}|(?<=decision) (?:from|by|of) [\w ]{{3,40}}(?=:))?"
    rf"\s{{0,2}}(?:[(\[]\s?(?P<who>{NAME}|{HANDLE}|[a-z][\w\-]{{1,30}})\s?[)\]]|(?P<at>{HANDLE}))?"
    r"\s{0,3}(?:(?P<mark>:|-(?=\s)|\](?=\s))|(?(bot)(?=\s)|(?!)))\s*",
    re.IGNORECASE,
)
_ROLE_PREFIX = re.compile(
    r"\s*(?P<label>(?:"
    + "|".join(sorted(map(re.escape, ROLE_LABELS), key=len, reverse=True))
    + r")(?:s|\(s\))?)\s{0,3}:\s*",
    re.IGNORECASE,
)
_ATTENDEE_PREFIX = re.compile(
    r"\s*(?:" + "|".join(ATTENDEE_LABELS) + r")\s{0,3}:\s*", re.IGNORECASE
)
_STATUS_PREFIX = re.compile(r"\s*status\s{0,3}:\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Label:
    category: Category
    end: int
    who: str | None = None


def is_event_label(word: str) -> bool:
    word = word.lower().strip()
    numbered = _NUMBERED.fullmatch(word)
    bare = numbered["label"] if numbered else word
    return bare in _EVENTS or bare.removesuffix("s") in _EVENTS


def is_label(word: str) -> bool:
    if is_event_label(word):
        return True
    word = word.lower().strip()
    return word in _ALL or word.removesuffix("s") in _ALL or word.removesuffix("(s)") in _ALL


def event_label(sentence: str) -> Label | None:
    """The label that a (masked) sentence starts with. A dash ends a label only after capitals, so
    that "risk - benefit" stays prose."""
    match = _EVENT_PREFIX.match(sentence)
    if match is None or (match["mark"] == "-" and not match["label"].isupper()):
        return None
    name = match["label"].lower()
    category = _EVENTS.get(name) or _EVENTS[name.removesuffix("s")]
    return Label(category, match.end(), match["who"] or match["at"])


def role_label(sentence: str) -> tuple[str, int] | None:
    """(role word, where its value starts) of "Owner: ..."."""
    match = _ROLE_PREFIX.match(sentence)
    if match is None:
        return None
    return role_word(match["label"]), match.end()


def role_word(label: str) -> str:
    word = " ".join(label.lower().split()).removesuffix("(s)")
    return word if word in ROLE_LABELS else word.removesuffix("s")


def attendee_label(sentence: str) -> int | None:
    match = _ATTENDEE_PREFIX.match(sentence)
    return match.end() if match else None


def status_label(sentence: str) -> int | None:
    match = _STATUS_PREFIX.match(sentence)
    return match.end() if match else None
