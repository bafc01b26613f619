"""Output of an import on a terminal: a bar while it runs, a table when it is done."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from mcp_server.cli.extraction_progress import ExtractionProgress as Extraction
from memory_core.importing.report import OUTCOMES, ImportReport, ReportEntry
from memory_core.text.printable import single_line

_STYLES = {
    "created": "green", "revised": "cyan", "unchanged": "dim", "skipped": "yellow", "failed": "red",
}  # fmt: skip
_REASONS = 20
_FAILURES = 50
_GONE = 50
_PATH_CHARS = 200


class Bar:
    """On stderr, so that stdout has only the answer."""

    def __init__(self, *, quiet: bool) -> None:
        self._console = Console(stderr=True, quiet=quiet)

    @contextmanager
    def shown(
        self, what: str, *, total: int | None = None, report: ImportReport | None = None
    ) -> Iterator[Callable[[int], None]]:
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[documents]} documents, {task.fields[rate]}/s"),
            TimeRemainingColumn(),
        )
        begun = time.monotonic()
        with Progress(*columns, console=self._console, transient=True) as progress:
            task = progress.add_task(what, total=total, documents=0, rate=0)

            def advance(weight: int) -> None:
                stored = 0
                if report is not None:
                    stored = len(report.created) + len(report.revised) + len(report.unchanged)
                rate = round(stored / max(time.monotonic() - begun, 0.001))
                progress.update(task, advance=weight, documents=stored, rate=rate)

            yield advance


def show(report: ImportReport) -> None:
    console = Console()
    title = "What an import would do" if report.dry_run else None
    table = Table("", "documents", title=title)
    for outcome in OUTCOMES:
        number = len(getattr(report, outcome))
        table.add_row(f"[{_STYLES[outcome]}]{outcome}[/]", str(number))
    if report.pruned:
        table.add_row("[red]pruned[/]", str(len(report.pruned)))
    console.print(table)
    if not (any(report.counts.values()) or report.interrupted or report.stopped):
        console.print("No file was found there: hidden ones and links are left out.")
    _show_reasons(console, "skipped", report.skipped)
    _show_reasons(console, "unchanged", [entry for entry in report.unchanged if entry.reason])
    _show_failures(console, report.failed)
    if report.interrupted:
        console.print("Stopped. What is stored is complete; run it again to continue.")


def show_next(progress: Extraction) -> None:
    """What happens next to the imported documents."""
    console = Console()
    if progress.failures:
        console.print(
            f"[red]Extraction failed for {progress.failed:,} documents: {progress.fails()}.[/] "
            "mcp-memory doctor says what to do.",
            soft_wrap=True,
        )
    if not progress.unfinished:
        return
    number = (
        "1 document waits"
        if progress.unfinished == 1
        else (f"{progress.unfinished:,} documents wait")
    )
    what = "watch: mcp-memory jobs --watch"
    if not progress.pipeline_runs:
        what = "nothing extracts them yet: start mcp-memory up in another terminal"
    console.print(f"{number} for events; {what}", soft_wrap=True, highlight=False)


def line(report: ImportReport) -> None:
    """One line per change while watching."""
    parts = [
        f"[{_STYLES[outcome]}]{outcome}[/] {escape(_path(entry))}"
        + (f" ({escape(_text(entry.reason))})" if entry.reason else "")
        for outcome in ("created", "revised", "failed")
        for entry in getattr(report, outcome)
    ]
    for part in [*parts, *(f"[red]pruned[/] {escape(_path(entry))}" for entry in report.pruned)]:
        say(part)


def show_gone(entries: list[ReportEntry]) -> None:
    console = Console(stderr=True)
    table = Table("document", "why", title="No longer there")
    for entry in entries[:_GONE]:
        table.add_row(escape(_path(entry)), escape(_text(entry.reason)))
    console.print(table)
    if len(entries) > _GONE:
        console.print(f"and {len(entries) - _GONE} more")


def say(markup: str) -> None:
    Console(stderr=True).print(markup)


def _show_reasons(console: Console, outcome: str, entries: list[ReportEntry]) -> None:
    if not entries:
        return
    reasons = Counter(_text(entry.reason) for entry in entries)
    example = {_text(entry.reason): _path(entry) for entry in reversed(entries)}
    table = Table(outcome, "because", "such as")
    for reason, number in reasons.most_common(_REASONS):
        table.add_row(str(number), escape(reason), escape(example[reason]))
    console.print(table)
    if len(reasons) > _REASONS:
        console.print(f"and {len(reasons) - _REASONS} more reasons: --json lists all")


def _show_failures(console: Console, failed: list[ReportEntry]) -> None:
    if not failed:
        return
    table = Table("failed", "because")
    for entry in failed[:_FAILURES]:
        table.add_row(escape(_path(entry)), escape(_text(entry.reason)))
    console.print(table)
    if len(failed) > _FAILURES:
        console.print(f"and {len(failed) - _FAILURES} more: --json lists all")


def _path(entry: ReportEntry) -> str:
    """File names are untrusted text: no control character may reach the terminal."""
    return single_line(entry.path, _PATH_CHARS)


def _text(reason: str | None) -> str:
    return single_line(reason or "", _PATH_CHARS)
