"""`mcp-memory keys create | list | revoke`."""

import psycopg
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


def test_each_change_of_a_key_is_in_the_log_of_its_tenant_once(
    command: Command, sql: psycopg.Connection
) -> None:
    tenant = answer(command, "tenants", "create", "acme")
    made = answer(command, "keys", "create", "--tenant", "acme", "--user", "alice")
    for _ in range(2):
        command("keys", "revoke", made["prefix"])

    rows = sql.execute(
        "SELECT event_type, tenant_id::text, payload FROM log.events "
        "WHERE aggregate_type = 'key' ORDER BY sequence_number"
    ).fetchall()

    payload = {"prefix": made["prefix"]}
    assert rows == [
        (f"key.{name}", tenant["tenant_id"], payload) for name in ("created", "revoked")
    ]
    assert '"status": "revoked"' in command("log", "state", f"key:{made['prefix']}")
