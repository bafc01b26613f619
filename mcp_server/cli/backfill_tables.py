"""Output of plans and backfills on a terminal."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeVar

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from mcp_server.cli.command_record import opened
from mcp_server.cli.configuration import read_settings
from mcp_server.cli.safe_text import as_json as json_text
from mcp_server.cli.session import with_memory
from memory_core.backfill import control
from memory_core.backfill.control import StartedBackfill, Status
from memory_core.backfill.plan import BackfillPlan, make_plan
from memory_core.backfill.scope import Filter
from memory_core.kernel import ids
from memory_core.kernel.errors import InvalidInput
from memory_core.runtime import Runtime

T = TypeVar("T")
LOOK_SECONDS = 1.0
_WHY = "a backfill goes through all documents"
_OPEN = frozenset({"RUNNING"})


def plan(chosen: dict[str, Any], *, other_models: bool, as_json: bool) -> None:
    limits = filter_of(chosen)
    made = with_runtime(lambda runtime: make_plan(runtime, limits, other_models=other_models))
    if as_json:
        print(json_text(made.as_json()))
    else:
        _show_plan(Console(), made)


def start(
    chosen: dict[str, Any], *, other_models: bool, yes: bool, wait: bool, as_json: bool
) -> None:
    limits = filter_of(chosen)
    console = Console()
    if not (yes or as_json):
        made = with_runtime(lambda runtime: make_plan(runtime, limits, other_models=other_models))
        _show_plan(console, made)
        if made.revisions and not typer.confirm("Start it?"):
            console.print("Nothing was started.")
            return
    started: StartedBackfill = with_runtime(
        lambda runtime: control.start(
            runtime, limits, other_models=other_models, requested_by="cli"
        )
    )
    if as_json and not wait:
        first = started.first
        id_ = str(first.backfill_id) if first else None
        note = first and first.note
        print(json_text({"plan": started.plan.as_json(), "backfill_id": id_, "note": note}))
        return
    if started.first is None:
        console.print("Nothing is outdated: nothing was started.")
        return
    if not as_json:
        console.print(f"Backfill [bold]{started.first.backfill_id}[/]: {started.first.note}.")
    if wait:
        ended = status(str(started.first.backfill_id), watch=True, as_json=as_json)
        if ended != "DONE":
            raise typer.Exit(1)


def status(which: str | None, *, watch: bool, as_json: bool) -> str:
    id_ = ids.parse_uuid("backfill_id", which) if which else None

    async def look(runtime: Runtime) -> Status:
        seen = await control.status(runtime, id_)
        return await _watch(runtime, seen, quiet=as_json) if watch else seen

    seen = with_runtime(look)
    if as_json:
        print(json_text(seen.as_json()))
    else:
        _show_status(Console(), seen)
    return str(seen.backfill.status)


def change(what: Literal["pause", "resume", "cancel"], *, as_json: bool) -> None:
    changed: Status = with_runtime(getattr(control, what))
    if as_json:
        print(json_text(changed.as_json()))
    else:
        _show_status(Console(), changed)


async def _watch(runtime: Runtime, seen: Status, *, quiet: bool) -> Status:
    """Watch until it ends or is paused."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, disable=quiet) as progress:
        task = progress.add_task("backfill", total=seen.total, completed=seen.ended)
        while seen.backfill.status in _OPEN:
            await asyncio.sleep(LOOK_SECONDS)
            seen = await control.status(runtime, seen.backfill.backfill_id)
            failed = seen.progress.failed
            progress.update(
                task,
                total=seen.total,
                completed=seen.ended,
                description=f"backfill, {failed} failed" if failed else "backfill",
            )
    return seen


def _show_plan(console: Console, made: BackfillPlan) -> None:
    ours = made.versions
    now = _made_with(ours.extractor, ours.model, ours.extract, ours.merge)
    if made.revisions:
        console.print(_cost_table(made, f"Extracting again with {now}"))
    else:
        console.print(f"Nothing is outdated. Events are made with {now}.")
    by_version = Table("events made with", "revisions", title="Now")
    for row in made.made_with:
        versions = (row.extractor, row.model, row.extract_version, row.merge_version)
        by_version.add_row(escape(_made_with(*versions)), f"{row.revisions:,}")
    if made.made_with:
        console.print(by_version)
    for warning in made.warnings:
        console.print(f"[yellow]{escape(warning)}[/]")


