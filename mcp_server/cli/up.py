"""`mcp-memory up`: runs the supervisor, and prints one line per step."""

import asyncio
import json
import shlex
import shutil
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from mcp_server.cli.configuration import read_settings
from mcp_server.cli.connect import program
from mcp_server.cli.extraction_progress import progress_of
from memory_core.kernel.database import Database
from memory_core.kernel.errors import MemoryFault
from stack.memory_in_use import MemoryInUse, memory_in_use
from stack.services import StackPlan
from stack.supervisor import Supervisor


def _connect(memory: MemoryInUse) -> str:
    """The command as a user has to type it, for this program and this memory."""
    ours = program()
    on_path = shutil.which("mcp-memory")
    is_on_path = on_path is not None and Path(on_path).resolve() == Path(ours[0]).resolve()
    words = (*(("mcp-memory",) if is_on_path else ours), "connect", "claude")
    chosen = "" if memory.chosen_by == "default" else f"DATA_DIR={shlex.quote(str(memory.path))} "
    return chosen + shlex.join(words)


class Terminal:
    """Prints what the supervisor does."""

    def __init__(self, console: Console, *, quiet: bool = False) -> None:
        self._console = console
        self._quiet = quiet

    def step(self, title: str, seconds: float) -> None:
        self._console.print(f"[green]✓[/] {title:<24} [dim]ready in {seconds:.1f} s[/]")

    def trouble(self, message: str) -> None:
        self._console.print(f"[yellow]![/] {escape(message)}", soft_wrap=True)

    def stopping(self) -> None:
        if not self._quiet:
            self._console.print("[dim]Stopping everything …[/]")

    def ready(self, plan: StackPlan) -> None:
        if self._quiet:
            return
        url = plan.state.mcp_url
        client = json.dumps({"mcpServers": {"memory": {"type": "http", "url": url}}}, indent=2)
        self._console.print()
        self._console.print(f"[bold]MCP server[/]   {url}")
        self._console.print(f"[bold]Dagster UI[/]   {plan.state.dagster_url}")
        memory = memory_in_use(plan.settings)
        self._console.print(f"[bold]Memory[/]       {escape(str(memory.path))} ({memory.reason})")
        self._console.print(
            f"\nTo add the memory to an MCP client, run `{escape(_connect(memory))}` (or cursor, "
            "vscode), or paste this into its settings:",
            soft_wrap=True,
        )
        self._console.print(client, highlight=False, markup=False, soft_wrap=True)
        if plan.settings.auth == "keys":
            self._console.print(
                "Clients send a key (Authorization: Bearer …): `mcp-memory keys create` makes one.",
                soft_wrap=True,
            )
        self._console.print("\nPress Ctrl-C to stop.")
        # The supervisor's loop calls this and must not wait for it.
        self._looking = asyncio.get_running_loop().create_task(self._tell_failed_jobs(plan))

    async def _tell_failed_jobs(self, plan: StackPlan) -> None:
        """One line about failed jobs, because these are not retried by themselves."""
        database = Database(plan.settings.dsn, max_connections=1, system="all jobs that failed")
        try:
            await database.open()
            progress = await progress_of(database, plan.settings)
        except MemoryFault as fault:
            self.trouble(fault.message)
            return
        finally:
            await database.close()
        if progress.failures:
            self.trouble(
                f"Extraction failed for {progress.failed:,} documents: {progress.fails()}. "
                "`mcp-memory doctor` says what to do."
            )


def run() -> None:
    console = Console()
    asyncio.run(Supervisor(read_settings(), "full", Terminal(console)).run())
    console.print("Stopped.")


def run_services() -> None:
    terminal = Terminal(Console(), quiet=True)
    asyncio.run(Supervisor(read_settings(), "services", terminal).run())
