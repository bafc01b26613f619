"""Messages that name tools name commands on the command line."""

import pytest

from mcp_server.cli.command_wording import in_commands


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (
            "There is no artifact 'x'. artifact_search finds documents, artifact_history their "
            "revisions.",
            "There is no artifact 'x'. `mcp-memory search` finds documents, `mcp-memory documents "
            "show` their revisions.",
        ),
        ("done already; force=true starts it over.", "done already; --force starts it over."),
        (
            "Invalid arguments for event_search. category: wrong (allowed: Decision)",
            "--category: wrong (allowed: Decision)",
        ),
        (
            "Invalid artifact_type: poem. Must be one of: email, doc",
            "Invalid --type: poem. Must be one of: email, doc",
        ),
        ("time_from='x' is no time.", "--from='x' is no time."),
        ("The timeline of the status is fine.", "The timeline of the status is fine."),
    ],
)
def test_tools_become_commands_and_parameters_options(message: str, told: str) -> None:
    assert in_commands(message) == told
