"""`mcp-memory keys create | list | revoke`."""

import pytest
from typer.testing import CliRunner

from mcp_server.cli import app
from memory_core.access import keys
from memory_core.kernel.errors import MemoryFault
from tests.integration.commands import Command, answer, words

CREATE = ("keys", "create", "--tenant", "default", "--user", "alice")


def test_a_key_is_shown_once_and_never_again(command: Command) -> None:
    made = answer(command, *CREATE, "--groups", "sales,ops", "--expires", "30")
    assert keys.prefix_of(made["key"]) == made["prefix"]
    assert (made["groups"], made["scopes"]) == (["ops", "sales"], ["read", "write"])
    assert made["expires_at"] > made["created_at"]

    shown = command("keys", "list") + command("keys", "list", "--json")
    assert made["prefix"] in shown
    assert made["key"] not in shown
    assert made["key"].rpartition("_")[2] not in shown


def test_without_json_it_says_how_to_send_it(command: Command) -> None:
    said = words(command(*CREATE, "--scopes", "admin"))
    assert "shown this once" in said
    assert "Authorization: Bearer KEY" in said


def test_revoking_takes_the_first_characters_and_may_be_repeated(command: Command) -> None:
    made = answer(command, *CREATE)
    first = answer(command, "keys", "revoke", made["prefix"][:12])
    again = answer(command, "keys", "revoke", made["prefix"])
    assert first["revoked_at"] == again["revoked_at"]
    assert "revoked" in command("keys", "list", "--tenant", "default")


@pytest.mark.parametrize(
    "wrong",
    [
        ("keys", "create", "--tenant", "nowhere", "--user", "alice"),
        (*CREATE, "--scopes", "root"),
        ("keys", "revoke", "mcpmem_"),
        ("keys", "revoke", "mcpmem_%"),
        ("keys", "list", "--tenant", "nowhere"),
    ],
    ids=" ".join,
)
def test_what_there_is_not_is_said(command: Command, wrong: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, wrong)
    assert isinstance(done.exception, MemoryFault)
