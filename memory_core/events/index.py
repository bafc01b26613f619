"""The Chroma collection `events`: narratives by meaning, kept in step with Postgres."""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from memory_core.database import Row, Session
from memory_core.errors import MemoryFault
from memory_core.events.identity import event_id
from memory_core.jobs import Job
from memory_core.runtime import Runtime
from memory_core.together import Together
from memory_core.vectors import CollectionName, Entry, VectorStore

if TYPE_CHECKING:
    from memory_core.extraction.pipeline import Extraction

log = logging.getLogger(__name__)


class Writer:
    """Writes vectors, those of several revisions at once: to Chroma a call costs more than its
    size."""

    def __init__(self) -> None:
        self._write = Together(_write)

    async def add(self, runtime: Runtime, extraction: "Extraction") -> None:
        """Upsert the vectors of the new events. Harmless when the store then fails: a tool never
        returns an event that Postgres does not have."""
        if extraction.events:
            await self._write((runtime, extraction))


async def _write(batch: Sequence[tuple[Runtime, "Extraction"]]) -> list[None]:
    runtime = batch[0][0]
    told = [(extraction, event) for _, extraction in batch for event in extraction.events]
    texts = [indexed_text(event.narrative, made.revision["title"]) for made, event in told]
    vectors = await runtime.embedder.embed(texts)
    entries = [
        Entry(
            id=str(event_id(made.job.artifact_uid, made.job.revision_id, event)),
            vector=vector,
            document=text,
            metadata=event_metadata(
                made.job.artifact_uid,
                made.job.revision_id,
                event.category.value,
                latest=made.revision["is_latest"],
            ),
        )
        for (made, event), text, vector in zip(told, texts, vectors, strict=True)
    ]
    await runtime.vectors.upsert(CollectionName.EVENTS, entries)
    return [None] * len(batch)


def event_metadata(
    artifact_uid: str, revision_id: str, category: str, *, latest: bool = True
) -> dict[str, str | bool]:
    return {
        "artifact_uid": artifact_uid,
        "revision_id": revision_id,
        "category": category,
        "latest": latest,
    }


async def move_events(
    session: Session, vectors: VectorStore, revisions: Sequence[Row], *, latest: bool
) -> None:
    """The events of these revisions count as latest from now on, or no longer."""
    rows = await session.all(
        "event_ids_of_revisions",
        uids=[row["artifact_uid"] for row in revisions],
        revisions=[row["revision_id"] for row in revisions],
    )
    if rows:
        ids = [str(row["event_id"]) for row in rows]
        await vectors.set_latest(CollectionName.EVENTS, ids, latest=latest)


def indexed_text(narrative: str, title: str | None) -> str:
    """A narrative often leaves unsaid what its whole document is about."""
    return f"{narrative}\n{title}" if title else narrative


async def follow_revision(runtime: Runtime, extraction: "Extraction") -> None:
    """Bring the vectors to where they belong when the revision was superseded or restored between
    its opening and the storing of its events: who did that did not know of them. Searches ask
    Postgres, so failing here must not undo a stored extraction."""
    job, was_latest = extraction.job, extraction.revision["is_latest"]
    if extraction.stored_as_latest in (None, was_latest):
        return
    try:
        async with runtime.database.long_transaction() as session:
            await session.run("lock_artifact", uid=job.artifact_uid)
            found = await session.one(
                "get_revision", uid=job.artifact_uid, revision=job.revision_id
            )
            if found is not None:
                await move_events(session, runtime.vectors, [found], latest=found["is_latest"])
    except MemoryFault as fault:
        log.warning("vectors of %s stay misplaced until a reindex: %s", job.revision_id, fault)


async def withdraw(runtime: Runtime, extraction: "Extraction") -> None:
    """After a failed attempt: of a document that was deleted meanwhile, nothing may stay."""
    job = extraction.job
    try:
        async with runtime.database.session() as session:
            found = await session.one(
                "get_revision", uid=job.artifact_uid, revision=job.revision_id
            )
        if found is None:
            await runtime.vectors.delete(CollectionName.EVENTS, ids(extraction))
    except MemoryFault as fault:
        log.warning("vectors of %s stay until a repair: %s", job.revision_id, fault)


async def remove_stale(runtime: Runtime, extraction: "Extraction") -> None:
    """Drop vectors of events that were replaced. They are invisible already; failing to drop them
    must not undo a stored extraction."""
    job = extraction.job
    of_revision = [{"artifact_uid": job.artifact_uid}, {"revision_id": job.revision_id}]
    try:
        known = set(extraction.replaced)
        if _may_follow_a_failure(job):
            where = {"$and": of_revision}
            known.update(await runtime.vectors.ids_where(CollectionName.EVENTS, where))
        if stale := known.difference(ids(extraction)):
            await _drop_unless_wanted(runtime, job, stale)
    except MemoryFault as fault:
        log.warning("stale vectors of %s stay until a reindex: %s", job.revision_id, fault)


async def _drop_unless_wanted(runtime: Runtime, job: Job, stale: set[str]) -> None:
    """A next run may tell the same again: it has its vectors first, and its rows last. So not while
    one has the job, which cannot be claimed meanwhile; and what is stored again stays."""
    named = {"uids": [job.artifact_uid], "revisions": [job.revision_id]}
    async with runtime.database.long_transaction() as session:
        await session.run("lock_artifact", uid=job.artifact_uid)
        if await session.all("revisions_at_rest", **named, moment=0):
            rows = await session.all("event_ids_of_revisions", **named)
            gone = stale.difference(str(row["event_id"]) for row in rows)
            await runtime.vectors.delete(CollectionName.EVENTS, list(gone))


def _may_follow_a_failure(job: Job) -> bool:
    """Whether there may be vectors of events that were never stored: of an earlier attempt, or of
    a run that lost its lease to a forced request. To find them, Chroma looks at every entry."""
    return job.attempts > 1 or job.bypass_cache


def ids(extraction: "Extraction") -> list[str]:
    """Of its events, under which their vectors are kept as well."""
    job = extraction.job
    return [str(event_id(job.artifact_uid, job.revision_id, made)) for made in extraction.events]
