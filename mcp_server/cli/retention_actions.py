"""The actions of `mcp-memory retention …`."""

from datetime import UTC, datetime
from typing import Any

import typer

from mcp_server.cli import terminal_tables
from mcp_server.cli.safe_text import as_json as json_text
from mcp_server.cli.safe_text import shown
from mcp_server.cli.session import OpenMemory, with_operator
from mcp_server.cli.terminal_tables import Column
from memory_core.kernel.times import utc_text
from memory_core.upkeep import retention
from memory_core.upkeep.retention import Expired, RetentionOutcome


def show(*, dry_run: bool, as_json: bool) -> None:
    async def work(memory: OpenMemory) -> RetentionOutcome:
        runtime = memory.runtime
        return await retention.run(
            runtime.database, runtime.orchestrator, datetime.now(UTC), dry_run=dry_run
        )

    outcome = with_operator(work)
    if as_json:
        print(json_text(_as_json(outcome, dry_run)))
    else:
        _print_result(outcome, dry_run)
    if outcome.failed:
        raise typer.Exit(1)


def _print_result(outcome: RetentionOutcome, dry_run: bool) -> None:
    if not outcome.expired:
        print("No document has expired.")
        return
    terminal_tables.show(
        [Column(name) for name in ("document", "title", "source", "policy", "over since")],
        ([*_row(document)] for document in outcome.expired),
    )
    if dry_run:
        print(f"{len(outcome.expired)} would be deleted; nothing was.")
        return
    print(f"{len(outcome.deleted)} deleted, {len(outcome.failed)} failed.")
    for uid, kind in outcome.failed.items():
        print(f"{uid}: {kind}")


def _row(document: Expired) -> list[str]:
    return [
        document.artifact_uid,
        shown(document.title or ""),
        shown(document.source_system),
        document.policy,
        f"{document.due:%Y-%m-%d %H:%M}" if document.due else "all promises are kept",
    ]


def _as_json(outcome: RetentionOutcome, dry_run: bool) -> dict[str, Any]:
    return {
        "dry_run": dry_run,
        "expired": [
            {
                "artifact_uid": one.artifact_uid,
                "title": one.title,
                "source_system": one.source_system,
                "retention_policy": one.policy,
                "expired_at": utc_text(one.due) if one.due else None,
            }
            for one in outcome.expired
        ],
        "deleted": outcome.deleted,
        "failed": outcome.failed,
    }
