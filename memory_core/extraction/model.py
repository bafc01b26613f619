"""The data model of extraction: what an extractor is asked, and what it proposes.

A proposal is a claim, not a fact. Its quote must be located in the source text before anything of
it is stored, and its offsets are only hints.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from memory_core.extraction.ledger import Ledger
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
    """The metadata of a document that the extractor reads. It is the same for all its chunks."""

    artifact_type: str
    title: str | None = None
    author: str | None = None
    participants: tuple[str, ...] = ()
    date: datetime | None = None


@dataclass(frozen=True, slots=True)
class ReadLabels:
    """The labels of a stored revision that the extractor reads."""

    artifact_type: str
    title: str | None
    author: str | None
    participants: list[str]
    source_ts: datetime | None

    @property
    def context(self) -> DocumentContext:
        participants = tuple(self.participants)
        return DocumentContext(
            self.artifact_type, self.title, self.author, participants, self.source_ts
        )


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
    """A quote that the extractor claims to be in the chunk. Its offsets are relative to the
    chunk."""

    quote: str
    start_char: int | None = None
    end_char: int | None = None
    # The part of the chunk that was asked about, if not the whole.
    part: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Due:
    """When a commitment is due. `quote` is the words that state it; its offsets count in the chunk
    while it is proposed, and in the text once it is proved. Without a quote, the date is the
    extractor's interpretation."""

    time: datetime
    quote: str | None = None
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
    due: Due | None = None


@dataclass(frozen=True, slots=True)
class RejectedEvent:
    """A proposed event that was refused, and why."""

    reason: str
    detail: str
    chunk_index: int | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """One extractor's answer for one chunk."""

    events: tuple[ProposedEvent, ...] = ()
    entities: tuple[Entity, ...] = ()
    rejections: tuple[RejectedEvent, ...] = ()
    refusal: str | None = None
    from_cache: bool = False


class Extractor(Protocol):
    """Proposes events for chunks. It can be called for many chunks concurrently."""

    @property
    def name(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def version(self) -> str:
        """The version of the prompt or the rules, ordered by its leading number."""
        ...

    async def extract(
        self,
        chunk: Chunk,
        context: DocumentContext,
        *,
        answers_since: datetime | None = None,
        ledger: Ledger,
    ) -> Proposal:
        """Raises MemoryFault. `answers_since`: cached answers from before that moment are not
        accepted."""
        ...

    async def recall(
        self, chunk: Chunk, context: DocumentContext, *, version: str, model: str
    ) -> Proposal | None:
        """The cached answer of another version or model; None if there is none."""
        ...


@dataclass(frozen=True, slots=True)
class Evidence:
    """A span of the revision's text: `text[start_char:end_char] == quote`."""

    start_char: int
    end_char: int
    quote: str
    match_kind: str
    chunk_id: str | None


@dataclass(frozen=True, slots=True)
class ChunkEvent:
    """An event of one chunk whose quote was located in the text."""

    id: str
    chunk_index: int
    category: Category
    subject: Subject
    narrative: str
    confidence: float
    evidence: Evidence
    actors: tuple[Actor, ...] = ()
    event_time: datetime | None = None
    due: Due | None = None


@dataclass(frozen=True, slots=True)
class CanonicalEvent:
    """One occurrence, merged from its chunk events."""

    category: Category
    subject: Subject
    narrative: str
    confidence: float
    evidence: tuple[Evidence, ...]
    members: tuple[str, ...]  # ids of the chunk events that it was merged from
    actors: tuple[Actor, ...] = ()
    event_time: datetime | None = None
    due: Due | None = None
    twin: int = 0  # distinguishes events with the same category and first span


class Grouper(Protocol):
    """Says which chunk events describe the same occurrence; it never rewrites them."""

    @property
    def version(self) -> str: ...

    async def group(
        self,
        blocks: list[list[ChunkEvent]],
        *,
        max_calls: int,
        answers_since: datetime | None = None,
        ledger: Ledger,
    ) -> list[list[str]]:
        """Groups of ids. Raises MemoryFault."""
        ...
