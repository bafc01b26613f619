"""`mcp-memory tenants …`: organisations whose memories are separate."""

from typing import Annotated

import typer

from mcp_server.cli.search import Json

app = typer.Typer(no_args_is_help=True, help="Organisations with separate memories.")

Name = Annotated[
    str, typer.Argument(help="The tenant's name, or its id.", metavar="NAME", show_default=False)
]


@app.command("create")
def create(
    name: Annotated[
        str,
        typer.Argument(help="1 to 63 of a-z, 0-9 and hyphens.", metavar="NAME", show_default=False),
    ],
    as_json: Json = False,
) -> None:
    """Make a tenant, with an empty memory."""
    from mcp_server.cli import tenant_actions

    tenant_actions.create(name, as_json=as_json)


@app.command("list")
def list_(as_json: Json = False) -> None:
    """All tenants, with their status and the number of their keys."""
    from mcp_server.cli import tenant_actions

    tenant_actions.list_(as_json=as_json)


@app.command("suspend")
def suspend(name: Name, as_json: Json = False) -> None:
    """Refuse a tenant's keys and tokens within a second. Its data stays."""
    from mcp_server.cli import tenant_actions

    tenant_actions.suspend(name, as_json=as_json)


@app.command("resume")
def resume(name: Name, as_json: Json = False) -> None:
    """Let the keys and tokens of a suspended tenant in again."""
    from mcp_server.cli import tenant_actions

    tenant_actions.resume(name, as_json=as_json)


@app.command("delete")
def delete(
    name: Name,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be deleted.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Delete a tenant with its keys, documents and all that came of them, for good.

    Interrupted, it goes on where it was when it is called again.
    """
    from mcp_server.cli import tenant_actions

    tenant_actions.delete(name, dry_run=dry_run, yes=yes, as_json=as_json)
