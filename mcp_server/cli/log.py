"""`mcp-memory log …`, `projections …`, `deadletters …`. Heavy modules are imported when used."""

from typing import Annotated

import typer

from mcp_server.cli.search import Json

log = typer.Typer(help="The log of changes: what happened to the memory.", no_args_is_help=True)
projections = typer.Typer(
    help="What is derived from the log: the index and deliveries.", no_args_is_help=True
)
deadletters = typer.Typer(help="Changes that a projection could not apply.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The projection, such as index.", metavar="NAME")]
Which = Annotated[
    list[int] | None, typer.Argument(help="Their numbers, as list shows them.", metavar="ID…")
]
Every = Annotated[bool, typer.Option("--all", help="All open ones.")]
OfProjection = Annotated[
    str | None, typer.Option("--projection", help="Only those of this projection.")
]


@log.command("tail")
def tail(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="And what comes.")] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, max=10_000)] = 20,
    kind: Annotated[
        str | None, typer.Option("--types", help="Only these, such as artifact.created,memory.*")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """The last changes, oldest first."""
    from mcp_server.cli import log_actions

    log_actions.tail(lines, kind, follow=follow, as_json=as_json)


@log.command("state")
def state(
    aggregate: Annotated[
        str,
        typer.Argument(
            help="uid_…, mem_…, or a type and an id: backfill:0123….", metavar="AGGREGATE"
        ),
    ],
    at: Annotated[str | None, typer.Option("--at", help="As it was then, ISO 8601.")] = None,
) -> None:
    """What the log says of one document, memory, conversation or backfill, as JSON."""
    from mcp_server.cli import log_actions

    log_actions.state(aggregate, at)


@log.command("rebase")
def rebase() -> None:
    """After a dump was restored into another Postgres: give the log positions of this one."""
    from mcp_server.cli import log_actions

    log_actions.rebase()


@projections.command("status")
def status(as_json: Json = False) -> None:
    """How far each projection is, and why it is behind."""
    from mcp_server.cli import log_actions

    log_actions.projections(as_json=as_json)


@projections.command("pause")
def pause(name: Name) -> None:
    """Let a projection stand still; nothing is lost meanwhile."""
    from mcp_server.cli import log_actions

    log_actions.set_status(name, "paused")


@projections.command("resume")
def resume(name: Name) -> None:
    """Let it go on where it stands."""
    from mcp_server.cli import log_actions

    log_actions.set_status(name, "running")


@projections.command("rebuild")
def rebuild(name: Name) -> None:
    """Derive it from Postgres again. It serves meanwhile; the worker does it."""
    from mcp_server.cli import log_actions

    log_actions.set_status(name, "rebuilding")


@deadletters.command("list")
def list_letters(
    projection: OfProjection = None,
    status: Annotated[
        str | None, typer.Option("--status", help="failed, retrying or resolved.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 50,
    as_json: Json = False,
) -> None:
    """Those that are still open, oldest first."""
    from mcp_server.cli import deadletter_actions

    deadletter_actions.list_(projection, status, limit, as_json=as_json)


@deadletters.command("show")
def show(id_: Annotated[int, typer.Argument(metavar="ID")]) -> None:
    """One of them with its change and its error, as JSON."""
    from mcp_server.cli import deadletter_actions

    deadletter_actions.show(id_)


@deadletters.command("retry")
def retry(ids: Which = None, every: Every = False, projection: OfProjection = None) -> None:
    """Let the worker try them again."""
    from mcp_server.cli import deadletter_actions

    deadletter_actions.retry(ids, every=every, projection=projection)


@deadletters.command("resolve")
def resolve(ids: Which = None, every: Every = False, projection: OfProjection = None) -> None:
    """Say that they are dealt with. Who said so is kept."""
    from mcp_server.cli import deadletter_actions

    deadletter_actions.resolve(ids, every=every, projection=projection)
