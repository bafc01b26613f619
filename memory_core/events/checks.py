"""Invariants of stored events, asked of the database itself."""

from collections.abc import Sequence

from memory_core.kernel.database import Database
from memory_core.queue.jobs import Job


async def broken_evidence(database: Database, jobs: Sequence[Job]) -> int:
    """How many quotes of these revisions are not the text at their offsets."""
    if not jobs:
        return 0
    async with database.session() as session:
        row = await session.one(
            "count_broken_evidence",
            uids=[job.artifact_uid for job in jobs],
            revisions=[job.revision_id for job in jobs],
        )
    assert row is not None
    return int(row["broken"])


async def all_broken_evidence(database: Database, limit: int = 1_000) -> int:
    """How many quotes of the whole database are not proved, counted up to a limit."""
    async with database.session() as session:
        return len(await session.all("find_broken_evidence", limit=limit))
