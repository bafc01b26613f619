"""`mcp-memory`: the command line. Each command imports what it needs when it runs."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from mcp_server.cli import backfill, events
from memory_core.errors import ConfigurationFault, MemoryFault

app = typer.Typer(
    name="mcp-memory",
    help="A memory that can be trusted: documents over MCP, proved semantic events by Dagster.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


@app.command()
def up() -> None:
    """Start the whole stack and keep it running until Ctrl-C."""
    from mcp_server.cli.up import run

    run()


@app.command(hidden=True)
def services() -> None:
    """Postgres and Chroma only, for as long as some command uses them."""
    from mcp_server.cli.up import run_services

    run_services()


@app.command()
def serve(
    stdio: Annotated[
        bool, typer.Option("--stdio", help="Speak MCP over stdin and stdout instead of HTTP.")
    ] = False,
) -> None:
    """Run the MCP server alone."""
    from mcp_server.cli.serve import run

    run(stdio=stdio)


@app.command()
def ingest(
    paths: Annotated[
        list[Path], typer.Argument(help="Files and folders.", metavar="PATH…", show_default=False)
    ],
    artifact_type: Annotated[
        str | None, typer.Option("--type", help="email, doc, chat, transcript or note for all.")
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="The folder's name in ids. Default: its own name.")
    ] = None,
    git: Annotated[
        bool, typer.Option("--git", help="The files' git history, each state a revision.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Then keep in step with changes until Ctrl-C.")
    ] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Delete documents whose file is gone, after asking.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before pruning.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Store and delete nothing.")] = False,
    reread: Annotated[
        bool, typer.Option("--reread", help="Also read files whose size and times are as before.")
    ] = False,
    jobs: Annotated[int, typer.Option(min=1, max=32, help="Groups of files read at once.")] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for scripts.")] = False,
) -> None:
    """Import your own files, mail, chats and history."""
    from mcp_server.cli.ingest import Request, run

    run(
        Request(
            paths=paths,
            artifact_type=artifact_type,
            source=source,
            git=git,
            watch=watch,
            prune=prune,
            yes=yes,
            dry_run=dry_run,
            reread=reread,
            jobs=jobs,
            as_json=as_json,
        )
    )


@app.command()
def migrate() -> None:
    """Bring the database schema up to date."""
    from mcp_server.cli.migrate import run

    run()


@app.command()
def doctor(
    repair: Annotated[
        bool, typer.Option("--repair", help="Mend what can be mended in the stores.")
    ] = False,
) -> None:
    """Check everything the product needs, and say what to do about what is missing."""
    from mcp_server.cli.doctor import run

    run(repair=repair)


@app.command()
def reindex(
    what: Annotated[
        str, typer.Argument(help="documents, memories, events or all.", metavar="WHAT")
    ] = "all",
) -> None:
    """Rebuild the search index from Postgres, for example after a change of embedding model."""
    from mcp_server.cli.reindex import run

    run(what)


app.add_typer(events.app, name="events")
app.add_typer(backfill.app, name="backfill")


@app.command()
def jobs(
    status: Annotated[
        str | None, typer.Option(help="Only PENDING, PROCESSING, DONE or FAILED jobs.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="For scripts.")] = False,
) -> None:
    """The extraction queue: how many jobs in which state, and the latest of them."""
    from mcp_server.cli.jobs import run

    run(status, limit, as_json=as_json)


@app.command()
def reextract(
    artifact_uid: Annotated[str, typer.Argument(help="The document: uid_… .")],
    revision_id: Annotated[
        str | None, typer.Argument(help="rev_… ; the latest revision when left out.")
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Also when it is done or at work, asking the model anew."),
    ] = False,
) -> None:
    """Ask for a revision's events again, for example one that failed."""
    from mcp_server.cli.reextract import run

    run(artifact_uid, revision_id, force=force)


@app.command(hidden=True)
def demo() -> None:
    """Start the stack on a throw-away data dir and show what it does."""
    from mcp_server.cli.demo import run

    run()


def main() -> None:
    try:
        app()
    except MemoryFault as fault:
        typer.secho(fault.message, fg=typer.colors.RED, err=True)
        sys.exit(2 if isinstance(fault, ConfigurationFault) else 1)
