"""`mcp-memory doctor`: ✓ or ✗ for each thing that the product needs, with the remedy. A ! marks
what works but is worth knowing."""

import asyncio
import shutil
import sys
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace

import typer
from rich.console import Console
from rich.markup import escape

from mcp_server.cli.command_record import opened
from mcp_server.cli.configuration import read_settings
from mcp_server.cli.extraction_progress import NO_PIPELINE, ExtractionProgress, read_progress
from mcp_server.cli.safe_text import as_json as json_text
from memory_core.embedding import build_embedder
from memory_core.extraction.probe import ask_model
from memory_core.kernel import migrations
from memory_core.kernel.dsn import redact_dsn
from memory_core.kernel.errors import MemoryFault
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from memory_core.text.printable import single_line
from memory_core.upkeep import integrity
from memory_core.upkeep.integrity import CHECKS, IntegrityCheck, Repair
from stack import ports, probes, stack_state
from stack.checksums import enable_checksums, has_checksums
from stack.connection import Membership, joined_runtime, needs_services
from stack.layout import Layout

FREE_DISK_BYTES = 1_000_000_000
_BEYOND_SHOWN = 3
_MESSAGE_CHARS = 300
_WHY = "the whole installation is examined"
_READ_THE_MESSAGE = "Repair what the message says."
_REMEDIES = {
    "OPENAI_AUTH_ERROR": "Correct OPENAI_API_KEY and restart the stack.",
    "OPENAI_INVALID_MODEL": "Correct OPENAI_EVENT_MODEL and restart the stack.",
    "OPENAI_RATE_LIMIT": "Lower EXTRACT_CONCURRENCY, or raise the provider's limit.",
    "OPENAI_CONNECTION_ERROR": "Check OPENAI_BASE_URL and the provider.",
    "OPENAI_TIMEOUT": "Raise OPENAI_TIMEOUT, or check the provider.",
    "INVALID_JSON_SCHEMA": "Try another OPENAI_EVENT_MODEL: this one does not answer in JSON.",
    "ARTIFACT_NOT_FOUND": "Ingest the documents again: their text is gone.",
}


@dataclass(frozen=True, slots=True)
class DoctorLine:
    good: bool
    what: str
    remedy: str = ""
    note: str = ""  # for a good finding that is worth knowing

    @property
    def advice(self) -> str:
        return self.note if self.good else self.remedy


def run(*, repair: bool, provider: bool, as_json: bool) -> None:
    console = Console(quiet=as_json)
    settings = read_settings()
    findings = []
    for finding in examine(settings, repair=repair, provider=provider):
        findings.append(finding)
        mark = "[red]✗[/]"
        if finding.good:
            mark = "[yellow]![/]" if finding.note else "[green]✓[/]"
        console.print(f"{mark} {escape(finding.what)}", soft_wrap=True)
        if finding.advice:
            console.print(f"    [yellow]→ {escape(finding.advice)}[/]", soft_wrap=True)
    bad = sum(not finding.good for finding in findings)
    console.print(f"\n{_verdict(findings, bad)}")
    if as_json:
        rows = [
            {"ok": one.good, "what": one.what, "remedy": one.advice or None} for one in findings
        ]
        print(json_text({"ok": not bad, "findings": rows}))
    if bad:
        raise typer.Exit(1)


def _verdict(findings: list[DoctorLine], bad: int) -> str:
    if bad:
        return "1 thing needs attention." if bad == 1 else f"{bad} things need attention."
    if any(finding.note for finding in findings):
        return "Nothing is broken; see the lines marked with !."
    return "All is well."


def examine(settings: Settings, *, repair: bool, provider: bool) -> Iterator[DoctorLine]:
    yield _python()
    yield _disk(settings)
    yield from _ports(settings)
    progress = yield from _stores(settings, repair=repair)
    # Last, because services that were started for the other checks have stopped by now, as this
    # repair needs.
    yield from _checksums(settings, repair=repair)
    if progress is not None:
        yield from _jobs(progress)
    yield _embedder(settings)
    yield _extractor(settings, asked=provider, progress=progress)


