"""`mcp-memory events …`: the event tools for people. The heavy parts are imported when used."""

from typing import Annotated

import typer

app = typer.Typer(help="Ask the memory: search, show, diff, timeline, commitments.")

Json = Annotated[bool, typer.Option("--json", help="The tool's own answer, for scripts.")]
Limit = Annotated[int, typer.Option(min=1, max=100)]
Actor = Annotated[str | None, typer.Option(help="Who took part.")]
Subject = Annotated[str | None, typer.Option(help="What the event is about.")]
Since = Annotated[str | None, typer.Option("--from", help="ISO 8601.")]
Until = Annotated[str | None, typer.Option("--to", help="ISO 8601.")]


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="What to look for; empty for the newest.")] = "",
    category: Annotated[str | None, typer.Option(help="Decision, Commitment, Feedback …")] = None,
    actor: Actor = None,
    subject: Subject = None,
    artifact: Annotated[
        str | None, typer.Option("--artifact", help="Only this document: uid_… .")
    ] = None,
    time_from: Since = None,
    time_to: Until = None,
    limit: Limit = 20,
    offset: Annotated[int, typer.Option(min=0, max=100_000, help="Leave out the first.")] = 0,
    sort: Annotated[str, typer.Option(help="relevance or time.")] = "relevance",
    superseded: Annotated[bool, typer.Option(help="Also of older revisions.")] = False,
    as_json: Json = False,
) -> None:
    """What was decided, promised, done, changed, feared or said."""
    from mcp_server.cli import answers

    answers.search(
        {
            "query": query or None,
            "category": category,
            "actor": actor,
            "subject": subject,
            "artifact_uid": artifact,
            "time_from": time_from,
            "time_to": time_to,
            "limit": limit,
            "offset": offset,
            "sort": sort,
            "include_superseded": superseded,
        },
        as_json=as_json,
    )


@app.command()
def show(event_id: str, as_json: Json = False) -> None:
    """One event, each quote highlighted in its sentence."""
    from mcp_server.cli import answers

    answers.show(event_id, as_json=as_json)


@app.command()
def diff(
    artifact_uid: str,
    from_revision: Annotated[str | None, typer.Option("--from")] = None,
    to_revision: Annotated[str | None, typer.Option("--to")] = None,
    as_json: Json = False,
) -> None:
    """What changed between two revisions of a document."""
    from mcp_server.cli import answers

    answers.diff(
        {
            "artifact_uid": artifact_uid,
            "from_revision": from_revision,
            "to_revision": to_revision,
        },
        as_json=as_json,
    )


@app.command()
def timeline(
    query: Annotated[str, typer.Argument()] = "",
    actor: Actor = None,
    subject: Subject = None,
    time_from: Since = None,
    time_to: Until = None,
    limit: Limit = 50,
    as_json: Json = False,
) -> None:
    """Events day by day."""
    from mcp_server.cli import answers

    answers.timeline(
        {
            "query": query or None,
            "actor": actor,
            "subject": subject,
            "time_from": time_from,
            "time_to": time_to,
            "limit": limit,
        },
        as_json=as_json,
    )


@app.command()
def commitments(
    actor: Actor = None,
    due_from: Annotated[str | None, typer.Option()] = None,
    due_to: Annotated[str | None, typer.Option()] = None,
    status: Annotated[str | None, typer.Option(help="open, done, overdue or unknown.")] = None,
    limit: Limit = 20,
    as_json: Json = False,
) -> None:
    """What was promised, and whether it was done."""
    from mcp_server.cli import answers

    answers.commitments(
        {
            "actor": actor,
            "due_from": due_from,
            "due_to": due_to,
            "status": status,
            "limit": limit,
        },
        as_json=as_json,
    )
