"""Retiring partitions: Dagster's list of keys stays within MAX_LIVE_PARTITIONS.

A retired revision loses only its key in Dagster's list. A request to extract it again (tool,
command line, backfill) brings the key back: the sensor adds the keys of due jobs.
"""

from dataclasses import dataclass

from memory_core.kernel.database import Database, Session

# Keys per statement, so that each statement holds its locks for milliseconds only.
_BATCH = 500


@dataclass(frozen=True, slots=True)
class RetirementResult:
    live: int  # number of keys that are left
    retired: int
    kept: str | None = None  # why more keys are left than the limit


async def retire(database: Database, limit: int) -> RetirementResult:
    """Retire superseded revisions first, oldest first. A revision with an open job is never
    retired."""
    async with database.session() as session:
        if not await session.value(bool, "partition_tables_exist"):
            return RetirementResult(0, 0)
        live = await _live(session)
        retired = 0
        while live - retired > limit:
            if await session.value(bool, "backfill_in_progress"):
                return await _left(session, retired, "a Dagster backfill is in progress")
            # Select the keys again for each batch, so that a revision that became due meanwhile is
            # skipped.
            gone = await session.run("retire_partitions", limit=min(_BATCH, live - retired - limit))
            retired += gone
            if not gone:
                return await _left(session, retired, "the others have work before them")
        return RetirementResult(await _live(session), retired)


async def _left(session: Session, retired: int, reason: str) -> RetirementResult:
    return RetirementResult(await _live(session), retired, reason)


async def _live(session: Session) -> int:
    return await session.value(int, "count_live_partitions")
