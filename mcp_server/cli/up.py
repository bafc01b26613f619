"""`mcp-memory up`: the supervisor, with one line on the terminal per step."""

import asyncio
import json

from rich.console import Console
from rich.markup import escape

from memory_core.settings import load_settings
from memory_core.stack.services import Plan
from memory_core.stack.supervisor import Supervisor


class Terminal:
    """Tells a person what the supervisor does."""

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

    def ready(self, plan: Plan) -> None:
        if self._quiet:
            return
        url = plan.state.mcp_url
        client = json.dumps({"mcpServers": {"memory": {"type": "http", "url": url}}}, indent=2)
        self._console.print()
        self._console.print(f"[bold]MCP server[/]   {url}")
        self._console.print(f"[bold]Dagster UI[/]   {plan.state.dagster_url}")
        self._console.print(f"[bold]Data[/]         {plan.settings.data_dir}")
        self._console.print("\nTo add the memory to an MCP client, paste this into its settings:")
        self._console.print(client, highlight=False, markup=False, soft_wrap=True)
        self._console.print("\nPress Ctrl-C to stop.")


def run() -> None:
    console = Console()
    asyncio.run(Supervisor(load_settings(), "full", Terminal(console)).run())
    console.print("Stopped.")


def run_services() -> None:
    terminal = Terminal(Console(), quiet=True)
    asyncio.run(Supervisor(load_settings(), "services", terminal).run())
