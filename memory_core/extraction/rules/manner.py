"""The manner of a text: whether it reports, describes or is spoken."""

from dataclasses import dataclass

from memory_core.extraction.model import DocumentContext
from memory_core.extraction.rules.headings import Heading
from memory_core.extraction.rules.word_lists import phrases
from memory_core.text import timed_patterns as re

TALK = ("chat", "transcript")
# In these, a first-person sentence is the author's own unless a turn says otherwise.
AUTHORED = ("email", "note")

# Headings of specifications, proposals and decision records that minutes do not have.
_SPECIFICATION = frozenset(phrases("manners", "specification"))
_TITLE = re.compile(r"\b(?:rfc|pep|kep|adr)\b|\bproposal\b|\bspecification\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Manner:
    # Phrases describe more often than they report, and capitalised words are things.
    describes: bool
    # It has an author, so "I" is a person even if the name is unknown.
    authored: bool
    # Free speech: a statement counts only if it is clear.
    speech: bool
    # Its events happened on the day it was written.
    reports: bool


def of(context: DocumentContext, headings: list[Heading]) -> Manner:
    kind = context.artifact_type
    describes = kind == "doc" or (kind == "note" and _is_specification(context.title, headings))
    return Manner(describes, kind in AUTHORED, kind == "transcript", not describes)


def _is_specification(title: str | None, headings: list[Heading]) -> bool:
    if title and (_TITLE.search(title) or title.strip().lower() in _SPECIFICATION):
        return True
    return any(heading.title.lower() in _SPECIFICATION for heading in headings)
