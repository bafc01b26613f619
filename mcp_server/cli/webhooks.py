"""`mcp-memory webhooks …`. Heavy modules are imported when used."""

from typing import Annotated

import typer

from mcp_server.cli.search import Json

app = typer.Typer(
    help="Tell other programs of changes, as signed HTTP messages.", no_args_is_help=True
)

Id = Annotated[
    str, typer.Argument(help="Its id, or the first characters of it.", metavar="SUBSCRIPTION")
]


@app.command("add")
def add(
    url: Annotated[str, typer.Argument(help="Where messages go: https://…", metavar="URL")],
    types: Annotated[str, typer.Option("--types", help="Which changes: artifact.created,memory.*")],
    category: Annotated[
        str | None,
        typer.Option("--category", help="Of events.replaced: only events such as Commitment."),
    ] = None,
    actor: Annotated[
        str | None,
        typer.Option("--actor", help="Of events.replaced: only events with this person."),
    ] = None,
    include_content: Annotated[
        bool,
        typer.Option("--include-content", help="Send narrative, quote and title, not ids only."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Subscribe a URL. The secret that signs its messages is shown this once."""
    from mcp_server.cli import webhook_actions

    webhook_actions.add(
        url,
        types,
        category=category,
        actor=actor,
        include_content=include_content,
        as_json=as_json,
    )


@app.command("list")
def list_(as_json: Json = False) -> None:
    """The subscriptions, and how many messages wait for each."""
    from mcp_server.cli import webhook_actions

    webhook_actions.list_(as_json=as_json)


@app.command("remove")
def remove(id_: Id) -> None:
    """End a subscription, with the messages that wait for it."""
    from mcp_server.cli import webhook_actions

    webhook_actions.remove(id_)


@app.command("test")
def send_test(id_: Id, as_json: Json = False) -> None:
    """Send one message now and show what the receiver answers."""
    from mcp_server.cli import webhook_actions

    webhook_actions.test(id_, as_json=as_json)


@app.command("rotate")
def rotate(id_: Id, as_json: Json = False) -> None:
    """Make a new secret, shown this once. The old one signs too, for a day."""
    from mcp_server.cli import webhook_actions

    webhook_actions.rotate(id_, as_json=as_json)


@app.command("deliveries")
def deliveries(
    id_: Annotated[
        str | None,
        typer.Argument(
            help="Only of this one: its id, or the first characters.", metavar="SUBSCRIPTION"
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 50,
    as_json: Json = False,
) -> None:
    """Messages that wait, and the last ones that ended."""
    from mcp_server.cli import webhook_actions

    webhook_actions.deliveries(id_, limit, as_json=as_json)
