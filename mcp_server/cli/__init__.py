"""`mcp-memory`: the command line. Each command imports what it needs when it runs."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from mcp_server.cli import (
    backfill,
    command_record,
    events,
    jobs,
    keys,
    log,
    retention,
    search,
    tenants,
    webhooks,
)
from mcp_server.cli.search import Json
from memory_core import __version__
from memory_core.kernel.errors import FULL_DISK, ConfigurationFault, MemoryFault
from memory_core.log.origin import acting

# The groups of commands in `mcp-memory --help`.
_START, _READ, _OPERATE = "Start", "Ask the memory", "Operate"

app = typer.Typer(
    name="mcp-memory",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mcp-memory {__version__}")
        raise typer.Exit


@app.callback()
def options(
    _: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """A memory that can be trusted: documents over MCP, proved semantic events by Dagster."""


@app.command(rich_help_panel=_START)
def up() -> None:
    """Start the whole stack and keep it running until Ctrl-C."""
    from mcp_server.cli.up import run

    run()


# The help shows the groups in the order of their first commands.
app.command(rich_help_panel=_READ)(search.search)
app.command(rich_help_panel=_READ)(search.people)
app.add_typer(search.documents, name="documents", rich_help_panel=_READ)
app.add_typer(events.app, name="events", rich_help_panel=_READ)
app.add_typer(backfill.app, name="backfill", rich_help_panel=_OPERATE)
app.add_typer(jobs.app, name="jobs", rich_help_panel=_OPERATE)
app.add_typer(log.log, name="log", rich_help_panel=_OPERATE)
app.add_typer(log.projections, name="projections", rich_help_panel=_OPERATE)
app.add_typer(log.deadletters, name="deadletters", rich_help_panel=_OPERATE)
app.add_typer(keys.app, name="keys", rich_help_panel=_OPERATE)
app.add_typer(tenants.app, name="tenants", rich_help_panel=_OPERATE)
app.add_typer(retention.app, name="retention", rich_help_panel=_OPERATE)
app.add_typer(webhooks.app, name="webhooks", rich_help_panel=_OPERATE)


@app.command(hidden=True)
def services() -> None:
    """Postgres and Chroma only, for as long as some command uses them."""
    from mcp_server.cli.up import run_services

    run_services()


@app.command(rich_help_panel=_OPERATE)
def serve(
    stdio: Annotated[
        bool, typer.Option("--stdio", help="Speak MCP over stdin and stdout instead of HTTP.")
    ] = False,
) -> None:
    """Run the MCP server alone."""
    from mcp_server.cli.serve import run

    run(stdio=stdio)


@app.command(rich_help_panel=_START)
def ingest(
    paths: Annotated[
        list[Path], typer.Argument(help="Files and folders.", metavar="PATH", show_default=False)
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
        bool, typer.Option("--watch", help="Then import every change until Ctrl-C.")
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
    from mcp_server.cli.ingest import IngestOptions, run

    run(
        IngestOptions(
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


@app.command(rich_help_panel=_OPERATE)
def worker() -> None:
    """Run what follows the log (the index, deliveries) alone; `up` runs it too."""
    from mcp_server.cli.worker import run

    run()


@app.command(rich_help_panel=_OPERATE)
def migrate(as_json: Json = False) -> None:
    """Bring the database schema up to date."""
    from mcp_server.cli.migrate import run

    run(as_json=as_json)


@app.command(rich_help_panel=_START)
def doctor(
    repair: Annotated[
        bool, typer.Option("--repair", help="Repair what can be repaired in the stores.")
    ] = False,
    provider: Annotated[
        bool,
        typer.Option("--provider", help="Also ask the model that extracts events one question."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Check everything the product needs, and say what to do about what is missing."""
    from mcp_server.cli.doctor import run

    run(repair=repair, provider=provider, as_json=as_json)


