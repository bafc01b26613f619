"""The log as a test reads it."""

import asyncio

from memory_core.kernel.database import Database
from memory_core.log import log_reader
from memory_core.log.change import START, Change
from tests.patience import PATIENCE

_MOST = 100_000


async def all_changes(database: Database) -> list[Change]:
    """All changes that were committed. Another process may hold the horizon back for a moment, the
    worker with its checkpoint for example."""
    async with asyncio.timeout(PATIENCE), database.session() as session:
        newest = await log_reader.newest(session)
        while newest is not None and await log_reader.end(session) < newest:
            await asyncio.sleep(0.01)
        return await log_reader.read(session, START, _MOST)
