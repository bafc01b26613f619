"""What the memory holds, as an asset one can look at."""

import asyncio

import dagster as dg

from memory_core.database import Database
from memory_core.settings import load_settings


@dg.asset(group_name="memory", kinds={"postgres"})
def revision_inventory() -> dg.MaterializeResult[None]:
    """Counts the revisions and extraction jobs in Postgres."""
    return dg.MaterializeResult(metadata=asyncio.run(_count()))


async def _count() -> dict[str, int]:
    database = Database(load_settings().dsn, max_connections=1)
    await database.open()
    try:
        async with database.session() as session:
            revisions = await session.one("count_revisions")
            jobs = await session.all("count_jobs_by_status")
    finally:
        await database.close()
    assert revisions is not None
    return {
        "revisions": revisions["revisions"],
        **{f"jobs_{row['status'].lower()}": row["jobs"] for row in jobs},
    }