@app.command("import-v2", rich_help_panel=_OPERATE)
def import_v2(
    place: Annotated[
        str,
        typer.Argument(
            help="The directory of version 2's Chroma, or its server's address (http://…).",
            metavar="PLACE",
            show_default=False,
        ),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read all, store nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Bring over what version 2 kept in Chroma; that is left untouched."""
    from mcp_server.cli.import_v2 import run

    run(place, dry_run=dry_run, as_json=as_json)


@app.command(rich_help_panel=_OPERATE)
def reindex() -> None:
    """Rebuild the search index from Postgres, for example after a change of embedding model."""
    from mcp_server.cli.reindex import run

    run()


@app.command(rich_help_panel=_START)
def status(as_json: Json = False) -> None:
    """Which memory is in use, what is in it, and what runs."""
    from mcp_server.cli.status import run

    run(as_json=as_json)


@app.command(rich_help_panel=_OPERATE)
def config(
    changed: Annotated[
        bool, typer.Option("--changed", help="Only what differs from the defaults.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Every setting, its value (secrets masked) and where it comes from."""
    from mcp_server.cli.configuration import show

    show(changed=changed, as_json=as_json)


@app.command(rich_help_panel=_START)
def connect(
    client: Annotated[
        str,
        typer.Argument(help="claude, claude-code, cursor, vscode or inspector.", metavar="CLIENT"),
    ],
    http: Annotated[
        bool, typer.Option("--http", help="Ask the running stack instead of starting a server.")
    ] = False,
    name: Annotated[str, typer.Option(help="The server's name in the client.")] = "memory",
    file: Annotated[
        Path | None, typer.Option(help="Another file than the client's own, e.g. .vscode/mcp.json.")
    ] = None,
    key_file: Annotated[
        str | None,
        typer.Option("--key-file", help="With --http: a file with a key to send; -: stdin."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the change; write nothing.")
    ] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Take the memory out again.")] = False,
    as_json: Json = False,
) -> None:
    """Put the memory into an MCP client's list of servers."""
    from mcp_server.cli.connect import run

    run(
        client,
        http=http,
        name=name,
        file=file,
        key_file=key_file,
        dry_run=dry_run,
        undo=undo,
        as_json=as_json,
    )


@app.command(rich_help_panel=_OPERATE)
def reextract(
    document: Annotated[
        str | None, typer.Argument(help="uid_…, or its first characters.", metavar="DOCUMENT")
    ] = None,
    revision: Annotated[
        str | None,
        typer.Argument(help="rev_…; the latest revision when left out.", metavar="REVISION"),
    ] = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Everything that failed, instead of one document.")
    ] = False,
    code: Annotated[
        str | None, typer.Option("--code", help="With --failed: only with this error code.")
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Also what is done or at work; asks the model again."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Ask for events again: of a revision, or of everything that failed."""
    from mcp_server.cli.reextract import run

    run(document, revision, failed=failed, code=code, force=force, as_json=as_json)


@app.command(rich_help_panel=_OPERATE)
def trace(
    subject: Annotated[
        str,
        typer.Argument(
            help="uid_… (or its first characters), job_…, or the 32 digits of a trace.",
            metavar="DOCUMENT|JOB|TRACE",
            show_default=False,
        ),
    ],
    as_json: Json = False,
) -> None:
    """What happened to a document: who asked, every attempt, where time and money went."""
    from mcp_server.cli.trace import run

    run(subject, as_json=as_json)


@app.command(rich_help_panel=_START)
def demo() -> None:
    """Show on sample documents, in a folder that can be thrown away, what the memory does."""
    from mcp_server.cli.demo import run

    run()


def main() -> None:
    try:
        with acting(source=command_record.begin(app)):
            app()
    except MemoryFault as fault:
        from mcp_server.cli.command_wording import in_commands

        typer.secho(in_commands(fault.message), fg=typer.colors.RED, err=True)
        sys.exit(2 if isinstance(fault, ConfigurationFault) else 1)
    except OSError as error:
        if error.errno not in FULL_DISK:
            raise
        where = f" ({error.filename})" if error.filename else ""
        typer.secho(
            f"The disk is full{where}. What is stored is safe: free some space and try again.",
            fg=typer.colors.RED,
            err=True,
        )
        sys.exit(1)
