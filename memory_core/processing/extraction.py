"""The state of one revision's extraction, passed from stage to stage and to observers."""

from collections.abc import Callable
from dataclasses import dataclass, field

from memory_core.extraction.ledger import Ledger, ModelCall
from memory_core.extraction.model import CanonicalEvent, ChunkEvent, Entity, RejectedEvent
from memory_core.log.change import Position
from memory_core.queue.jobs import Job
from memory_core.text.chunk import Chunk


@dataclass(frozen=True, slots=True)
class ExtractedRevision:
    artifact_uid: str
    revision_id: str
    title: str | None
    source_system: str
    source_url: str | None
    is_chunked: bool
    content: str  # empty once all quotes are proved


@dataclass(slots=True)
class Extraction:
    """One revision on its way from text to stored events."""

    job: Job
    revision: ExtractedRevision
    ledger: Ledger
    extract_version: str  # version of the prompt or rules that made the proposals
    model: str
    chunks: list[tuple[Chunk, str | None]] = field(default_factory=list)
    chunk_events: list[ChunkEvent] = field(default_factory=list)
    entities: list[Entity] = field(default_factory=list)
    rejections: list[RejectedEvent] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    cache_hits: int = 0
    events: list[CanonicalEvent] = field(default_factory=list)
    position: Position | None = None  # the position of its change in the log
    indexed: bool = False  # whether the index had its events at the last look
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def calls(self) -> list[ModelCall]:
        return self.ledger.calls


# Called when a stage of a revision ends.
Observer = Callable[[str, Extraction], None]
