"""The Chroma collection `events`: narratives by meaning, kept in step with Postgres."""

import logging
from typing import TYPE_CHECKING

from memory_core.errors import ChromaUnavailable
from memory_core.events.identity import event_id
from memory_core.runtime import Runtime
from memory_core.vectors import CollectionName, Entry

if TYPE_CHECKING:
    from memory_core.extraction.pipeline import Extraction

log = logging.getLogger(__name__)


async def add(runtime: Runtime, extraction: "Extraction") -> None:
    """Upsert the vectors of the new events. Harmless when the store then fails: a tool never
    returns an event that Postgres does not have."""
    events, job = extraction.events, extraction.job
    if not events:
        return
    title = extraction.revision["title"]
    texts = [indexed_text(event.narrative, title) for event in events]
    vectors = await runtime.embedder.embed(texts)
    entries = [
        Entry(
            id=str(event_id(job.artifact_uid, job.revision_id, event)),
            vector=vector,
            document=text,
            metadata=event_metadata(job.artifact_uid, job.revision_id, event.category.value),
        )
        for event, text, vector in zip(events, texts, vectors, strict=True)
    ]
    await runtime.vectors.upsert(CollectionName.EVENTS, entries)


def event_metadata(artifact_uid: str, revision_id: str, category: str) -> dict[str, str]:
    """What searches filter by in Chroma."""
    return {"artifact_uid": artifact_uid, "revision_id": revision_id, "category": category}


def indexed_text(narrative: str, title: str | None) -> str:
    """A narrative often leaves unsaid what its whole document is about."""
    return f"{narrative}\n{title}" if title else narrative


async def remove_stale(runtime: Runtime, extraction: "Extraction") -> None:
    """Drop vectors of events that were replaced. They are invisible already; failing to drop them
    must not undo a stored extraction."""
    job = extraction.job
    current = {
        str(event_id(job.artifact_uid, job.revision_id, event)) for event in extraction.events
    }
    try:
        known = await runtime.vectors.ids_where(
            CollectionName.EVENTS,
            {"$and": [{"artifact_uid": job.artifact_uid}, {"revision_id": job.revision_id}]},
        )
        stale = [id_ for id_ in known if id_ not in current]
        if stale:
            await runtime.vectors.delete(CollectionName.EVENTS, stale)
    except ChromaUnavailable as fault:
        log.warning("stale vectors of %s stay until a reindex: %s", job.revision_id, fault)
