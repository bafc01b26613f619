"""`mcp-memory doctor`: ✓ or ✗ for each thing the product needs, with the remedy."""

import asyncio
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import typer
from rich.console import Console
from rich.markup import escape

from memory_core import integrity, migrations
from memory_core.embedding import build_embedder
from memory_core.errors import MemoryFault
from memory_core.integrity import CHECKS, Check, Repair
from memory_core.runtime import Runtime
from memory_core.settings import Settings, load_settings, redact_dsn
from memory_core.stack import ports, probes, state
from memory_core.stack.connection import Membership, needs_services
from memory_core.stack.layout import Layout

FREE_DISK_BYTES = 1_000_000_000
_BEYOND_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Finding:
    good: bool
    what: str
    remedy: str = ""


def run(*, repair: bool) -> None:
    console = Console()
    settings = load_settings()
    bad = 0
    for finding in examine(settings, repair=repair):
        bad += not finding.good
        mark = "[green]✓[/]" if finding.good else "[red]✗[/]"
        console.print(f"{mark} {escape(finding.what)}", soft_wrap=True)
        if not finding.good:
            console.print(f"    [yellow]→ {escape(finding.remedy)}[/]", soft_wrap=True)
    console.print("\nAll is well." if not bad else f"\n{bad} thing(s) need attention.")
    if bad:
        raise typer.Exit(1)


def examine(settings: Settings, *, repair: bool) -> Iterator[Finding]:
    yield _python()
    yield _disk(settings)
    yield from _ports(settings)
    yield from _stores(settings, repair=repair)
    yield _provider(settings)


def _stores(settings: Settings, *, repair: bool) -> Iterator[Finding]:
    """Servers that the settings name are asked as they are; our own are started if need be."""
    postgres = _postgres(settings) if settings.events_db_dsn is not None else None
    if postgres is not None and not postgres.good:
        yield postgres
        if settings.chroma_host is not None:
            yield _chroma(settings)
        return
    membership = Membership(settings)
    try:
        resolved = membership.join() if needs_services(settings) else settings
        found = [postgres or _postgres(resolved), _chroma(resolved), _migrations(resolved)]
        yield from found
        if all(finding.good for finding in found):
            yield from asyncio.run(_integrity(resolved, repair=repair))
    except MemoryFault as fault:
        yield Finding(False, "Postgres and Chroma", fault.message)
    finally:
        membership.leave()


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding(
        sys.version_info >= (3, 11), f"Python {version}", "Install Python 3.11 or newer."
    )


def _disk(settings: Settings) -> Finding:
    place = next(
        folder for folder in (settings.data_dir, *settings.data_dir.parents) if folder.exists()
    )
    free = shutil.disk_usage(place).free
    return Finding(
        free >= FREE_DISK_BYTES,
        f"Disk: {free / 1e9:.1f} GB free at {settings.data_dir}",
        "Free at least 1 GB, or set DATA_DIR to a larger disk.",
    )


def _ports(settings: Settings) -> Iterator[Finding]:
    try:
        running = state.running(Layout(settings.data_dir))
    except MemoryFault:
        running = None  # a data dir of somebody else, which the stores' check tells
    if running is not None and running.mode == "full":
        yield Finding(True, f"Stack: running (pid {running.pid}), MCP at {running.mcp_url}")
        return
    for variable, port in (
        ("MCP_PORT", settings.mcp_port),
        ("DAGSTER_PORT", settings.dagster_port),
    ):
        yield Finding(
            port == 0 or ports.is_free(port, settings.mcp_host),
            f"Port {port} ({variable}) is free",
            f"Another program uses {port}: stop it, or set {variable} to a free port.",
        )


def _postgres(settings: Settings) -> Finding:
    return _answers(
        f"Postgres at {redact_dsn(settings.dsn)}",
        lambda: asyncio.run(probes.postgres(settings.dsn)),
        "Is the server running, and is EVENTS_DB_DSN right?",
    )


def _chroma(settings: Settings) -> Finding:
    host, port = settings.chroma_host or "", settings.chroma_port
    return _answers(
        f"Chroma at {host}:{port}",
        lambda: asyncio.run(probes.chroma(host, port)),
        "Is the server running, and are CHROMA_HOST and CHROMA_PORT right?",
    )


def _migrations(settings: Settings) -> Finding:
    try:
        missing = migrations.pending(settings.dsn)
    except MemoryFault as fault:
        return Finding(False, "Schema", fault.message)
    return Finding(
        not missing,
        f"Schema: {len(migrations.shipped())} migrations, {len(missing)} pending",
        "Run `mcp-memory migrate`.",
    )


def _provider(settings: Settings) -> Finding:
    async def probe() -> None:
        embedder = build_embedder(settings)
        try:
            await embedder.embed(["Is anybody there?"])
        finally:
            await embedder.close()

    name = settings.openai_embed_model if settings.uses_openai_embedder else "local, no key needed"
    return _answers(
        f"Embeddings: {name}",
        lambda: asyncio.run(probe()),
        "Check OPENAI_API_KEY, OPENAI_BASE_URL and OPENAI_EMBED_MODEL, or set EMBEDDER=local.",
    )


async def _integrity(settings: Settings, *, repair: bool) -> list[Finding]:
    """What must hold in the stores, mended first if that is wanted."""
    runtime = Runtime(settings)
    try:
        await runtime.open()
        return [await _check(runtime, check, repair=repair) for check in CHECKS]
    except MemoryFault as fault:
        return [Finding(False, "The stores cannot be examined", fault.message)]
    finally:
        await runtime.close()


async def _check(runtime: Runtime, check: Check, *, repair: bool) -> Finding:
    found = await check.examine(runtime)
    if found.passed:
        return Finding(True, check.description)
    if not repair:
        remedy = f"`mcp-memory doctor --repair`: {check.remedy}"
        return Finding(False, f"{check.name}: {_offenders(found)}", remedy)
    try:
        done = await check.repair(runtime)
    except MemoryFault as fault:
        return Finding(False, f"{check.name}: {_offenders(found)}", fault.message)
    # What was to be mended is worth a second look: only that shows what is left.
    left = await check.examine(runtime)
    if left.passed:
        return Finding(True, f"{check.name}: mended {done.mended}. {check.remedy}")
    return Finding(False, f"{check.name}: {_offenders(left)}", _what_is_left(done))


def _offenders(found: integrity.Finding) -> str:
    more = f", and {found.total - 1:,} more" if found.total > 1 else ""
    return f"{found.offenders[0]}{more}"


def _what_is_left(done: Repair) -> str:
    told = []
    if done.awaited:
        told.append(
            f"{done.awaited:,} revisions are extracted again. Look again when that is done "
            "(`mcp-memory jobs`)."
        )
    if done.beyond:
        more = len(done.beyond) - _BEYOND_SHOWN
        named = "; ".join(done.beyond[:_BEYOND_SHOWN])
        told.append(f"Cannot be mended: {named}{f'; and {more:,} more' if more > 0 else ''}.")
    return " ".join(told) or "It cannot be mended, or is broken anew: look again."


def _answers(what: str, question: Callable[[], None], remedy: str) -> Finding:
    try:
        question()
    except Exception as error:
        reason = error.message if isinstance(error, MemoryFault) else str(error) or repr(error)
        return Finding(False, f"{what}: {reason.splitlines()[0]}", remedy)
    return Finding(True, what)
