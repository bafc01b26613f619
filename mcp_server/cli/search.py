"""`mcp-memory search`, `people` and `documents …`. Heavy modules are imported when used."""

from typing import Annotated

import typer

documents = typer.Typer(help="The documents of the memory: list them, show one.")

CATEGORIES = (
    "Only Decision, Commitment, Execution, Collaboration, QualityRisk, Feedback, Change or "
    "Stakeholder."
)
Json = Annotated[bool, typer.Option("--json", help="For scripts.")]
Full = Annotated[bool, typer.Option("--full", help="Everything, not one line each.")]
Document = Annotated[
    str, typer.Argument(help="uid_…, or its first characters.", metavar="DOCUMENT")
]
InDocument = Annotated[
    str | None,
    typer.Option("--document", "--artifact", help="Only this document: uid_… or its beginning."),
]
Source = Annotated[str | None, typer.Option("--source", help="Only from this source system.")]
Kind = Annotated[
    str | None, typer.Option("--type", help="Only email, doc, chat, transcript or note.")
]
Since = Annotated[str | None, typer.Option("--from", help="Of this time or later, ISO 8601.")]
Until = Annotated[str | None, typer.Option("--to", help="Of this time or earlier, ISO 8601.")]


def search(
    text: Annotated[
        str, typer.Argument(help='What to look for: words, "a phrase", OR, -word.', metavar="TEXT")
    ],
    document: InDocument = None,
    kind: Kind = None,
    source: Source = None,
    time_from: Since = None,
    time_to: Until = None,
    limit: Annotated[int, typer.Option(min=1, max=50, help="How many passages.")] = 5,
    full: Annotated[bool, typer.Option("--full", help="The whole passages.")] = False,
    as_json: Json = False,
) -> None:
    """Find passages of documents, by words and by meaning, best first."""
    from mcp_server.cli import passage_tables

    passage_tables.search(
        {
            "query": text,
            "artifact_uid": document,
            "artifact_type": kind,
            "source_system": source,
            "time_from": time_from,
            "time_to": time_to,
            "limit": limit,
        },
        full=full,
        as_json=as_json,
    )


def people(
    text: Annotated[
        str, typer.Argument(help="What they were involved in; empty for all.", metavar="TEXT")
    ] = "",
    document: InDocument = None,
    category: Annotated[str | None, typer.Option(help=CATEGORIES)] = None,
    time_from: Since = None,
    time_to: Until = None,
    limit: Annotated[int, typer.Option(min=1, max=100, help="How many people.")] = 20,
    full: Full = False,
    as_json: Json = False,
) -> None:
    """Who took part, in which roles, with examples."""
    from mcp_server.cli import event_tables

    event_tables.people(
        {
            "query": text or None,
            "artifact_uid": document,
            "category": category,
            "time_from": time_from,
            "time_to": time_to,
            "limit": limit,
        },
        full=full,
        as_json=as_json,
    )


@documents.command("list")
def list_documents(
    text: Annotated[
        str, typer.Argument(help="Part of the title or of the file's name.", metavar="TEXT")
    ] = "",
    kind: Kind = None,
    source: Source = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many documents.")] = 20,
    offset: Annotated[int, typer.Option(min=0, help="Leave out the first.")] = 0,
    as_json: Json = False,
) -> None:
    """Documents, those first that changed last."""
    from mcp_server.cli import passage_tables

    passage_tables.documents(text, kind, source, limit=limit, offset=offset, as_json=as_json)


@documents.command("show")
def show_document(
    document: Document,
    revision: Annotated[
        str | None, typer.Option("--revision", help="rev_…; the latest when left out.")
    ] = None,
    text: Annotated[bool, typer.Option("--text", help="Only the text, exactly.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Also the whole text.")] = False,
    as_json: Json = False,
) -> None:
    """One document: where it is from, its revisions, its events and how it begins."""
    from mcp_server.cli import passage_tables

    passage_tables.document(document, revision, text_only=text, full=full, as_json=as_json)
