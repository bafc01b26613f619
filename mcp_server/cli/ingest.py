"""`mcp-memory ingest`: imports a person's own files as artifacts."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import typer
from rich.console import Console
from rich.markup import escape

from mcp_server.cli import import_progress
from mcp_server.cli.command_record import opened
from mcp_server.cli.configuration import read_settings
from mcp_server.cli.extraction_progress import ExtractionProgress, read_progress
from memory_core.artifacts.document import ArtifactType
from memory_core.importing import git_history, prune
from memory_core.importing.given_paths import admit
from memory_core.importing.import_run import Import, Options, Survey, survey
from memory_core.importing.report import ImportReport
from memory_core.importing.roots import ImportPlace, Registry
from memory_core.kernel.errors import InvalidInput, MemoryFault
from memory_core.kernel.settings import Settings

_INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class IngestOptions:
    paths: list[Path]
    artifact_type: str | None = None
    source: str | None = None
    git: bool = False
    watch: bool = False
    prune: bool = False
    yes: bool = False
    dry_run: bool = False
    reread: bool = False
    jobs: int = 2
    as_json: bool = False

    @property
    def options(self) -> Options:
        return Options(
            _type(self.artifact_type), jobs=self.jobs, dry_run=self.dry_run, reread=self.reread
        )


def run(request: IngestOptions) -> None:
    _refuse_contradictions(request)
    command = _Command(request, read_settings())
    report = asyncio.run(command.run())
    if request.as_json:
        print(json.dumps(report.as_json(), indent=2))
    elif not request.watch:
        import_progress.show(report)
        if command.progress is not None:
            import_progress.show_next(command.progress)
    if report.interrupted:
        raise typer.Exit(_INTERRUPTED)
    if report.stopped is not None:
        raise MemoryFault(f"The import stopped: {report.stopped} Run it again to continue.")
    if report.failed:
        raise typer.Exit(1)


def _refuse_contradictions(request: IngestOptions) -> None:
    def refuse(problem: str) -> None:
        raise InvalidInput(f"{problem} Nothing was imported.")

    _type(request.artifact_type)
    if request.source is not None and len(request.paths) > 1:
        refuse("--source names one folder: give one PATH with it.")
    if request.git and (request.watch or request.prune):
        refuse("--git imports the past once: leave out --watch and --prune.")
    if request.watch and (request.as_json or request.dry_run):
        refuse("--watch keeps running: leave out --json and --dry-run.")
    if request.prune and not request.yes and not request.dry_run:
        if request.as_json:
            refuse("With --json there is no prompt: --prune needs --yes, or --dry-run.")
        if request.watch:
            refuse("While watching there is no prompt: --prune needs --yes.")


def _type(name: str | None) -> ArtifactType | None:
    if name is None:
        return None
    try:
        return ArtifactType(name.lower())
    except ValueError:
        allowed = ", ".join(kind.value for kind in ArtifactType)
        raise InvalidInput(f"--type {name} is no type: choose one of {allowed}.") from None


class _Command:
    def __init__(self, request: IngestOptions, settings: Settings) -> None:
        self._request = request
        self._settings = settings
        self._stop = asyncio.Event()
        self._bar = import_progress.Bar(quiet=request.as_json)
        self.progress: ExtractionProgress | None = None  # of extraction, after the import

    async def run(self) -> ImportReport:
        memory = opened(self._settings, worker="when needed")
        async with _stopping(self._stop), memory as self._runtime:
            report = await self._import()
            if not self._request.dry_run and report.stopped is None:
                self.progress = await read_progress(self._runtime)
            return report

    async def _import(self) -> ImportReport:
        request = self._request
        registry = Registry(self._runtime.settings.data_dir)
        places = await admit(
            self._runtime,
            registry,
            request.paths,
            source=request.source,
            remember=not request.dry_run,
            tell=lambda words: import_progress.say(f"[yellow]{escape(words)}[/]"),
        )
        if request.git:
            return await self._history(places, registry)
        if request.watch:
            return await self._watch(places, registry)
        return await self._sync(places, registry)

    async def _sync(self, places: list[ImportPlace], registry: Registry) -> ImportReport:
        data_dir = self._runtime.settings.data_dir
        with self._bar.shown("looking for files"):
            surveyed = await asyncio.to_thread(
                survey, places, registry, data_dir, self._stop.is_set
            )
        done = Import(self._runtime, self._request.options, self._stop)
        with self._bar.shown("importing", total=surveyed.weight, report=done.report) as advance:
            report = await done.run(surveyed, advance)
        if self._request.prune and report.stopped is None and not report.interrupted:
            await self._prune(registry, surveyed, done)
        return report

    async def _history(self, places: list[ImportPlace], registry: Registry) -> ImportReport:
        total = ImportReport(dry_run=self._request.dry_run)
        data_dir, stopped = self._runtime.settings.data_dir, self._stop.is_set
        for place in places:
            with self._bar.shown("reading history"):
                listed = await asyncio.to_thread(
                    git_history.versions, place, registry, without=data_dir, stopped=stopped
                )
            past = git_history.History(self._runtime, self._request.options, self._stop)
            with self._bar.shown("importing", total=len(listed), report=past.report) as advance:
                total.join(await past.run(place, listed, advance))
            if total.interrupted or total.stopped is not None:
                break
        return total

    async def _watch(self, places: list[ImportPlace], registry: Registry) -> ImportReport:
        from memory_core.importing.watch import watch

        last = ImportReport()

        async def sync(wanted: list[ImportPlace] | None) -> bool:
            nonlocal last
            try:
                await self._runtime.open()  # the stack may have been restarted
                last = await self._sync(wanted if wanted is not None else places, registry)
            except MemoryFault as fault:
                import_progress.say(f"[red]{escape(fault.message)}[/]")
                return False
            if wanted is None:
                import_progress.show(last)
                import_progress.say("Watching. Ctrl-C ends it.")
            else:
                import_progress.line(last)
            return last.stopped is None

        data_dir = self._runtime.settings.data_dir
        await watch(places, sync, self._stop, deletions=self._request.prune, without=data_dir)
        # Ctrl-C is the normal end of watching, not an interruption.
        return ImportReport()

    async def _prune(self, registry: Registry, survey: Survey, done: Import) -> None:
        entries, warnings = await prune.gone(self._runtime, registry, survey, done)
        for warning in warnings:
            import_progress.say(f"[yellow]{escape(warning)}[/]")
        if not entries:
            return
        if not self._request.as_json:
            import_progress.show_gone(entries)
        if not self._request.dry_run:
            if not self._request.yes and not self._confirmed(len(entries)):
                import_progress.say("Nothing was deleted.")
                return
            entries = await prune.delete(self._runtime, entries)
        done.report.pruned += entries

    def _confirmed(self, number: int) -> bool:
        """Blocks the event loop, which has nothing else to do. Ctrl-C means no."""
        question = f"Delete these {number} documents for good, with their history and events?"
        ours = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            return typer.confirm(question, err=True)
        except typer.Abort:
            return False
        finally:
            signal.signal(signal.SIGINT, ours)


@asynccontextmanager
async def _stopping(stop: asyncio.Event) -> AsyncIterator[None]:
    """The first Ctrl-C lets current writes finish; the second ends the command at once."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()

    def ask() -> None:
        if stop.is_set() and task is not None:
            task.cancel()
        elif not stop.is_set():
            Console(stderr=True).print("[dim]stopping …[/]")
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ask)
    try:
        yield
    except asyncio.CancelledError:
        raise typer.Exit(_INTERRUPTED) from None
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
