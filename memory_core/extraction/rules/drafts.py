"""Drafts: the content of an event, before it is worded."""

from dataclasses import dataclass, field

from memory_core.extraction.model import ActorRole, Category
from memory_core.text import timed_patterns as re

_REVIEWS = re.compile(r"\b(?:review|approv|audit|sign[- ]?off|veto)", re.IGNORECASE)
_OWNS = re.compile(r"\b(?:own|lead|manag|chair|head|responsib|accountab|maintain)", re.IGNORECASE)
_STAKES = re.compile(
    r"\b(?:sponsor|client|customer|stakeholder|ceo|counsel|legal|finance|vendor)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class EventDraft:
    category: Category
    confidence: float
    # The quoted span, and the part of it that tells the event; source offsets.
    start: int
    end: int
    key: tuple[int, int]
    actors: tuple[tuple[str, ActorRole], ...] = ()
    # The words of the narrative, and its style.
    style: str = "sentence"
    body: str = ""
    about: str = ""
    person: str | None = None
    extra: dict[str, str] = field(default_factory=dict)


def role_of(description: str) -> ActorRole:
    """The actor role that is closest to a description of a person's part."""
    if _REVIEWS.search(description):
        return ActorRole.REVIEWER
    if _OWNS.search(description):
        return ActorRole.OWNER
    if _STAKES.search(description):
        return ActorRole.STAKEHOLDER
    return ActorRole.CONTRIBUTOR
