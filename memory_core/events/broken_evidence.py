"""Checks of stored evidence, computed in the database."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from memory_core.kernel.database import Database, Session
from memory_core.queue.jobs import Job

_COUNTED = 1_000


@dataclass(frozen=True, slots=True)
class BrokenEvidence:
    """A quote that differs from the text at its offsets."""

    total: int  # number of all such quotes
    event_id: UUID
    artifact_uid: str
    revision_id: str
    start_char: int
    end_char: int

    def __str__(self) -> str:
        return f"{self.event_id} {self.artifact_uid} {self.revision_id}"


async def broken_evidence(database: Database, jobs: Sequence[Job]) -> int:
    """The number of quotes of these revisions that differ from the text at their offsets."""
    if not jobs:
        return 0
    async with database.session() as session:
        return await session.value(
            int,
            "count_broken_evidence",
            uids=[job.artifact_uid for job in jobs],
            revisions=[job.revision_id for job in jobs],
        )


async def all_broken_evidence(database: Database) -> int:
    """The number of unproved quotes in the whole database, counted up to a limit."""
    async with database.session() as session:
        return len(await unproved_quotes(session, _COUNTED))


async def unproved_quotes(session: Session, limit: int | None = None) -> list[BrokenEvidence]:
    """Of the whole database."""
    return await session.rows(BrokenEvidence, "find_broken_evidence", limit=limit)
