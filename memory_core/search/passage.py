"""The result of a text search: a part of a document, or a memory."""

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from memory_core.text.nul import from_storable

Kind = Literal["artifact", "chunk", "memory"]
_BY_WORDS = frozenset({"full_text", "memory_full_text"})
# What stands between the words of a path.
_NO_WORD = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class ChunkText:
    """A chunk with its text and the labels of its document."""

    chunk_id: str
    artifact_uid: str
    revision_id: str
    start_char: int
    end_char: int
    artifact_id: str
    is_chunked: bool
    title: str | None
    artifact_type: str
    source_system: str
    source_ts: datetime | None
    text: str
    nul_positions: list[int]

    @property
    def key(self) -> str:
        return self.chunk_id


@dataclass(frozen=True, slots=True)
class FoundChunk(ChunkText):
    is_opening: bool  # the first chunk of its document
    chunk_count: int  # of its document
    source_id: str  # "" when the source gave none

    @property
    def name(self) -> str:
        """What its document is called: without a title, by the words of its source's id, which is
        the path of a file."""
        return self.title or _NO_WORD.sub(" ", self.source_id)


@dataclass(frozen=True, slots=True)
class NeighborChunk(ChunkText):
    of_chunk: str  # the chunk that it is next to


@dataclass(frozen=True, slots=True)
class MemoryRecord:  # the answers of memory_list and memory_search have these fields
    memory_id: str
    type: str
    content: str
    confidence: float
    conversation_id: str | None
    created_at: datetime
    updated_at: datetime

    @property
    def key(self) -> str:
        return self.memory_id

    @property
    def text(self) -> str:
        return self.content

    @property
    def name(self) -> str:
        """It has none."""
        return ""


@dataclass(frozen=True, slots=True)
class WordMatches:
    """A memory, and how many words of a query it has."""

    memory_id: str
    found: int


@dataclass(frozen=True, slots=True)
class ShortText:
    """An event or a memory, in the form that is ranked."""

    text_id: str
    title: str
    text: str

    @property
    def key(self) -> str:
        return self.text_id

    @property
    def name(self) -> str:
        return self.title


@dataclass(frozen=True, slots=True)
class Passage:
    kind: Kind
    score: float
    sources: tuple[str, ...]
    text: str
    artifact_uid: str | None = None
    artifact_id: str | None = None
    revision_id: str | None = None
    chunk_id: str | None = None
    start_char: int | None = None
    end_char: int | None = None
    title: str | None = None
    artifact_type: str | None = None
    source_system: str | None = None
    source_ts: datetime | None = None
    memory_id: str | None = None
    memory_type: str | None = None
    # The part of the document that answers best: inside [start_char, end_char).
    highlight: tuple[int, int] | None = None
    neighbors: list["Passage"] = field(default_factory=list)
    # No text matches the operators of the query, which was then read as a sentence.
    is_loose: bool = False

    @property
    def has_words(self) -> bool:
        """Whether it was found by words of the query, not by its meaning alone."""
        return not _BY_WORDS.isdisjoint(self.sources)


def passage_of(row: ChunkText | MemoryRecord, score: float, sources: tuple[str, ...]) -> Passage:
    """The whole chunk or memory."""
    if isinstance(row, MemoryRecord):
        return Passage(
            kind="memory",
            score=score,
            sources=sources,
            text=row.content,
            memory_id=row.memory_id,
            memory_type=row.type,
        )
    start, end = row.start_char, row.end_char
    nuls = [at - start for at in row.nul_positions if start <= at < end]
    return Passage(
        kind="chunk" if row.is_chunked else "artifact",
        score=score,
        sources=sources,
        text=from_storable(row.text, nuls),
        artifact_uid=row.artifact_uid,
        artifact_id=row.artifact_id,
        revision_id=row.revision_id,
        chunk_id=row.chunk_id if row.is_chunked else None,
        start_char=start,
        end_char=end,
        title=row.title,
        artifact_type=row.artifact_type,
        source_system=row.source_system,
        source_ts=row.source_ts,
    )
