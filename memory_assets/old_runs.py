"""Which of Dagster's old runs can be deleted.

A run takes its events with it. So one stays, however old, while it shows something of a partition
that is listed: its last materialisation (without it the partition would be missing, and neither
stale nor fresh), or the failure that it ended with.
"""

from collections.abc import Sequence

from memory_core.kernel.database import Database


async def prunable_runs(
    database: Database, days: int, limit: int, skip: Sequence[str]
) -> list[str]:
    """Finished runs that old which show nothing that must stay, oldest first."""
    async with database.session() as session:
        if not await session.value(bool, "history_tables_exist"):
            return []
        return await session.values(str, "prunable_runs", days=days, limit=limit, skip=list(skip))


async def prune_check_results(database: Database, days: int, limit: int) -> int:
    """Results of asset checks whose run is gone, but the latest of each check."""
    async with database.session() as session:
        if not await session.value(bool, "history_tables_exist"):
            return 0
        return await session.run("prune_check_results", days=days, limit=limit)
