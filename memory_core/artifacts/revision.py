"""A revision before it is stored: the document with everything that is computed from its
content."""

import asyncio
from dataclasses import dataclass, field
from itertools import pairwise

from memory_core.artifacts.document import Document
from memory_core.kernel import ids
from memory_core.kernel.settings import Settings
from memory_core.text import chunking
from memory_core.text.chunk import Chunk
from memory_core.text.nul import to_storable

# Chunking keeps the CPU busy, so longer documents are chunked in a thread.
_CHUNK_INLINE_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class IdentifiedChunk:
    """A chunk with its ids."""

    chunk: Chunk
    id: str
    content_hash: str


@dataclass(frozen=True, slots=True)
class Revision:
    """A document with everything that is computed from its content."""

    document: Document
    uid: str
    id: str
    artifact_id: str
    content_hash: str
    text: str  # as stored: U+2400 in place of U+0000
    nul_positions: list[int]

    @classmethod
    def of(cls, document: Document, uid: str | None = None) -> "Revision":
        """`uid`: the artifact's id, where it differs from the usual one."""
        content_hash = ids.sha256(document.content)
        uid = uid or ids.artifact_uid(document.source_system, document.source_id)
        revision_id = ids.revision_id(content_hash)
        text, nul_positions = to_storable(document.content)
        return cls(
            document=document,
            uid=uid,
            id=revision_id,
            artifact_id=ids.artifact_id(uid, revision_id),
            content_hash=content_hash,
            text=text,
            nul_positions=nul_positions,
        )

    @property
    def partition_key(self) -> str:
        name = self.document.title or self.document.source_id
        return ids.partition_key(name, self.uid, self.id)


@dataclass(slots=True)
class RevisionDraft:
    """A revision on its way into the stores. It has no pieces when its content is already
    stored."""

    revision: Revision
    pieces: list[IdentifiedChunk] = field(default_factory=list)

    @property
    def uid(self) -> str:
        return self.revision.uid

    @property
    def key(self) -> tuple[str, str]:
        return self.revision.uid, self.revision.id

    @property
    def is_chunked(self) -> bool:
        return len(self.pieces) > 1


async def cut(revision: Revision, settings: Settings) -> list[IdentifiedChunk]:
    limits = chunking.ChunkingLimits(
        single_piece_max_tokens=settings.single_piece_max_tokens,
        target_tokens=settings.chunk_target_tokens,
        overlap_tokens=settings.chunk_overlap_tokens,
    )
    if len(revision.text) > _CHUNK_INLINE_CHARS:
        chunks = await asyncio.to_thread(chunking.split, revision.text, limits)
    else:
        chunks = chunking.split(revision.text, limits)
    if len(chunks) == 1:
        return [IdentifiedChunk(chunks[0], revision.artifact_id, ids.sha256(chunks[0].text))]
    return [_identified(revision.artifact_id, chunk) for chunk in chunks]


def _identified(artifact_id: str, chunk: Chunk) -> IdentifiedChunk:
    digest = ids.sha256(chunk.text)
    return IdentifiedChunk(chunk, ids.chunk_id(artifact_id, chunk.index, digest), digest)


def count_tokens(pieces: list[IdentifiedChunk]) -> int:
    """Tokens of the whole text: overlaps would count twice in the sum over chunks, so they are
    subtracted."""
    return sum(piece.chunk.token_count for piece in pieces) - _overlap_tokens(pieces)


def _overlap_tokens(pieces: list[IdentifiedChunk]) -> int:
    """Tokens of the overlaps, estimated from their share of the text."""
    total = 0.0
    for before, after in pairwise(pieces):
        shared = before.chunk.end_char - after.chunk.start_char
        length = before.chunk.end_char - before.chunk.start_char
        total += before.chunk.token_count * max(shared, 0) / length
    return round(total)
