"""`make demo`: the whole product on a throw-away data dir, as a new user would see it."""

import asyncio
import shutil
import time

from mcp import Client
from rich.console import Console

from memory_core.settings import load_settings
from memory_core.stack.process import StackProcess


def run() -> None:
    console = Console()
    data_dir = load_settings().data_dir / "demo"
    shutil.rmtree(data_dir, ignore_errors=True)
    console.print("[bold]Starting Postgres, Chroma, Dagster and the MCP server …[/]")
    begun = time.monotonic()
    stack = StackProcess(data_dir, {"EXTRACTOR": "rules", "EMBEDDER": "local"})
    try:
        state = stack.start()
        console.print(f"[green]✓[/] everything is up after {time.monotonic() - begun:.1f} s")
        assert state.mcp_url is not None
        asyncio.run(_show(console, state.mcp_url))
    finally:
        stack.stop()
    console.print("[green]✓[/] everything is stopped again")


async def _show(console: Console, url: str) -> None:
    async with Client(url) as client:
        answer = await client.call_tool("embedding_health", {})
    console.print(answer.structured_content)
