"""`mcp-memory reindex`: the same as `mcp-memory projections rebuild index`, with a progress bar."""

import asyncio

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from mcp_server.cli.command_record import opened
from memory_core.index import generation as generations
from memory_core.index import new_generation
from memory_core.kernel.end_tasks import end_tasks
from memory_core.kernel.settings import load_settings
from memory_core.log.checkpoint import ask_for_rebuild
from memory_core.log.worker import Worker
from memory_core.projections import projections
from memory_core.runtime import Runtime

_LOOK_SECONDS = 0.25


def run() -> None:
    asyncio.run(_rebuild())


async def _rebuild() -> None:
    """A worker that already runs does the work; otherwise this process is the worker until it is
    done."""
    async with opened(load_settings(), system="the index holds what all tenants have") as runtime:
        worker = asyncio.create_task(Worker(runtime.database, projections(runtime)).run())
        try:
            async with runtime.database.transaction() as session:
                wanted = await generations.begin(session, runtime.embedder)
                await ask_for_rebuild(session, "index")
            await _watch(runtime, wanted.generation)
        finally:
            await end_tasks(worker)


async def _watch(runtime: Runtime, wanted: int) -> None:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns) as progress:
        task = progress.add_task("documents and memories", total=None)
        while True:
            row = await new_generation.progress(runtime)
            if row is not None:
                progress.update(task, total=row.owners, completed=row.passed)
                if row.generation >= wanted and row.is_filled:
                    progress.update(task, completed=row.owners)
                    return
            await asyncio.sleep(_LOOK_SECONDS)