def _stores(
    settings: Settings, *, repair: bool
) -> Generator[DoctorLine, None, ExtractionProgress | None]:
    """Check servers that the settings name; start our own if necessary. Returns the progress of
    extraction, if the stores are available."""
    postgres = _postgres(settings) if settings.events_db_dsn is not None else None
    if postgres is not None and not postgres.good:
        yield postgres
        if settings.chroma_host is not None:
            yield _chroma(settings)
        return None
    membership = Membership(settings)
    try:
        resolved = membership.join() if needs_services(settings) else settings
        findings = [postgres or _postgres(resolved), _chroma(resolved), _migrations(resolved)]
        yield from findings
        if all(finding.good for finding in findings):
            yield from asyncio.run(integrity_findings(resolved, repair=repair))
            return asyncio.run(_progress(resolved))
    except MemoryFault as fault:
        yield DoctorLine(False, "Postgres and Chroma", fault.message)
    finally:
        membership.leave()
    return None


def _checksums(settings: Settings, *, repair: bool) -> Iterator[DoctorLine]:
    """Whether the embedded Postgres would detect a page that the disk has changed."""
    layout = Layout(settings.data_dir)
    has = has_checksums(layout) if settings.events_db_dsn is None else None
    if has is None:
        return
    if has:
        yield DoctorLine(True, "Postgres keeps a checksum of every page.")
        return
    what = "Postgres keeps no checksums: this memory was made by an older version."
    if not repair:
        remedy = "Stop the stack and run `mcp-memory doctor --repair`: it adds them in place."
        yield DoctorLine(False, what, remedy)
        return
    try:
        enable_checksums(layout)
    except MemoryFault as fault:
        yield DoctorLine(False, what, fault.message)
    else:
        yield DoctorLine(True, "Postgres keeps a checksum of every page: added now.")


def _python() -> DoctorLine:
    version = ".".join(map(str, sys.version_info[:3]))
    return DoctorLine(
        sys.version_info >= (3, 11), f"Python {version}", "Install Python 3.11 or newer."
    )


def _disk(settings: Settings) -> DoctorLine:
    place = next(
        folder for folder in (settings.data_dir, *settings.data_dir.parents) if folder.exists()
    )
    free = shutil.disk_usage(place).free
    return DoctorLine(
        free >= FREE_DISK_BYTES,
        f"Disk: {free / 1e9:.1f} GB free at {settings.data_dir}",
        "Free at least 1 GB, or set DATA_DIR to a larger disk.",
    )


def _ports(settings: Settings) -> Iterator[DoctorLine]:
    try:
        running = stack_state.running(Layout(settings.data_dir))
    except MemoryFault:
        # The data dir belongs to another user, which the check of the stores reports.
        running = None
    if running is not None and running.mode == "full":
        yield DoctorLine(True, f"Stack: running (pid {running.pid}), MCP at {running.mcp_url}")
        return
    for variable, port, host in (
        ("MCP_PORT", settings.mcp_port, settings.mcp_host),
        ("DAGSTER_PORT", settings.dagster_port, settings.dagster_host),
    ):
        if port == 0:
            yield DoctorLine(True, f"Port: any free one ({variable}=0)")
            continue
        yield DoctorLine(
            ports.is_free(port, host),
            f"Port {port} ({variable}) is free",
            f"Another program uses {port}: stop it, or set {variable} to a free port.",
        )


def _postgres(settings: Settings) -> DoctorLine:
    return _answers(
        f"Postgres at {redact_dsn(settings.dsn)}",
        lambda: asyncio.run(probes.postgres(settings.dsn)),
        "Is the server running, and is EVENTS_DB_DSN right?",
    )


def _chroma(settings: Settings) -> DoctorLine:
    host, port = settings.chroma_host or "", settings.chroma_port
    return _answers(
        f"Chroma at {settings.chroma_address}",
        lambda: asyncio.run(probes.chroma(host, port)),
        "Is the server running, and are CHROMA_HOST and CHROMA_PORT right?",
    )


def _migrations(settings: Settings) -> DoctorLine:
    try:
        missing = migrations.pending(settings.dsn)
    except MemoryFault as fault:
        return DoctorLine(False, "Schema", fault.message)
    return DoctorLine(
        not missing,
        f"Schema: {len(migrations.shipped())} migrations, "
        f"{f'{len(missing)} pending' if missing else 'all applied'}",
        "Run `mcp-memory migrate`.",
    )


def _jobs(progress: ExtractionProgress) -> Iterator[DoctorLine]:
    """Failed jobs by error code, and waiting jobs."""
    if not progress.failures:
        yield DoctorLine(True, f"Jobs: {progress.done:,} done, none failed")
    for failure in progress.failures:
        yield DoctorLine(
            False,
            f"Jobs: {failure.documents:,} failed with {failure.code}: "
            f"{single_line(failure.message, _MESSAGE_CHARS)}",
            f"{_REMEDIES.get(failure.code, _READ_THE_MESSAGE)} Then `mcp-memory reextract "
            f"--failed --code {failure.code}`.",
        )
    if progress.unfinished:
        note = "" if progress.pipeline_runs else NO_PIPELINE
        if progress.delays:
            note = note or "They are retried automatically, each time later."
        yield DoctorLine(True, f"Jobs: {progress.waits()}", note=note)


