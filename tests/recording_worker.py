"""A worker in a process of its own, for tests that kill it: `python -m tests.recording_worker DSN`.

Its projection writes what it takes in to the table `recorded`, and dies on a change whose memory is
called `mem_death`.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence

from memory_core.kernel.database import Database
from memory_core.log.change import Change
from memory_core.log.projection import Commit
from memory_core.log.worker import Worker


class Recording:
    name = "recording"
    types = None
    batch = 8

    async def apply(self, changes: Sequence[Change], commit: Commit) -> None:
        names = [change.payload["memory_id"] for change in changes]
        if "mem_death" in names:
            os.kill(os.getpid(), signal.SIGKILL)
        async with commit() as session:
            await session.connection.cursor().executemany(
                b"INSERT INTO recorded (name, pid) VALUES (%s, %s)",
                [(name, os.getpid()) for name in names],
            )

    async def rebuild(self) -> None:
        return None


async def main(dsn: str) -> None:
    database = Database(dsn, unasked="a test looks at what is stored")
    await database.open()
    await Worker(database, [Recording()]).run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
