"""`mcp-memory migrate`."""

from rich.console import Console

from memory_core import migrations
from memory_core.settings import load_settings
from memory_core.stack.connection import connected


def run() -> None:
    console = Console()
    settings = load_settings()
    if settings.events_db_dsn is not None:
        applied = migrations.apply(settings.dsn)
    else:
        # Whoever starts the embedded server migrates it before anybody gets to use it.
        with connected(settings) as resolved:
            applied = migrations.apply(resolved.dsn)
    for name in applied:
        console.print(f"[green]✓[/] {name}")
    console.print("The schema is up to date.")
