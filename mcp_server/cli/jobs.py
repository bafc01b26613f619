"""`mcp-memory jobs`: the queue at a glance, or watched until it is empty."""

import asyncio
import sys
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from mcp_server.cli import extraction_progress as progress
from mcp_server.cli import tables
from mcp_server.cli.safe_text import as_json as json_text
from mcp_server.cli.safe_text import shown
from mcp_server.cli.session import Memory, with_memory
from mcp_server.cli.tables import Column
from memory_core.kernel.errors import InvalidInput
from memory_core.kernel.short_ids import short

_STATUSES = ("PENDING", "PROCESSING", "DONE", "FAILED")
_ERROR_CHARS = 200
_LOOK_SECONDS = 1.0

Counts = dict[str, int]


def run(status: str | None, limit: int, *, watch: bool, as_json: bool) -> None:
    wanted = status.upper() if status else None
    if wanted is not None and wanted not in _STATUSES:
        raise InvalidInput(f"{status!r} is no status: choose {', '.join(_STATUSES)}.")

    async def work(memory: Memory) -> tuple[bool, Counts, list[dict[str, Any]]]:
        emptied = await _watch(memory) if watch else True
        async with memory.runtime.database.session() as session:
            rows = await session.all("list_jobs", status=wanted, limit=limit)
        return emptied, await _counts(memory), rows

    try:
        emptied, counts, rows = with_memory(work)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    if as_json:
        print(json_text({"counts": counts, "jobs": rows}))
    else:
        _show(counts, rows)
    if not emptied:
        print(progress.NO_PIPELINE, file=sys.stderr)
        raise typer.Exit(1)


def _show(counts: Counts, rows: list[dict[str, Any]]) -> None:
    out = tables.console()
    out.print("  ".join(f"{name} [bold]{counts.get(name, 0)}[/]" for name in _STATUSES))
    if not rows:
        return
    tables.show(
        [
            *(Column("document"), Column("status"), Column("tries"), Column("updated")),
            *(Column("title", 2), Column("error", 3)),
        ],
        (
            [
                short(row["artifact_uid"]),
                row["status"],
                f"{row['attempts']}/{row['max_attempts']}",
                f"{row['updated_at']:%m-%d %H:%M}",
                shown(row["title"] or "–"),
                shown(_error(row)),
            ]
            for row in rows
        ),
    )


def _error(row: dict[str, Any]) -> str:
    if not row["last_error_code"]:
        return ""
    return f"{row['last_error_code']}: {row['last_error_message']}"[:_ERROR_CHARS]


async def _watch(memory: Memory) -> bool:
    """Until nothing waits any more: True. False when nothing works on what waits."""
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("extracting events")
        while True:
            counts = await _counts(memory)
            ended = counts.get("DONE", 0) + counts.get("FAILED", 0)
            failed = f", {counts['FAILED']} failed" if counts.get("FAILED") else ""
            bar.update(
                task,
                total=sum(counts.values()),
                completed=ended,
                description=f"extracting events{failed}",
            )
            if ended == sum(counts.values()):
                return True
            if not await progress.pipeline_runs(memory.runtime.database, memory.runtime.settings):
                return False
            await asyncio.sleep(_LOOK_SECONDS)
            await memory.runtime.open()  # the stack may have been restarted


async def _counts(memory: Memory) -> Counts:
    async with memory.runtime.database.session() as session:
        rows = await session.all("count_jobs_by_status")
    return {row["status"]: row["jobs"] for row in rows}
