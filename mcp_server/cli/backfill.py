"""`mcp-memory backfill …`: commands for after a change of prompt. Heavy modules are imported when
used."""

from typing import Annotated, Any

import typer

from mcp_server.cli.search import InDocument, Json

app = typer.Typer(
    help="After a change of prompt: extract older events again (plan, trial, start …).",
    no_args_is_help=True,
)

CategoryOption = Annotated[
    str | None, typer.Option("--category", help="Only revisions with an event of this kind.")
]
Source = Annotated[str | None, typer.Option("--source", help="Only of this source system.")]
Kind = Annotated[str | None, typer.Option("--type", help="email, doc, chat, transcript, note.")]
Since = Annotated[str | None, typer.Option("--from", help="Documents from this time on, ISO 8601.")]
Until = Annotated[str | None, typer.Option("--to", help="Documents up to this time, ISO 8601.")]
Others = Annotated[
    bool, typer.Option("--other-models", help="Also what another extractor or model made.")
]
Which = Annotated[str | None, typer.Option("--id", help="A certain backfill, else the last one.")]


def _filter(
    category: str | None,
    source: str | None,
    kind: str | None,
    artifact: str | None,
    since: str | None,
    until: str | None,
) -> dict[str, Any]:
    return {
        "category": category,
        "source_system": source,
        "artifact_type": kind,
        "artifact_uid": artifact,
        "time_from": since,
        "time_to": until,
    }


@app.command()
def plan(
    category: CategoryOption = None,
    source: Source = None,
    kind: Kind = None,
    artifact: InDocument = None,
    time_from: Since = None,
    time_to: Until = None,
    other_models: Others = False,
    as_json: Json = False,
) -> None:
    """What is outdated, and how many calls and tokens renewing it would take. Changes nothing."""
    from mcp_server.cli import backfill_tables

    chosen = _filter(category, source, kind, artifact, time_from, time_to)
    backfill_tables.plan(chosen, other_models=other_models, as_json=as_json)


@app.command()
def start(
    category: CategoryOption = None,
    source: Source = None,
    kind: Kind = None,
    artifact: InDocument = None,
    time_from: Since = None,
    time_to: Until = None,
    other_models: Others = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Stay until it ends.")] = False,
    as_json: Json = False,
) -> None:
    """Start a backfill: behind everything fresh, within the tokens of the day."""
    from mcp_server.cli import backfill_tables

    chosen = _filter(category, source, kind, artifact, time_from, time_to)
    backfill_tables.start(chosen, other_models=other_models, yes=yes, wait=wait, as_json=as_json)


@app.command()
def status(
    which: Which = None,
    watch: Annotated[bool, typer.Option("--watch", help="With a progress bar.")] = False,
    as_json: Json = False,
) -> None:
    """How far it is."""
    from mcp_server.cli import backfill_tables

    backfill_tables.status(which, watch=watch, as_json=as_json)


@app.command()
def pause(as_json: Json = False) -> None:
    """Stop for now. Runs finish their documents; waiting jobs return to their earlier state."""
    from mcp_server.cli import backfill_tables

    backfill_tables.change("pause", as_json=as_json)


@app.command()
def resume(as_json: Json = False) -> None:
    """Go on; what failed is tried once more."""
    from mcp_server.cli import backfill_tables

    backfill_tables.change("resume", as_json=as_json)


@app.command()
def cancel(as_json: Json = False) -> None:
    """Stop for good. What is renewed stays renewed, all else keeps its events."""
    from mcp_server.cli import backfill_tables

    backfill_tables.change("cancel", as_json=as_json)


@app.command()
def trial(
    sample: Annotated[int, typer.Option(min=1, max=1000, help="How many revisions.")] = 20,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Which ones.")] = 0,
    category: CategoryOption = None,
    source: Source = None,
    kind: Kind = None,
    artifact: InDocument = None,
    time_from: Since = None,
    time_to: Until = None,
    other_models: Others = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="The page as Markdown.")] = False,
    as_json: Json = False,
) -> None:
    """The new prompt on a sample, compared with the events that are served. Replaces nothing."""
    from mcp_server.cli import trial_tables

    chosen = _filter(category, source, kind, artifact, time_from, time_to)
    trial_tables.run(
        chosen,
        sample=sample,
        seed=seed,
        other_models=other_models,
        markdown=markdown,
        as_json=as_json,
    )
