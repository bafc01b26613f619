"""`mcp-memory migrate`."""

from rich.console import Console

from memory_core import migrations
from memory_core.settings import load_settings
from memory_core.stack.connection import connected


def run() -> None:
    console = Console()
    settings = load_settings()
    with connected(settings) as resolved:
        applied = migrations.apply(resolved.dsn)
    for name in applied:
        console.print(f"[green]✓[/] {name}")
    console.print("The schema is up to date.")
