"""Deleting an artifact with everything that came of it."""

from dataclasses import dataclass

from memory_core.artifacts import lineage
from memory_core.artifacts.reading import resolve_uid
from memory_core.errors import NotFound
from memory_core.runtime import Runtime
from memory_core.vectors import CollectionName, VectorStore


@dataclass(frozen=True, slots=True)
class Deleted:
    artifact_uid: str
    revisions: int
    chunks: int
    vectors: int
    events: int
    evidence: int
    jobs: int
    cache_entries: int
    lineage_entries: int  # of Dagster's event log


async def delete_artifact(
    runtime: Runtime, *, artifact_id: str | None = None, artifact_uid: str | None = None
) -> Deleted:
    """Vectors go first, rows last: a failure half-way is an error that a second call completes,
    never a success that leaves traces."""
    async with runtime.database.long_transaction() as session:
        uid = await resolve_uid(session, artifact_id, artifact_uid)
        await session.run("lock_artifact", uid=uid)
        revisions = await session.all("artifact_vector_ids", uid=uid)
        if not revisions:
            raise NotFound(
                f"There is no artifact {uid!r}: nothing was deleted.", details={"artifact_uid": uid}
            )
        rows = await session.all("artifact_event_ids", uid=uid)
        events = await _entries(
            runtime.vectors,
            CollectionName.EVENTS,
            uid,
            [str(row["event_id"]) for row in rows],
        )
        artifacts = await _entries(
            runtime.vectors,
            CollectionName.ARTIFACTS,
            uid,
            [row["artifact_id"] for row in revisions],
        )
        chunks = await _entries(
            runtime.vectors,
            CollectionName.CHUNKS,
            uid,
            [id_ for row in revisions if row["is_chunked"] for id_ in row["chunk_ids"]],
        )
        await runtime.vectors.delete(CollectionName.ARTIFACTS, artifacts)
        await runtime.vectors.delete(CollectionName.CHUNKS, chunks)
        await runtime.vectors.delete(CollectionName.EVENTS, events)
        return Deleted(
            artifact_uid=uid,
            vectors=len(artifacts) + len(chunks) + len(events),
            lineage_entries=await lineage.forget(session, uid),
            cache_entries=await session.run("delete_unshared_cache", uid=uid),
            evidence=await session.run("delete_evidence_of_artifact", uid=uid),
            events=await session.run("delete_events_of_artifact", uid=uid),
            jobs=await session.run("delete_jobs_of_artifact", uid=uid),
            chunks=await session.run("delete_chunks_of_artifact", uid=uid),
            revisions=await session.run("delete_revisions_of_artifact", uid=uid),
        )


async def _entries(
    vectors: VectorStore, name: CollectionName, uid: str, known: list[str]
) -> list[str]:
    """What Postgres knows of, and what an ingest that failed before its commit left behind."""
    found = await vectors.ids_where(name, {"artifact_uid": uid})
    return list(dict.fromkeys([*known, *found]))
