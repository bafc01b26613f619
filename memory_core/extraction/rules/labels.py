"""Labels in front of a sentence: "Decision: ...", "AI(@bob): ...", "Owner: ..."."""

import re
from dataclasses import dataclass

from memory_core.extraction.model import ActorRole, Category
from memory_core.extraction.rules.patterns import HANDLE, NAME, word_set

# Lower case, singular; the plural is understood.
_EVENT_LABELS: dict[Category, tuple[str, ...]] = {
    Category.DECISION: (
        "decision", "decided", "agreed", "resolution", "resolved", "agreement", "verdict",
        "consensus", "final decision", "decision made",
    ),
    Category.COMMITMENT: (
        "action", "action item", "ai", "a/i", "todo", "to do", "to-do", "next step", "follow-up",
        "follow up", "task", "deliverable", "commitment", "action point", "next action",
    ),
    Category.EXECUTION: ("done", "completed", "shipped", "deployed", "delivered", "finished"),
    Category.QUALITY_RISK: (
        "risk", "blocker", "blocked", "concern", "known issue", "open issue", "worry", "bug",
        "incident", "problem",
    ),
    Category.FEEDBACK: (
        "feedback", "customer feedback", "user feedback", "review comment", "complaint",
    ),
    Category.CHANGE: ("change", "changed", "scope change", "plan change"),
}  # fmt: skip

ROLE_LABELS: dict[str, ActorRole] = {
    "owner": ActorRole.OWNER, "product owner": ActorRole.OWNER, "author": ActorRole.OWNER,
    "lead": ActorRole.OWNER, "tech lead": ActorRole.OWNER, "project lead": ActorRole.OWNER,
    "responsible": ActorRole.OWNER, "accountable": ActorRole.OWNER, "assignee": ActorRole.OWNER,
    "chair": ActorRole.OWNER, "project manager": ActorRole.OWNER, "maintainer": ActorRole.OWNER,
    "product manager": ActorRole.OWNER, "shepherd": ActorRole.OWNER,
    "reviewer": ActorRole.REVIEWER, "approver": ActorRole.REVIEWER,
    "approved by": ActorRole.REVIEWER, "reviewed by": ActorRole.REVIEWER,
    "security reviewer": ActorRole.REVIEWER, "bdfl-delegate": ActorRole.REVIEWER,
    "pep-delegate": ActorRole.REVIEWER, "decider": ActorRole.REVIEWER,
    "deciders": ActorRole.REVIEWER, "decision maker": ActorRole.REVIEWER,
    "sponsor": ActorRole.STAKEHOLDER, "stakeholder": ActorRole.STAKEHOLDER,
    "consulted": ActorRole.STAKEHOLDER, "informed": ActorRole.STAKEHOLDER,
    "client": ActorRole.STAKEHOLDER, "customer contact": ActorRole.STAKEHOLDER,
    "contributor": ActorRole.CONTRIBUTOR, "implementer": ActorRole.CONTRIBUTOR,
    "facilitator": ActorRole.CONTRIBUTOR, "scribe": ActorRole.CONTRIBUTOR,
    "note taker": ActorRole.CONTRIBUTOR, "notetaker": ActorRole.CONTRIBUTOR,
    "note-taker": ActorRole.CONTRIBUTOR, "minutes": ActorRole.CONTRIBUTOR,
    "minutes scribe": ActorRole.CONTRIBUTOR, "action item scribe": ActorRole.CONTRIBUTOR,
    "host": ActorRole.CONTRIBUTOR, "moderator": ActorRole.CONTRIBUTOR,
    "presenter": ActorRole.CONTRIBUTOR, "liaison": ActorRole.CONTRIBUTOR,
    "point of contact": ActorRole.CONTRIBUTOR, "contact": ActorRole.CONTRIBUTOR,
    "minutes taken by": ActorRole.CONTRIBUTOR, "secretary": ActorRole.CONTRIBUTOR,
    "finance": ActorRole.STAKEHOLDER, "legal": ActorRole.STAKEHOLDER,
    "design": ActorRole.CONTRIBUTOR, "engineering": ActorRole.CONTRIBUTOR,
    "designer": ActorRole.CONTRIBUTOR, "engineer": ActorRole.CONTRIBUTOR,
}  # fmt: skip

ATTENDEE_LABELS = (
    "attendees", "present", "participants", "attending", "attendance", "in attendance", "attended",
    "people present", "members present",
)  # fmt: skip

# Words with a colon that are neither events nor people.
_PLAIN_LABELS = word_set(
    """note notes warning tip example summary context background goal goals question questions
    answer subject from to cc bcc date sent re title type topic topics agenda location place
    time when where what why how who link links see update updates status state version
    created updated requires replaces discussions-to post-history python-version content-
    type last-modified abstract motivation rationale prerequisites input output usage idea
    option options pro pros con cons result results important info hint caution danger
    caveat url http https source file recording slides video meeting next previous until
    proposal alternative alternatives tl;dr tldr ps p.s nb fyi eta deadline due estimate
    priority severity impact mitigation likelihood apologies regrets absent excused reason
    system user assistant human tests hosts bugs triaging regarding tags label labels issue
    issues pr prs feature bug team other announcements demos discussion q a fix fixes feat
    chore docs refactor perf test build ci style revert prompt instruction instructions
    milestone release"""
)

_EVENTS = {label: category for category, group in _EVENT_LABELS.items() for label in group}
_ALL = {*_EVENTS, *ROLE_LABELS, *ATTENDEE_LABELS, *_PLAIN_LABELS, "status", "action items"}

# "Decision 7: …", "Risk #12: …". Of more figures it is a year, or a ticket.
_NUMBER = r"(?:#|(?:no|nr)\.?\s?)?[0-9]{1,3}(?:\.[0-9]{1,2})?"
_NUMBERED = re.compile(rf"(?P<label>.+?)\s{{0,2}}{_NUMBER}", re.IGNORECASE)
_EVENT_PREFIX = re.compile(
    r"(?:[^\w#]{0,6}(?P<bot>#)?)(?P<label>(?:"
    + "|".join(sorted(map(re.escape, _EVENTS), key=len, reverse=True))
    + rf")s?)(?:\s{{0,2}}{_NUMBER})?"
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
    """The label a (masked) sentence starts with. A dash marks one only after capitals, so that
    "risk - benefit" stays prose."""
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
