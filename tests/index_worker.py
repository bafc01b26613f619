"""A worker in a process of its own, for tests that kill it: `python -m tests.index_worker`."""

import asyncio

from memory_core.kernel.settings import load_settings
from memory_core.log.worker import Worker
from memory_core.projections import projections
from stack.connection import joined_runtime


async def main() -> None:
    runtime = joined_runtime(load_settings(), unasked="a test looks at what is stored")
    await runtime.open()
    await Worker(runtime.database, projections(runtime)).run()


if __name__ == "__main__":
    asyncio.run(main())
