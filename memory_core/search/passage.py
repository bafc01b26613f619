"""What a text search returns: a part of a document, or a memory."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from memory_core.kernel.database import Row
from memory_core.text.nul import from_storable

Kind = Literal["artifact", "chunk", "memory"]


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
    # What of the document answers best: inside [start_char, end_char).
    highlight: tuple[int, int] | None = None
    neighbors: list["Passage"] = field(default_factory=list)


def passage_of(row: Row, score: float, sources: tuple[str, ...]) -> Passage:
    """Of a row of `passages_by_id` or `memories_by_id`: the whole chunk or memory."""
    if "memory_id" in row:
        return Passage(
            kind="memory",
            score=score,
            sources=sources,
            text=row["content"],
            memory_id=row["memory_id"],
            memory_type=row["type"],
        )
    start, end = row["start_char"], row["end_char"]
    nuls = [at - start for at in row["nul_positions"] if start <= at < end]
    return Passage(
        kind="chunk" if row["is_chunked"] else "artifact",
        score=score,
        sources=sources,
        text=from_storable(row["text"], nuls),
        artifact_uid=row["artifact_uid"],
        artifact_id=row["artifact_id"],
        revision_id=row["revision_id"],
        chunk_id=row["chunk_id"] if row["is_chunked"] else None,
        start_char=start,
        end_char=end,
        title=row["title"],
        artifact_type=row["artifact_type"],
        source_system=row["source_system"],
        source_ts=row["source_ts"],
    )
