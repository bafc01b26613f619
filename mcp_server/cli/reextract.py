"""`mcp-memory reextract`: ask for a revision's events again."""

import asyncio

from rich.console import Console
from rich.markup import escape

from memory_core.events import reextraction
from memory_core.events.reextraction import Reextraction
from memory_core.runtime import Runtime
from memory_core.settings import load_settings


def run(artifact_uid: str, revision_id: str | None, *, force: bool) -> None:
    done = asyncio.run(_ask(artifact_uid, revision_id, force=force))
    console = Console()
    console.print(escape(done.message), soft_wrap=True)
    console.print(
        f"{done.job['status']}  {escape(done.job['artifact_uid'])} "
        f"{escape(done.job['revision_id'])}  [dim]mcp-memory jobs shows how it goes[/]",
        soft_wrap=True,
    )


async def _ask(artifact_uid: str, revision_id: str | None, *, force: bool) -> Reextraction:
    runtime = Runtime(load_settings())
    try:
        await runtime.open()
        return await reextraction.reextract(runtime, artifact_uid, revision_id, force=force)
    finally:
        await runtime.close()
