"""The words of extraction: what an extractor is asked, and what it proposes.

A proposal is a claim, not a fact. Its quote must be located in the source text before
anything of it is stored, and its offsets are hints at best.
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
    part: tuple[int, int] | None = None  # of the chunk that it was asked about, if not all


@dataclass(frozen=True, slots=True)
class Due:
    """When a commitment is due. The quote is the words that state it, at their offsets in the chunk
    of a proposal, in the text once they are proved. Without one the extractor only read it so.
    """

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
class Rejected:
    """A proposed event that was not believed, and why."""

    reason: str
    detail: str
    chunk_index: int | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """One extractor's answer for one chunk."""

    events: tuple[ProposedEvent, ...] = ()
    entities: tuple[Entity, ...] = ()
    rejections: tuple[Rejected, ...] = ()
    refusal: str | None = None
    from_cache: bool = False


class Extractor(Protocol):
    """Proposes events for chunks. Safe to call for many chunks at once."""

    @property
    def name(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def version(self) -> str:
        """Of the prompt or the rules; ordered by its leading number."""
        ...

    async def extract(
        self,
        chunk: Chunk,
        context: DocumentContext,
        *,
        answers_since: datetime | None = None,
        ledger: Ledger,
    ) -> Proposal:
        """Raises MemoryFault. `answers_since`: a known answer from before then will not do."""
        ...

    async def recall(
        self, chunk: Chunk, context: DocumentContext, *, version: str, model: str
    ) -> Proposal | None:
        """What was answered to another version or model; None if that is not known."""
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
    """An event of one chunk whose quote was found in the text."""

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
    """An occurrence, told once: what its chunk events have in common."""

    category: Category
    subject: Subject
    narrative: str
    confidence: float
    evidence: tuple[Evidence, ...]
    members: tuple[str, ...]  # ids of the chunk events it was made of
    actors: tuple[Actor, ...] = ()
    event_time: datetime | None = None
    due: Due | None = None
    twin: int = 0  # tells events apart that have category and first span in common


class Grouper(Protocol):
    """Says which chunk events describe the same occurrence; never rewrites them."""

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
