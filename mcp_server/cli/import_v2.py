"""`mcp-memory import-v2`."""

import asyncio
from dataclasses import asdict
from functools import partial

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import MofNCompleteColumn, Progress, TextColumn

from mcp_server.cli.configuration import read_settings
from mcp_server.cli.safe_text import as_json as json_text
from memory_core.importing.v2.v2_import import V2ImportReport, import_v2
from stack.chroma_copy import serving
from stack.connection import joined_runtime

_SHOWN = 20


def run(place: str, *, dry_run: bool, as_json: bool) -> None:
    report = asyncio.run(_import(place, dry_run=dry_run, quiet=as_json))
    if as_json:
        summary = {**asdict(report), "not_kept": sorted(report.not_kept)}
        print(json_text(summary))
    else:
        _show(report)
    if report.refused:
        raise typer.Exit(1)


async def _import(place: str, *, dry_run: bool, quiet: bool) -> V2ImportReport:
    runtime = joined_runtime(read_settings(), worker="when needed")
    columns = (TextColumn("read"), MofNCompleteColumn())
    try:
        await runtime.open()
        with Progress(*columns, console=Console(stderr=True), disable=quiet) as progress:
            task = progress.add_task("read", total=None)
            return await import_v2(
                runtime, place, serving, dry_run=dry_run, advance=partial(progress.advance, task)
            )
    finally:
        await runtime.close()


def _show(report: V2ImportReport) -> None:
    console = Console()
    for name in ("memories", "turns", "documents"):
        counts = getattr(report, name)
        outcome = (
            "nothing was stored (--dry-run)"
            if report.dry_run
            else f"{counts.created} stored, {counts.unchanged} were there already"
        )
        console.print(f"{name}: {counts.read} read, {outcome}")
    for id_, reason in report.refused[:_SHOWN]:
        console.print(f"[red]not imported[/] {escape(id_)}: {escape(reason)}")
    if len(report.refused) > _SHOWN:
        console.print(f"… and {len(report.refused) - _SHOWN} more: --json lists them all")
    if report.not_kept:
        names = ", ".join(sorted(report.not_kept))
        console.print(f"Metadata without a place in this version, not kept: {escape(names)}")
