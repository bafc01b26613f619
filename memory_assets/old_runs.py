"""Which of Dagster's old runs can be deleted.

Deleting a run deletes its events. So a run stays, however old, while it is the source of what a
listed partition shows: its last materialisation (without it Dagster would call the partition
missing), or the failure that it ended with.
"""

from collections.abc import Sequence

from memory_core.kernel.database import Database


async def prunable_runs(
    database: Database, days: int, limit: int, skip: Sequence[str]
) -> list[str]:
    """Finished runs of this age that no partition needs, oldest first."""
    async with database.session() as session:
        if not await session.value(bool, "history_tables_exist"):
            return []
        return await session.values(str, "prunable_runs", days=days, limit=limit, skip=list(skip))


async def prune_check_results(database: Database, days: int, limit: int) -> int:
    """Delete results of asset checks whose run is gone, except the latest of each check."""
    async with database.session() as session:
        if not await session.value(bool, "history_tables_exist"):
            return 0
        return await session.run("prune_check_results", days=days, limit=limit)
