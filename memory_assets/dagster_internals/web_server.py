"""Dagster's web server behind a guard.

    python -m memory_assets.dagster_internals.web_server -w workspace.yaml -h HOST -p PORT

As shipped, it answers every web page that a browser on this machine has open: it checks neither
Host nor Origin, and it runs mutations that are part of a URL. Here a `Guard` checks every request
first. The command line is Dagster's own; only the function that serves the application is replaced.
"""

from collections.abc import Mapping
from typing import Any

from memory_assets.dagster_internals import log_level
from memory_core.kernel.admission import Refusal
from memory_core.kernel.settings import load_settings
from memory_core.web import connections
from memory_core.web.guard import Guard, Rule

# People type run configurations, so 20 MB is plenty.
MAX_REQUEST_BYTES = 20_000_000
_REPLACED = "host_dagster_ui_with_workspace_process_context"
_QUERY_TYPES = ("application/json", "application/graphql")


def queries_come_in_bodies(graphql: str) -> Rule:
    """Refuse a query in a URL: an image, a link or a form on any page can send one."""

    def rule(method: str, path: str, headers: Mapping[str, list[str]]) -> Refusal | None:
        if path != graphql:
            return None
        if method == "POST":
            sent = headers.get("content-type", [""])[0].partition(";")[0].strip().lower()
            allowed = sent in _QUERY_TYPES
        else:  # a person gets the query page; it runs no query by itself
            allowed = "text/html" in headers.get("accept", [""])[0]
        return None if allowed else Refusal(405, "Send the query as JSON, by POST.")

    return rule


def _serve(
    workspace: Any,
    host: str | None,
    port: int | None,
    path_prefix: str,
    log_level: str,
    live_data_poll_rate: int | None = None,
) -> None:
    """Dagster's function of that signature, without its telemetry and its search for a free
    port."""
    from dagster_webserver.app import create_app_from_workspace_process_context

    host = host or "127.0.0.1"
    app = create_app_from_workspace_process_context(workspace, path_prefix, live_data_poll_rate)
    guarded = Guard(
        app,
        load_settings().admission(host),
        max_body_bytes=MAX_REQUEST_BYTES,
        rule=queries_come_in_bodies(f"{path_prefix}/graphql"),
    )
    connections.serve(guarded, host=host, port=port or 3001, log_level=log_level)


def main() -> None:
    from dagster_webserver import cli

    if not hasattr(cli, _REPLACED):
        raise RuntimeError(f"This Dagster has no {_REPLACED}: its web server would be unguarded.")
    setattr(cli, _REPLACED, _serve)
    log_level.add_to_command_line("--uvicorn-log-level", "--dagster-log-level")
    cli.main()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
