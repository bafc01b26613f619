"""The actions of `mcp-memory jobs …`: an overview of the queue, watching it, pages of jobs, one
job."""

import asyncio
import sys
from typing import get_args

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from mcp_server.cli import extraction_progress as progress
from mcp_server.cli import terminal_tables
from mcp_server.cli.command_wording import in_commands
from mcp_server.cli.reextract import run as ask_again
from mcp_server.cli.safe_text import as_json as json_text
from mcp_server.cli.safe_text import shown
from mcp_server.cli.session import Answer, OpenMemory, with_memory, with_operator
from mcp_server.cli.terminal_tables import Column
from memory_core.kernel.database import columns
from memory_core.kernel.errors import InvalidInput
from memory_core.kernel.short_ids import short
from memory_core.queue.listing import JobState, RecentJob, count_by_status, recent_jobs

_STATUSES = get_args(JobState)
_ERROR_CHARS = 200
_LOOK_SECONDS = 1.0

Counts = dict[str, int]


def overview(status: str | None, limit: int, *, watch: bool, as_json: bool) -> None:
    wanted = _status(status)

    async def work(memory: OpenMemory) -> tuple[bool, Counts, list[RecentJob]]:
        emptied = await _watch(memory) if watch else True
        async with memory.runtime.database.session() as session:
            rows = await recent_jobs(session, wanted, limit)
        return emptied, await _counts(memory), rows

    try:
        emptied, counts, rows = with_operator(work)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    if as_json:
        print(json_text({"counts": counts, "jobs": [columns(row) for row in rows]}))
    else:
        _show(counts, rows)
    if not emptied:
        print(progress.NO_PIPELINE, file=sys.stderr)
        raise typer.Exit(1)


def _status(text: str | None) -> str | None:
    wanted = text.upper() if text else None
    if wanted is not None and wanted not in _STATUSES:
        raise InvalidInput(f"{text!r} is no status: choose {', '.join(_STATUSES)}.")
    return wanted


def _show(counts: Counts, rows: list[RecentJob]) -> None:
    out = terminal_tables.console()
    out.print("  ".join(f"{name} [bold]{counts.get(name, 0)}[/]" for name in _STATUSES
                        if name != "CANCELED" or counts.get(name)))  # fmt: skip
    if not rows:
        return
    terminal_tables.show(
        [
            *(Column("document"), Column("status"), Column("tries"), Column("updated")),
            *(Column("title", 2), Column("error", 3)),
        ],
        (
            [
                short(row.artifact_uid),
                row.status,
                f"{row.attempts}/{row.max_attempts}",
                f"{row.updated_at:%m-%d %H:%M}",
                shown(row.title or "–"),
                shown(_error(row.last_error_code, row.last_error_message)),
            ]
            for row in rows
        ),
    )


def _error(code: str | None, message: str | None) -> str:
    return f"{code}: {message}"[:_ERROR_CHARS] if code else ""


async def _watch(memory: OpenMemory) -> bool:
    """Watch until no job waits. Returns False if nothing processes the waiting jobs."""
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("extracting events")
        while True:
            counts = await _counts(memory)
            ended = sum(counts.get(name, 0) for name in ("DONE", "FAILED", "CANCELED"))
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


async def _counts(memory: OpenMemory) -> Counts:
    async with memory.runtime.database.session() as session:
        return await count_by_status(session)


def list_(status: str | None, limit: int, cursor: str | None, *, as_json: bool) -> None:
    arguments = {"status": _status(status), "limit": limit, "cursor": cursor}
    page = with_memory(lambda memory: memory.ask("job_list", arguments))
    if as_json:
        print(json_text(page))
        return
    terminal_tables.show(
        [
            *(Column("job"), Column("document"), Column("status"), Column("tries")),
            *(Column("created"), Column("title", 2), Column("error", 3)),
        ],
        (
            [
                short(row["job_id"]),
                short(row["artifact_uid"]),
                row["status"],
                f"{row['attempts']}/{row['max_attempts']}",
                row["created_at"][5:16].replace("T", " "),
                shown(row["title"] or "–"),
                shown(_error(row["last_error_code"], row["last_error_message"])),
            ]
            for row in page["jobs"]
        ),
    )
    if page["next_cursor"]:
        print(f"more: --cursor {page['next_cursor']}")


def show(job: str, *, as_json: bool) -> None:
    answer = with_memory(lambda memory: _ask_of(memory, "job_status", job))
    if as_json:
        print(json_text(answer))
        return
    out = terminal_tables.console()
    out.print(f"[bold]{answer['job_id']}[/]  {answer['status']}", soft_wrap=True)
    out.print(
        f"{answer['artifact_uid']} {answer['revision_id']}  asked by {answer['origin']}"
        f"{' for ' + shown(answer['requested_by']) if answer['requested_by'] else ''}, priority "
        f"{answer['priority']}, attempt {answer['attempts']} of {answer['max_attempts']}",
        soft_wrap=True,
    )
    if answer["last_error_code"]:
        out.print(
            shown(_error(answer["last_error_code"], answer["last_error_message"])), soft_wrap=True
        )
    terminal_tables.show(
        [Column("when"), Column("from"), Column("to"), Column("try"), Column("by"), Column("why")],
        (_transition(event) for event in answer["history"]),
    )


def _transition(event: Answer) -> list[str]:
    detail = event["detail"]
    why = " ".join(filter(None, (detail.get("error"), detail.get("message"), detail.get("note"))))
    return [
        event["ts"][:19].replace("T", " "),
        event["prev_status"] or "–",
        event["next_status"],
        str(detail.get("attempt", "")),
        shown(detail["run"][:8] if event["next_status"] == "PROCESSING" else detail["who"]),
        shown(why[:_ERROR_CHARS]),
    ]


def cancel(job: str, *, as_json: bool) -> None:
    done = with_memory(lambda memory: _ask_of(memory, "job_cancel", job))
    print(json_text(done) if as_json else f"{done['status']}  {in_commands(done['message'])}")


def retry(job: str | None, *, failed: bool, code: str | None, as_json: bool) -> None:
    if failed == (job is not None):
        raise InvalidInput("Name a JOB, or give --failed for all that failed.")
    if job is None:
        ask_again(None, None, failed=True, code=code, force=False, as_json=as_json)
        return
    if code is not None:
        raise InvalidInput("--code limits --failed: give both, or name a JOB alone.")
    answer = with_memory(lambda memory: _ask_of(memory, "job_status", job))
    ask_again(
        answer["artifact_uid"], answer["revision_id"],
        failed=False, code=None, force=False, as_json=as_json,
    )  # fmt: skip


async def _ask_of(memory: OpenMemory, tool: str, job: str) -> Answer:
    return await memory.ask(tool, {"job_id": str(await memory.job(job))})
