"""Vacuuming the tables that need it, after much was deleted: autovacuum waits for a fifth."""

from psycopg import sql

from memory_core.kernel.database import Database

DEAD_ROWS = 10_000
DEAD_SHARE = 0.1


async def vacuum(
    database: Database, *, dead_rows: int = DEAD_ROWS, dead_share: float = DEAD_SHARE
) -> list[str]:
    """Returns the tables. Readers and writers go on; a table that is locked is left for later."""
    async with database.session() as session:
        rows = await session.all("tables_to_vacuum", dead_rows=dead_rows, dead_share=dead_share)
        for row in rows:
            table = sql.Identifier(row["schemaname"], row["relname"])
            await session.connection.execute(
                sql.SQL("VACUUM (ANALYZE, SKIP_LOCKED) {}").format(table)
            )
    return [f"{row['schemaname']}.{row['relname']}" for row in rows]
