"""The words of extraction: what an extractor is asked, and what it proposes.

A proposal is a claim, not a fact. Its quote must be located in the source text before
anything of it is stored, and its offsets are hints at best.
"""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from memory_core.text.chunk import Chunk

MAX_QUOTE_WORDS = 25


class Category(StrEnum):
    COMMITMENT = "Commitment"
    EXECUTION = "Execution"
    DECISION = "Decision"
    COLLABORATION = "Collaboration"
    QUALITY_RISK = "QualityRisk"
    FEEDBACK = "Feedback"
    CHANGE = "Change"
    STAKEHOLDER = "Stakeholder"


class SubjectType(StrEnum):
    PERSON = "person"
    PROJECT = "project"
    OBJECT = "object"
    OTHER = "other"


class ActorRole(StrEnum):
    OWNER = "owner"
    CONTRIBUTOR = "contributor"
    REVIEWER = "reviewer"
    STAKEHOLDER = "stakeholder"
    OTHER = "other"


class EntityType(StrEnum):
    PERSON = "person"
    ORG = "org"
    PROJECT = "project"
    OBJECT = "object"
    PLACE = "place"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class DocumentContext:
    """What is known of a document beside its text; the same for all its chunks."""

    artifact_type: str
    title: str | None = None
    author: str | None = None
    participants: tuple[str, ...] = ()
    date: datetime | None = None


@dataclass(frozen=True, slots=True)
class Subject:
    type: SubjectType
    ref: str


@dataclass(frozen=True, slots=True)
class Actor:
    ref: str
    role: ActorRole


@dataclass(frozen=True, slots=True)
class Entity:
    name: str
    type: EntityType
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProposedQuote:
    """What the extractor says stands in the chunk. Offsets are relative to the chunk."""

    quote: str
    start_char: int | None = None
    end_char: int | None = None


@dataclass(frozen=True, slots=True)
class ProposedEvent:
    category: Category
    subject: Subject
    narrative: str
    quote: ProposedQuote
    confidence: float
    actors: tuple[Actor, ...] = ()
    event_time: datetime | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """One extractor's answer for one chunk."""

    events: tuple[ProposedEvent, ...] = ()
    entities: tuple[Entity, ...] = ()
    rejections: tuple[str, ...] = field(default=())


class Extractor(Protocol):
    """Proposes events for one chunk. Safe to call for many chunks at once."""

    async def extract(self, chunk: Chunk, context: DocumentContext) -> Proposal: ...
