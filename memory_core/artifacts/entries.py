"""What stands in Chroma for a revision: its own entry, and one per chunk."""

from datetime import datetime
from typing import Any

from memory_core.artifacts.revision import Draft, Revision
from memory_core.embedding import Vector
from memory_core.vectors import Entry, Metadata

PREVIEW_CHARS = 2_000


def artifact_entry(draft: Draft, now: datetime) -> Entry:
    """The whole document: its own vector, or the middle of its chunks' vectors."""
    revision = draft.revision
    return Entry(
        id=revision.artifact_id,
        vector=mean_vector(draft.vectors),
        document=preview(revision.text) if draft.is_chunked else revision.text,
        metadata=_metadata(revision, now),
    )


def chunk_entries(draft: Draft, now: datetime) -> list[Entry]:
    common = _metadata(draft.revision, now)
    return [
        Entry(
            id=piece.id,
            vector=vector,
            document=piece.chunk.text,
            metadata={
                **common,
                "chunk_index": piece.chunk.index,
                "start_char": piece.chunk.start_char,
                "end_char": piece.chunk.end_char,
            },
        )
        for piece, vector in zip(draft.pieces, draft.vectors, strict=True)
    ]


def _metadata(revision: Revision, now: datetime) -> Metadata:
    return entry_metadata(
        uid=revision.uid,
        revision=revision.id,
        artifact_id=revision.artifact_id,
        artifact_type=revision.document.artifact_type.value,
        source_system=revision.document.source_system,
        time=revision.document.ts or now,
        latest=True,
    )


def entry_metadata(
    *,
    uid: str,
    revision: str,
    artifact_id: str,
    artifact_type: str,
    source_system: str,
    time: datetime,
    latest: bool,
) -> dict[str, Any]:
    """What searches filter by in Chroma. `time` is the document's own, else its arrival."""
    return {
        "artifact_uid": uid,
        "revision_id": revision,
        "artifact_id": artifact_id,
        "artifact_type": artifact_type,
        "source_system": source_system,
        "time": time.timestamp(),
        "latest": latest,
    }


def preview(text: str) -> str:
    """What stands in Chroma for the text of a document that is there in chunks."""
    return text[:PREVIEW_CHARS]


def mean_vector(vectors: list[Vector]) -> Vector:
    if len(vectors) == 1:
        return vectors[0]
    return [sum(values) / len(vectors) for values in zip(*vectors, strict=True)]
