"""`mcp-memory status`: which memory is in use, what is in it, and what runs."""

from dataclasses import dataclass
from importlib import metadata
from typing import Any

from rich.markup import escape

from mcp_server.cli import terminal_tables
from mcp_server.cli.configuration import read_settings
from mcp_server.cli.extraction_progress import (
    NO_PIPELINE,
    NOTHING_STORED,
    ExtractionProgress,
    read_progress,
)
from mcp_server.cli.safe_text import as_json as json_text
from mcp_server.cli.session import OpenMemory, with_operator
from memory_core import __version__
from memory_core.kernel import migrations
from memory_core.kernel.dsn import redact_dsn
from memory_core.kernel.errors import MemoryFault
from memory_core.kernel.settings import Settings
from memory_core.queue.listing import count_by_status
from memory_core.search import event_matching
from memory_core.search.event_filters import EventFilters
from stack.layout import Layout
from stack.memory_in_use import MemoryInUse, memory_in_use

_PACKAGES = ("dagster", "chromadb", "mcp")


@dataclass(frozen=True, slots=True)
class StatusCounts:
    progress: ExtractionProgress
    events: int
    jobs: dict[str, int]
    postgres: str


def run(*, as_json: bool) -> None:
    settings = read_settings(log_level="ERROR")
    memory = memory_in_use(settings)
    content, problem = None, None
    # Showing the status of an unused data dir must not create a memory.
    if settings.events_db_dsn is not None or Layout(settings.data_dir).postgres.is_dir():
        try:
            content = with_operator(_read)
        except MemoryFault as fault:
            problem = fault.message
    if as_json:
        print(json_text(_as_json(settings, memory, content, problem)))
        return
    out = terminal_tables.console()
    for name, value in _lines(settings, memory, content, problem):
        out.print(f"[bold]{name:<12}[/]{escape(value)}", soft_wrap=True)


async def _read(memory: OpenMemory) -> StatusCounts:
    progress = await read_progress(memory.runtime)
    async with memory.runtime.database.session() as session:
        events = await event_matching.count(session, await EventFilters().for_sql(session, None))
        jobs = await count_by_status(session)
        version = await session.value(str, "server_version")
    return StatusCounts(progress, events, jobs, version)


def _lines(
    settings: Settings, memory: MemoryInUse, content: StatusCounts | None, problem: str | None
) -> list[tuple[str, str]]:
    lines = [("Memory", f"{memory.path} ({memory.reason})")]
    if memory.database:
        lines.append(("Postgres", memory.database))
    if memory.chroma:
        lines.append(("Chroma", memory.chroma))
    lines.append(("Stack", _stack(memory)))
    if problem is not None:
        lines.append(("Problem", problem))
    elif content is None or not content.progress.documents:
        lines.append(("Documents", f"{NOTHING_STORED} `mcp-memory ingest PATH` imports files."))
    else:
        lines += [
            ("Documents", f"{content.progress.documents:,}"),
            ("Events", f"{content.events:,}"),
            ("Jobs", _jobs(content.progress)),
        ]
    return [
        *lines,
        ("Extractor", _extractor(settings)),
        ("Embedder", _embedder(settings)),
        ("Versions", ", ".join(f"{name} {number}" for name, number in _versions(content).items())),
    ]


def _stack(memory: MemoryInUse) -> str:
    stack = memory.stack
    if stack is None or stack.mode != "full":
        return "not running; `mcp-memory up` starts it"
    return f"running (pid {stack.pid}), MCP at {stack.mcp_url}, Dagster at {stack.dagster_url}"


def _jobs(progress: ExtractionProgress) -> str:
    parts = [f"{progress.done:,} done"]
    if progress.unfinished:
        parts.append(progress.waits())
    if progress.failures:
        parts.append(f"{progress.failed:,} failed: {progress.fails()}")
    hint = f". {NO_PIPELINE}" if progress.waiting and not progress.pipeline_runs else ""
    return ", ".join(parts) + hint


def _extractor(settings: Settings) -> str:
    if not settings.uses_openai_extractor:
        return "rules, no model"
    return f"{settings.openai_event_model} at {_provider(settings)}"


def _embedder(settings: Settings) -> str:
    if settings.uses_openai_embedder:
        return f"{settings.openai_embed_model} at {_provider(settings)}"
    return f"{settings.local_embedder}, no key needed"


def _provider(settings: Settings) -> str:
    return redact_dsn(settings.openai_base_url) if settings.openai_base_url else "the OpenAI API"


def _versions(content: StatusCounts | None) -> dict[str, str]:
    versions = {"mcp-memory": __version__, "schema": f"{len(migrations.shipped()):03}"}
    if content is not None:
        versions["postgres"] = content.postgres
    return versions | {name: _version(name) for name in _PACKAGES}


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "unknown"


def _as_json(
    settings: Settings, memory: MemoryInUse, content: StatusCounts | None, problem: str | None
) -> dict[str, Any]:
    stack = memory.stack
    return {
        "memory": str(memory.path),
        "chosen_by": memory.chosen_by,
        "postgres": memory.database,
        "chroma": memory.chroma,
        "stack": {
            "running": stack is not None and stack.mode == "full",
            "pid": stack.pid if stack else None,
            "mcp_url": stack.mcp_url if stack else None,
            "dagster_url": stack.dagster_url if stack else None,
        },
        "problem": problem,
        "events": content.events if content else 0,
        "extraction": (content.progress if content else ExtractionProgress()).as_json(),
        "jobs": content.jobs if content else {},
        "extractor": _extractor(settings),
        "embedder": _embedder(settings),
        "versions": _versions(content),
    }
