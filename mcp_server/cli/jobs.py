"""`mcp-memory jobs …`. Heavy modules are imported when used."""

from typing import Annotated

import typer

from mcp_server.cli.search import Json

app = typer.Typer(
    help="The extraction queue: how many jobs in which state, and the latest of them."
)

Job = Annotated[str, typer.Argument(help="Its id, or the first characters of it.", metavar="JOB")]
Status = Annotated[
    str | None,
    typer.Option(help="Only PENDING, PROCESSING, DONE, FAILED or CANCELED jobs."),
]


@app.callback(invoke_without_command=True)
def overview(
    context: typer.Context,
    status: Status = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many.")] = 20,
    watch: Annotated[
        bool, typer.Option("--watch", help="Stay until nothing waits, with a progress bar.")
    ] = False,
    as_json: Json = False,
) -> None:
    if context.invoked_subcommand is None:
        from mcp_server.cli import job_actions

        job_actions.overview(status, limit, watch=watch, as_json=as_json)


@app.command("list")
def list_(
    status: Status = None,
    limit: Annotated[int, typer.Option(min=1, max=100, help="How many to a page.")] = 20,
    cursor: Annotated[
        str | None, typer.Option(help="The page that follows: as the page before shows it.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Jobs page by page, the newest first."""
    from mcp_server.cli import job_actions

    job_actions.list_(status, limit, cursor, as_json=as_json)


@app.command("show")
def show(job: Job, as_json: Json = False) -> None:
    """One job with its history: every transition, who or which run made it, and why."""
    from mcp_server.cli import job_actions

    job_actions.show(job, as_json=as_json)


@app.command("cancel")
def cancel(job: Job, as_json: Json = False) -> None:
    """Stop a job: at once while it waits, else at the next safe point of its run."""
    from mcp_server.cli import job_actions

    job_actions.cancel(job, as_json=as_json)


@app.command("retry")
def retry(
    job: Annotated[
        str | None,
        typer.Argument(help="Its id, or the first characters of it.", metavar="JOB"),
    ] = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Everything that failed, instead of one job.")
    ] = False,
    code: Annotated[
        str | None, typer.Option("--code", help="With --failed: only with this error code.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Try again what failed or was canceled."""
    from mcp_server.cli import job_actions

    job_actions.retry(job, failed=failed, code=code, as_json=as_json)