def _cost_table(made: BackfillPlan, title: str) -> Table:
    cost = made.cost
    table = Table(title=title, show_header=False)
    table.add_row("revisions to extract", f"{made.revisions:,} ({made.latest:,} of them latest)")
    table.add_row("their chunks", f"{cost.chunks:,} ({cost.distinct_chunks:,} different ones)")
    table.add_row("answered before", f"{cost.cached_chunks:,} chunks, from the cache")
    table.add_row(
        "calls to the model",
        f"{cost.calls:,} ({cost.chunk_calls:,} to extract, {cost.merge_calls:,} to merge)",
    )
    table.add_row(
        "tokens, estimated",
        f"{cost.tokens:,} ({cost.prompt_tokens:,.0f} sent, {cost.completion_tokens:,.0f} received)",
    )
    table.add_row("time", _days(made))
    if cost.calls:
        table.add_row("estimated from", f"{made.rates.past_calls:,} past calls")
    return table


def _made_with(extractor: str, model: str, extract: str, merge: str) -> str:
    """Without a model there is a version of the rules, and no merge prompt."""
    if extractor == model:
        return f"{extractor}, version {extract}"
    return f"{model}, prompts {extract} and {merge}"


def _days(made: BackfillPlan) -> str:
    limit = f"BACKFILL_TOKENS_PER_DAY={made.tokens_per_day}"
    if not made.cost.tokens:
        return "no tokens needed: as fast as the queue allows"
    if made.days is None:
        return f"it would never end: {limit}"
    return f"{'1 day' if made.days == 1 else f'{made.days:,} days'} at most ({limit})"


def _show_status(console: Console, seen: Status) -> None:
    row, progress = seen.backfill, seen.progress
    table = Table(title=f"Backfill {row.backfill_id}", show_header=False)
    table.add_row("status", f"[bold]{row.status}[/] {escape(row.reason or '')}")
    prompts = f"{row.extractor}, prompts {row.extract_version} and {row.merge_version}"
    table.add_row("extracts with", escape(prompts))
    table.add_row("limited to", escape(json.dumps(row.filter)) if row.filter else "nothing")
    table.add_row("asked by", f"{row.requested_by}, {row.created_at:%Y-%m-%d %H:%M:%S}")
    table.add_row("done", f"{progress.done:,} of {seen.total:,}")
    for name in ("working", "waiting", "failed", "overtaken"):
        if number := getattr(progress, name):
            table.add_row(name, f"{number:,}")
    estimated = row.estimate.get("tokens", 0)
    table.add_row("tokens", f"{progress.used_tokens:,}, estimated {estimated:,}")
    table.add_row("calls", f"{progress.calls:,}, estimated {row.estimate.get('calls', 0):,}")
    table.add_row("tokens today", f"{seen.used_today:,}")
    if row.last_tick_at:
        step = f"{row.last_tick_at:%Y-%m-%d %H:%M:%S} {row.last_tick}"
        table.add_row("last step", escape(step))
    console.print(table)


def filter_of(chosen: dict[str, Any]) -> Filter:
    which = chosen.get("artifact_uid")
    if which is not None:
        chosen = {**chosen, "artifact_uid": with_memory(lambda memory: memory.document(which))}
    try:
        return Filter(**{name: value for name, value in chosen.items() if value is not None})
    except ValidationError as error:
        faults = "; ".join(f"{fault['loc'][0]}: {fault['msg']}" for fault in error.errors())
        raise InvalidInput(f"The filter is not understood: {faults}.") from None


def with_runtime(work: Callable[[Runtime], Awaitable[T]]) -> T:
    async def run() -> T:
        async with opened(read_settings(), worker="when needed", system=_WHY) as runtime:
            return await work(runtime)

    return asyncio.run(run())