def _embedder(settings: Settings) -> DoctorLine:
    async def probe() -> None:
        embedder = build_embedder(settings)
        try:
            await embedder.embed(["A test."])
        finally:
            await embedder.close()

    name = f"{settings.local_embedder}, no key needed"
    if settings.uses_openai_embedder:
        name = settings.openai_embed_model
    return _answers(
        f"Embeddings: {name}",
        lambda: asyncio.run(probe()),
        "Check OPENAI_API_KEY, OPENAI_BASE_URL and OPENAI_EMBED_MODEL, or set EMBEDDER=local.",
    )


def _extractor(
    settings: Settings, *, asked: bool, progress: ExtractionProgress | None
) -> DoctorLine:
    """Ask the model one tiny question: on request, or when jobs failed because of it."""
    if not settings.uses_openai_extractor:
        return DoctorLine(True, "Extraction: rules, no model and no key needed")
    setbacks = (*progress.failures, *progress.delays) if progress else ()
    if not asked and not any(setback.is_of_provider for setback in setbacks):
        return DoctorLine(True, f"Extraction: {settings.openai_event_model}, not tried "
                       "(--provider asks it one tiny question)")  # fmt: skip
    finding = _answers(
        f"Extraction: {settings.openai_event_model}",
        lambda: asyncio.run(ask_model(settings)),
        "Check OPENAI_API_KEY, OPENAI_BASE_URL and OPENAI_EVENT_MODEL, or set EXTRACTOR=rules.",
    )
    return replace(finding, what=f"{finding.what} answers") if finding.good else finding


async def integrity_findings(settings: Settings, *, repair: bool) -> list[DoctorLine]:
    """The integrity checks, after a repair if one was requested."""
    try:
        async with opened(settings, worker="when needed", system=_WHY) as runtime:
            return [await _check(runtime, check, repair=repair) for check in CHECKS]
    except MemoryFault as fault:
        return [DoctorLine(False, "The stores cannot be examined", fault.message)]


async def _progress(settings: Settings) -> ExtractionProgress:
    runtime = joined_runtime(settings, system=_WHY)
    try:
        await runtime.open()
        return await read_progress(runtime)
    finally:
        await runtime.close()


async def _check(runtime: Runtime, check: IntegrityCheck, *, repair: bool) -> DoctorLine:
    finding = await check.examine(runtime)
    if finding.passed:
        return DoctorLine(True, check.description)
    if not repair:
        remedy = f"`mcp-memory doctor --repair`: {check.remedy}"
        return DoctorLine(False, f"{check.name}: {_offenders(finding)}", remedy)
    try:
        done = await check.repair(runtime)
    except MemoryFault as fault:
        return DoctorLine(False, f"{check.name}: {_offenders(finding)}", fault.message)
    # Check again after the repair: only that shows what is left.
    left = await check.examine(runtime)
    if left.passed:
        return DoctorLine(True, f"{check.name}: repaired {done.repaired}. {check.remedy}")
    return DoctorLine(False, f"{check.name}: {_offenders(left)}", _what_is_left(done))


def _offenders(finding: integrity.CheckResult) -> str:
    more = f", and {finding.total - 1:,} more" if finding.total > 1 else ""
    return f"{finding.offenders[0]}{more}"


def _what_is_left(done: Repair) -> str:
    parts = []
    if done.awaited:
        parts.append(
            f"{done.awaited:,} revisions are extracted again. Look again when that is done "
            "(`mcp-memory jobs`)."
        )
    if done.beyond:
        more = len(done.beyond) - _BEYOND_SHOWN
        named = "; ".join(done.beyond[:_BEYOND_SHOWN])
        parts.append(f"Cannot be repaired: {named}{f'; and {more:,} more' if more > 0 else ''}.")
    return " ".join(parts) or "It could not be repaired: run doctor again, then see the logs."


def _answers(what: str, question: Callable[[], None], remedy: str) -> DoctorLine:
    try:
        question()
    except Exception as error:
        reason = error.message if isinstance(error, MemoryFault) else str(error) or repr(error)
        return DoctorLine(False, f"{what}: {reason.splitlines()[0]}", remedy)
    return DoctorLine(True, what)
