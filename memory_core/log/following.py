"""Following the log: changes as they become readable, for readers without a checkpoint."""

import contextlib
from collections.abc import AsyncIterator, Collection

import psycopg

from memory_core.kernel import queries
from memory_core.kernel.database import Database, postgres_faults
from memory_core.log.change import Change, Position
from memory_core.log.reading import read

_PAGE = 200
# Without a notification, too: the horizon moves silently, and a pooler may not pass them on.
_LOOK_SECONDS = 1.0


async def follow(
    database: Database, after: Position, types: Collection[str] | None = None
) -> AsyncIterator[Change]:
    """Every change after a position, in order, without an end."""
    with postgres_faults():
        async with await psycopg.AsyncConnection.connect(
            database.dsn, autocommit=True, connect_timeout=5
        ) as connection:
            await connection.execute(queries.get("listen_to_log"))
            while True:
                async with database.session() as session:
                    page = await read(session, after, _PAGE, types)
                for change in page:
                    yield change
                    after = change.position
                if len(page) < _PAGE:
                    async with contextlib.aclosing(
                        connection.notifies(timeout=_LOOK_SECONDS, stop_after=1)
                    ) as notices:
                        async for _ in notices:
                            pass
