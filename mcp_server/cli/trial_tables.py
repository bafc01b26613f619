"""Output of prompt trials on a terminal."""

from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from mcp_server.cli.backfill_tables import filter_of, with_runtime
from mcp_server.cli.safe_text import as_json as json_text
from mcp_server.cli.safe_text import shown
from memory_core.backfill.trial import SIDES, Trial, run_trial
from memory_core.backfill.trial_page import page
from memory_core.runtime import Runtime

_EXAMPLES = 10
_STYLES = {"lost": "red", "added": "green", "changed": "yellow"}


def run(
    chosen: dict[str, Any],
    *,
    sample: int,
    seed: int,
    other_models: bool,
    markdown: bool,
    as_json: bool,
) -> None:
    limits = filter_of(chosen)

    async def work(runtime: Runtime) -> Trial:
        with Progress(disable=as_json or markdown) as progress:
            task = progress.add_task("trial", total=sample)
            return await run_trial(
                runtime,
                limits,
                sample=sample,
                seed=seed,
                requested_by="cli",
                other_models=other_models,
                advance=lambda done, of: progress.update(task, completed=done, total=of),
            )

    trial = with_runtime(work)
    if as_json:
        print(json_text(trial.as_json()))
    elif markdown:
        print(page(trial))
    else:
        _show(Console(), trial)


def _show(console: Console, trial: Trial) -> None:
    table = Table("document", *SIDES, "rejected", "calls", "tokens", expand=True)
    for row in trial.revisions:
        name = shown(row.title or row.artifact_uid)
        if row.error is not None:
            table.add_row(name, f"[red]failed[/] {shown(row.error)}")
            continue
        table.add_row(
            name,
            *(str(len(row.comparison[side])) for side in SIDES),
            f"{row.rejected_before} → {row.rejected}",
            str(row.calls),
            f"{row.prompt_tokens + row.completion_tokens:,}",
        )
    totals = trial.totals()
    table.add_section()
    table.add_row(
        f"{totals['revisions']} revisions, {totals['failed']} failed",
        *(str(totals[side]) for side in SIDES),
        f"{totals['rejected_before']} → {totals['rejected']}",
        str(totals["calls"]),
        f"{totals['tokens']:,}",
    )
    head = trial.trial
    console.print(f"[bold]{head.extractor} {head.extract_version}[/] on {head.model}")
    console.print(table)
    for side, style in _STYLES.items():
        _show_examples(console, trial, side, style)
    console.print(
        "[dim]No event was replaced. Answers are cached: a backfill does not pay for them again. "
        "The page is on the asset prompt_trial in Dagster.[/]"
    )


def _show_examples(console: Console, trial: Trial, side: str, style: str) -> None:
    events = [event for row in trial.revisions for event in row.comparison.get(side, ())]
    if not events:
        return
    console.print(f"\n[{style}]{side} ({len(events)})[/]")
    for event in events[:_EXAMPLES]:
        fields = f" [dim]({', '.join(sorted(event['fields']))})[/]" if "fields" in event else ""
        console.print(f"  [cyan]{event['category']}[/] {shown(event['narrative'])}{fields}")
        console.print(f"    [dim]“{shown(event['quote'])}”[/]")
