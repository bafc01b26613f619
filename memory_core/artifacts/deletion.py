"""Deleting an artifact with everything that was derived from it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from memory_core.artifacts.locks import lock
from memory_core.artifacts.stored_artifacts import resolve_uid
from memory_core.kernel import principal
from memory_core.kernel.database import Database, Session
from memory_core.kernel.errors import NotFound
from memory_core.kernel.orchestrator import Orchestrator
from memory_core.log.change import ChangeType, Position, of_artifact
from memory_core.log.log_writer import append
from memory_core.queue import requests
from memory_core.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Deleted:
    artifact_uid: str
    revisions: int
    chunks: int
    vectors: int  # entries of the index, which drops them next
    events: int
    evidence: int
    jobs: int
    cache_entries: int
    lineage_entries: int  # events in the orchestrator's own log
    position: Position


async def delete_artifact(
    runtime: Runtime, *, artifact_id: str | None = None, artifact_uid: str | None = None
) -> Deleted:
    """Delete all of an artifact in one transaction. The index follows through the log."""
    async with runtime.database.session() as session:
        uid = await resolve_uid(session, artifact_id, artifact_uid)
        if not await session.value(bool, "sees_latest_revision", uid=uid):
            raise _not_found(uid)
    with principal.system("what a document leaves in caches and lineage is not the principal's"):
        return await delete_uid(
            runtime.database, runtime.orchestrator, uid, ChangeType.ARTIFACT_DELETED
        )


async def delete_uid(
    database: Database,
    orchestrator: Orchestrator,
    uid: str,
    change: ChangeType,
    *,
    only_if: Callable[[Session], Awaitable[bool]] | None = None,
) -> Deleted:
    """Delete as the system, after the caller has checked that this artifact may be deleted.
    `only_if` is asked while the artifact is locked against other writers; if it says no, nothing is
    deleted."""
    async with database.transaction() as session:
        await lock(session, uid)
        if only_if is not None and not await only_if(session):
            raise _not_found(uid)
        counts = await _delete_rows(session, uid, orchestrator)
        if not counts["revisions"]:
            raise _not_found(uid)
        [position] = await append(session, [of_artifact(change, uid)])
        return Deleted(artifact_uid=uid, **counts, position=position)


def _not_found(uid: str) -> NotFound:
    return NotFound(
        f"There is no artifact {uid!r}: nothing was deleted.", details={"artifact_uid": uid}
    )


async def _delete_rows(session: Session, uid: str, orchestrator: Orchestrator) -> dict[str, int]:
    """The order matters: chunks and revisions go last, because they tell which rows other documents
    share."""
    counts = {"vectors": await session.value(int, "count_entries_of_owner", owner=uid)}
    counts["lineage_entries"] = await orchestrator.forget(session, uid)
    counts["cache_entries"] = await session.run("delete_unshared_cache", uid=uid)
    await session.run("forget_embeddings", owners=[uid])
    await session.run("forget_dead_letters", owner=uid)
    counts["evidence"] = await session.run("delete_evidence_of_artifact", uid=uid)
    names = await session.values(str, "names_in_artifact", uid=uid)
    counts["events"] = await session.run("delete_events_of_artifact", uid=uid)
    await session.run("forget_names", names=names)
    await session.run("forget_in_audit", uid=uid)
    counts["jobs"] = await requests.delete_of_artifact(session, uid)
    counts["chunks"] = await session.run("delete_chunks_of_artifact", uid=uid)
    counts["revisions"] = await session.run("delete_revisions_of_artifact", uid=uid)
    return counts
