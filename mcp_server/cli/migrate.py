"""`mcp-memory migrate`."""

from rich.console import Console

from mcp_server.cli.configuration import read_settings
from mcp_server.cli.safe_text import as_json as json_text
from memory_core.kernel import migrations
from stack.connection import connected


def run(*, as_json: bool) -> None:
    console = Console()
    settings = read_settings()
    if settings.events_db_dsn is not None:
        applied = migrations.apply(settings.dsn)
    else:
        # Starting the embedded server has already migrated it.
        with connected(settings) as resolved:
            applied = migrations.apply(resolved.dsn)
    if as_json:
        print(json_text({"applied": applied}))
        return
    for name in applied:
        console.print(f"[green]✓[/] {name}")
    console.print("The schema is up to date.")
