"""What ranking needs to know of all passages, counted again."""

from memory_core.kernel.database import Database


async def rebuild(database: Database) -> int:
    """Makes one row of what each change added since the last time, and repairs what was
    changed by hand. Returns the number of passages that searches go through."""
    async with database.session() as session:
        row = await session.one("rebuild_passage_statistics")
    assert row is not None
    return int(row["passages"])
