"""What the stack costs while it is idle.

    python -m benchmarks idle

CPU of every process over a minute, after the last document is done.
"""

import asyncio
import tempfile
import time
from pathlib import Path

from mcp import Client
from rich.console import Console
from rich.table import Table

from benchmarks.stack_cpu import cpu_seconds
from stack.process import running_stack

SETTLE_SECONDS = 20.0
WATCHED_SECONDS = 60.0
BAR_PERCENT = 5.0
_OFFLINE = {"EXTRACTOR": "rules", "EMBEDDER": "local", "LOG_LEVEL": "WARNING"}


def measure() -> dict[str, float]:
    """Percent of one core, by process."""
    with (
        tempfile.TemporaryDirectory() as folder,
        running_stack(Path(folder), _OFFLINE) as (process, state),
    ):
        assert state.mcp_url is not None
        asyncio.run(_ingest(state.mcp_url))
        time.sleep(SETTLE_SECONDS)
        before, begun = cpu_seconds(process.layout.root, process.pid), time.monotonic()
        time.sleep(WATCHED_SECONDS)
        after, seconds = cpu_seconds(process.layout.root, process.pid), time.monotonic() - begun
    return {name: 100 * (after[name] - before[name]) / seconds for name in after}


async def _ingest(url: str) -> None:
    async with Client(url) as client:
        for number in range(5):
            await client.call_tool(
                "artifact_ingest",
                {
                    "artifact_type": "note",
                    "source_system": "bench",
                    "source_id": f"idle-{number}",
                    "title": f"Stand-up {number}",
                    "content": f"Decisions\n- We go with Postgres for round {number}.\n",
                },
            )


def main() -> None:
    used = measure()
    table = Table("process", "% of one core")
    for name, percent in sorted(used.items(), key=lambda item: -item[1]):
        table.add_row(name, f"{percent:.1f}")
    total = sum(used.values())
    verdict = "[green]✓[/]" if total <= BAR_PERCENT else "[red]✗[/]"
    table.add_section()
    table.add_row("whole stack", f"{total:.1f}  (≤ {BAR_PERCENT:g}) {verdict}")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
