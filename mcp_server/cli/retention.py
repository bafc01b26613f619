"""`mcp-memory retention …`: documents whose retention policy has expired."""

import typer

from mcp_server.cli.search import Json

app = typer.Typer(no_args_is_help=True, help="Documents whose retention policy has run out.")


@app.command("preview")
def preview(as_json: Json = False) -> None:
    """What the next run would delete; nothing is deleted."""
    from mcp_server.cli import retention_actions

    retention_actions.show(dry_run=True, as_json=as_json)


@app.command("run")
def run(as_json: Json = False) -> None:
    """Delete it now; the hourly upkeep does the same."""
    from mcp_server.cli import retention_actions

    retention_actions.show(dry_run=False, as_json=as_json)
