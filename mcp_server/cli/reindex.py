"""`mcp-memory reindex`."""

import asyncio
from functools import partial

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from memory_core import reindex
from memory_core.errors import InvalidInput
from memory_core.runtime import Runtime
from memory_core.settings import load_settings

_PARTS = {
    "documents": (reindex.count_text, reindex.rebuild_text),
    "memories": (reindex.count_memories, reindex.rebuild_memories),
    "events": (reindex.count_events, reindex.rebuild_events),
}


def run(what: str) -> None:
    if what != "all" and what not in _PARTS:
        raise InvalidInput(f"{what!r} cannot be reindexed: choose {', '.join(_PARTS)} or all.")
    asyncio.run(_rebuild(list(_PARTS) if what == "all" else [what]))


async def _rebuild(parts: list[str]) -> None:
    runtime = Runtime(load_settings())
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    try:
        await runtime.open()
        with Progress(*columns) as progress:
            for part in parts:
                count, rebuild = _PARTS[part]
                task = progress.add_task(part, total=await count(runtime))
                await rebuild(runtime, partial(progress.advance, task))
    finally:
        await runtime.close()
