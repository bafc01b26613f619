"""The index of a benchmark: its own collections, and a worker if one is wanted."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from memory_core.index.generation import Generation, serving
from memory_core.index.writer import settle_now
from memory_core.kernel.settings import Settings
from memory_core.log.worker import Worker
from memory_core.projections import projections
from memory_core.runtime import Runtime
from stack.connection import joined_runtime


async def own_generation(runtime: Runtime) -> Generation:
    """The serving generation, created if necessary."""
    await settle_now(runtime, [])
    async with runtime.database.session() as session:
        generation = await serving(session)
    assert generation is not None
    return generation


@asynccontextmanager
async def following(settings: Settings) -> AsyncIterator[Runtime]:
    """Runs a worker in this process."""
    runtime = joined_runtime(settings, unasked="a benchmark looks at what is stored")
    await runtime.open()
    task = asyncio.create_task(Worker(runtime.database, projections(runtime)).run())
    try:
        yield runtime
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await runtime.close()
