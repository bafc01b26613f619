"""`mcp-memory events …`: the event tools for people. Heavy modules are imported when used."""

from typing import Annotated

import typer

from mcp_server.cli.search import CATEGORIES, Document, Full, InDocument

app = typer.Typer(
    help="Ask the memory: search, show, diff, timeline, commitments.", no_args_is_help=True
)

Json = Annotated[bool, typer.Option("--json", help="The tool's own answer, for scripts.")]
Limit = Annotated[int, typer.Option(min=1, max=100, help="How many.")]
Actor = Annotated[str | None, typer.Option(help="Who took part.")]
Subject = Annotated[str | None, typer.Option(help="What the event is about.")]
Since = Annotated[
    str | None, typer.Option("--from", help="Happened or due at this time or later, ISO 8601.")
]
Until = Annotated[str | None, typer.Option("--to", help="At this time or earlier, ISO 8601.")]
Text = Annotated[str, typer.Argument(help="What to look for; empty for all.", metavar="TEXT")]


@app.command()
def search(
    text: Annotated[
        str, typer.Argument(help="What to look for; empty for the newest.", metavar="TEXT")
    ] = "",
    category: Annotated[str | None, typer.Option(help=CATEGORIES)] = None,
    actor: Actor = None,
    subject: Subject = None,
    document: InDocument = None,
    time_from: Since = None,
    time_to: Until = None,
    limit: Limit = 20,
    offset: Annotated[int, typer.Option(min=0, max=100_000, help="Leave out the first.")] = 0,
    sort: Annotated[str, typer.Option(help="relevance or time.")] = "relevance",
    superseded: Annotated[
        bool, typer.Option("--superseded", help="Also of older revisions.")
    ] = False,
    full: Full = False,
    as_json: Json = False,
) -> None:
    """What was decided, promised, done, changed, feared or said."""
    from mcp_server.cli import event_tables

    event_tables.search(
        {
            "query": text or None,
            "category": category,
            "actor": actor,
            "subject": subject,
            "artifact_uid": document,
            "time_from": time_from,
            "time_to": time_to,
            "limit": limit,
            "offset": offset,
            "sort": sort,
            "include_superseded": superseded,
        },
        full=full,
        as_json=as_json,
    )


@app.command()
def show(
    event_id: Annotated[
        str, typer.Argument(help="As the tables show it, or in full.", metavar="EVENT")
    ],
    as_json: Json = False,
) -> None:
    """One event, each quote highlighted in its sentence."""
    from mcp_server.cli import event_tables

    event_tables.show(event_id, as_json=as_json)


@app.command()
def diff(
    document: Document,
    from_revision: Annotated[
        str | None,
        typer.Option("--from-revision", help="rev_…; the one before when left out."),
    ] = None,
    to_revision: Annotated[
        str | None, typer.Option("--to-revision", help="rev_…; the latest when left out.")
    ] = None,
    full: Full = False,
    as_json: Json = False,
) -> None:
    """What changed between two revisions of a document."""
    from mcp_server.cli import event_tables

    event_tables.diff(document, from_revision, to_revision, full=full, as_json=as_json)


@app.command()
def timeline(
    text: Text = "",
    actor: Actor = None,
    subject: Subject = None,
    time_from: Since = None,
    time_to: Until = None,
    limit: Limit = 50,
    full: Full = False,
    as_json: Json = False,
) -> None:
    """Events day by day."""
    from mcp_server.cli import event_tables

    event_tables.timeline(
        {
            "query": text or None,
            "actor": actor,
            "subject": subject,
            "time_from": time_from,
            "time_to": time_to,
            "limit": limit,
        },
        full=full,
        as_json=as_json,
    )


@app.command()
def commitments(
    actor: Actor = None,
    due_from: Annotated[str | None, typer.Option(help="Due then or later, ISO 8601.")] = None,
    due_to: Annotated[str | None, typer.Option(help="Due by then, ISO 8601.")] = None,
    status: Annotated[
        str | None, typer.Option(help="open, done, overdue, or unknown (open, no date).")
    ] = None,
    limit: Limit = 20,
    full: Full = False,
    as_json: Json = False,
) -> None:
    """What was promised, and whether it was done."""
    from mcp_server.cli import event_tables

    event_tables.commitments(
        {
            "actor": actor,
            "due_from": due_from,
            "due_to": due_to,
            "status": status,
            "limit": limit,
        },
        full=full,
        as_json=as_json,
    )
