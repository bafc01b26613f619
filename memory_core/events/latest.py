"""Whether events are marked latest as their revisions are: what an integrity check looks at."""

from memory_core.database import Database, Row


async def out_of_step(database: Database, *, limit: int) -> list[Row]:
    """Events whose mark differs from their revision's, and what the revision says."""
    async with database.session() as session:
        return await session.all("find_events_out_of_step", limit=limit)


async def mend(database: Database) -> int:
    """Give them the mark of their revision; how many it were."""
    async with database.transaction() as session:
        return await session.run("mend_events_out_of_step")
