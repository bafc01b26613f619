"""Vacuuming tables after large deletions: autovacuum would wait until a fifth of a table is
dead."""

from collections.abc import Sequence
from dataclasses import dataclass

from psycopg import sql

from memory_core.kernel.database import Database

SCHEMAS = ("public", "log")
DEAD_ROWS = 10_000
DEAD_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class TableName:
    schemaname: str
    relname: str


async def vacuum(
    database: Database, *, schemas: Sequence[str] = SCHEMAS, dead_rows: int = DEAD_ROWS
) -> list[str]:
    """Vacuum and return the tables. Readers and writers are not blocked; a locked table is
    skipped."""
    async with database.session() as session:
        tables = await session.rows(
            TableName,
            "tables_to_vacuum",
            schemas=list(schemas),
            dead_rows=dead_rows,
            dead_share=DEAD_SHARE,
        )
        for table in tables:
            name = sql.Identifier(table.schemaname, table.relname)
            await session.connection.execute(
                sql.SQL("VACUUM (ANALYZE, SKIP_LOCKED) {}").format(name)
            )
    return [f"{table.schemaname}.{table.relname}" for table in tables]
