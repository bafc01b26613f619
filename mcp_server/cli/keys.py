"""`mcp-memory keys …`: who may ask the MCP server with AUTH=keys."""

from typing import Annotated

import typer

from mcp_server.cli.search import Json

app = typer.Typer(no_args_is_help=True, help="Keys of clients, with AUTH=keys.")


@app.command("create")
def create(
    tenant: Annotated[str, typer.Option("--tenant", help="Whose memory it opens.")],
    user: Annotated[str, typer.Option("--user", help="Who uses it.")],
    groups: Annotated[str, typer.Option("--groups", help="The user's groups: a,b.")] = "",
    scopes: Annotated[
        str, typer.Option("--scopes", help="What it allows, of read, write and admin.")
    ] = "read,write",
    expires: Annotated[
        int | None, typer.Option("--expires", min=1, max=36_500, help="Days; never when left out.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a key. It is shown this once."""
    from mcp_server.cli import key_actions

    key_actions.create(tenant, user, groups=groups, scopes=scopes, expires=expires, as_json=as_json)


@app.command("list")
def list_(
    tenant: Annotated[str | None, typer.Option("--tenant", help="Of this tenant alone.")] = None,
    as_json: Json = False,
) -> None:
    """All keys by their prefix, with their last use."""
    from mcp_server.cli import key_actions

    key_actions.list_(tenant, as_json=as_json)


@app.command("revoke")
def revoke(
    prefix: Annotated[
        str, typer.Argument(help="mcpmem_…: the prefix, or its first characters.", metavar="PREFIX")
    ],
    as_json: Json = False,
) -> None:
    """End a key, everywhere within a second."""
    from mcp_server.cli import key_actions

    key_actions.revoke(prefix, as_json=as_json)
