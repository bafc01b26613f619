"""`mcp-memory jobs`: the queue at a glance."""

import asyncio
from typing import Any

from rich.console import Console
from rich.table import Table

from mcp_server.cli.showing import as_json as json_text
from mcp_server.cli.showing import shown
from memory_core.errors import InvalidInput
from memory_core.runtime import Runtime
from memory_core.settings import load_settings

_STATUSES = ("PENDING", "PROCESSING", "DONE", "FAILED")


def run(status: str | None, limit: int, *, as_json: bool) -> None:
    wanted = status.upper() if status else None
    if wanted is not None and wanted not in _STATUSES:
        raise InvalidInput(f"{status!r} is no status: choose {', '.join(_STATUSES)}.")
    counts, rows = asyncio.run(_read(wanted, limit))
    if as_json:
        print(json_text({"counts": counts, "jobs": rows}))
        return
    console = Console()
    console.print("  ".join(f"{name} [bold]{counts.get(name, 0)}[/]" for name in _STATUSES))
    table = Table("status", "tries", "document", "asked by", "updated", "error", expand=True)
    for row in rows:
        error = f"{row['last_error_code']}: {row['last_error_message']}"
        table.add_row(
            row["status"],
            f"{row['attempts']}/{row['max_attempts']}",
            shown(row["title"] or row["artifact_uid"]),
            shown(row["requested_by"]),
            f"{row['updated_at']:%Y-%m-%d %H:%M:%S}",
            shown(error[:200]) if row["last_error_code"] else "",
        )
    console.print(table)


async def _read(status: str | None, limit: int) -> tuple[dict[str, int], list[dict[str, Any]]]:
    runtime = Runtime(load_settings())
    try:
        await runtime.open()
        async with runtime.database.session() as session:
            counts = await session.all("count_jobs_by_status")
            rows = await session.all("list_jobs", status=status, limit=limit)
    finally:
        await runtime.close()
    return {row["status"]: row["jobs"] for row in counts}, rows
