"""Delivers webhooks and nothing else, for tests that kill it: `python -m tests.webhook_worker`."""

import asyncio
import sys

from memory_core.kernel.database import Database
from memory_core.log.worker import Worker
from memory_core.webhooks.delivery import Webhooks
from memory_core.webhooks.sender import Sender


async def main(dsn: str) -> None:
    database = Database(dsn)
    await database.open()
    await Worker(database, [], [Webhooks(database, Sender(allow_private=True))]).run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
