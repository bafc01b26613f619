"""Drafts: what a passage says, before it is worded as an event."""

from dataclasses import dataclass, field

from memory_core.extraction.model import ActorRole, Category
from memory_core.text import timed_patterns as re

_REVIEWS = re.compile(r"\b(?:review|approv|audit|sign[- ]?off|veto)", re.IGNORECASE)
_OWNS = re.compile(r"\b(?:own|lead|manag|chair|head|responsib|accountab|maintain)", re.IGNORECASE)
_STAKES = re.compile(
    r"\b(?:sponsor|client|customer|stakeholder|ceo|counsel|legal|finance|vendor)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Draft:
    category: Category
    confidence: float
    # What is quoted, and the part of it that tells the event; source offsets.
    start: int
    end: int
    key: tuple[int, int]
    actors: tuple[tuple[str, ActorRole], ...] = ()
    # The words that the narrative is made of, and how.
    style: str = "sentence"
    body: str = ""
    about: str = ""
    person: str | None = None
    extra: dict[str, str] = field(default_factory=dict)


def role_of(description: str) -> ActorRole:
    """The actor role that a description of a person's part comes closest to."""
    if _REVIEWS.search(description):
        return ActorRole.REVIEWER
    if _OWNS.search(description):
        return ActorRole.OWNER
    if _STAKES.search(description):
        return ActorRole.STAKEHOLDER
    return ActorRole.CONTRIBUTOR
