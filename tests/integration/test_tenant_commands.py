"""`mcp-memory tenants create | list | suspend | resume`."""

import asyncio
from collections.abc import Iterator

import psycopg
import pytest
from typer.testing import CliRunner

from mcp_server.cli import app
from memory_core.kernel.errors import ErrorCode, MemoryFault
from memory_core.kernel.settings import Settings
from tests.access_server import AccessServer
from tests.integration.commands import Command, answer, words
from tests.tool_client import ToolClient

DEFAULT_ID = "00000000-0000-0000-0000-000000000000"


@pytest.fixture(scope="module")
def server(services: Settings) -> Iterator[AccessServer]:
    with AccessServer(services, auth="keys") as server:
        yield server


async def run(command: Command, *arguments: str) -> dict[str, object]:
    """Commands have an event loop of their own: here in another thread than the test's."""
    return await asyncio.to_thread(answer, command, *arguments)


async def key_of(command: Command, tenant: str) -> str:
    made = await run(command, "keys", "create", "--tenant", tenant, "--user", "alice")
    return str(made["key"])


async def stored(tools: ToolClient, word: str) -> str:
    answered = await tools(
        "artifact_ingest",
        artifact_type="note",
        source_system="notes",
        source_id="plan",
        content=f"The {word} was decided on by Alice.",
        visibility_scope="org",
    )
    return str(answered["artifact_uid"])


async def answers_soon(server: AccessServer, key: str, status: int) -> None:
    """Until the server answers so; the test's own time is the limit."""
    while server.ask("/nothing-here", key).status_code != status:
        await asyncio.sleep(0.02)


async def test_the_documents_of_a_new_tenant_are_apart(
    command: Command, server: AccessServer
) -> None:
    await run(command, "tenants", "create", "acme")
    key, default_key = await key_of(command, "acme"), await key_of(command, "default")

    async with server.client(key) as acme, server.client(default_key) as default:
        of_acme, of_default = await stored(acme, "quill"), await stored(default, "otter")

        assert of_acme != of_default
        assert "quill" in (await acme("artifact_get", artifact_uid=of_acme))["content"]
        for tools, foreign in ((acme, of_default), (default, of_acme)):
            refused = await tools.refusal("artifact_get", artifact_uid=foreign)
            assert refused["error_code"] == "NOT_FOUND"
            results = (await tools("hybrid_search", query="decided Alice", limit=50))["results"]
            own = {of_acme, of_default} - {foreign}
            assert {hit["artifact_uid"] for hit in results} == own


async def test_a_suspended_tenant_is_refused_until_it_is_resumed(
    command: Command, server: AccessServer
) -> None:
    await run(command, "tenants", "create", "acme")
    key, default_key = await key_of(command, "acme"), await key_of(command, "default")
    async with server.client(key) as tools:
        uid = await stored(tools, "quill")

    suspended = await run(command, "tenants", "suspend", "acme")
    await answers_soon(server, key, 401)
    assert suspended["status"] == "suspended"
    assert server.ask("/nothing-here", default_key).status_code == 404

    resumed = await run(command, "tenants", "resume", "acme")
    await answers_soon(server, key, 404)
    assert resumed["status"] == "active"
    async with server.client(key) as tools:
        assert "quill" in (await tools("artifact_get", artifact_uid=uid))["content"]


def test_the_list_has_their_status_and_the_number_of_their_keys(command: Command) -> None:
    made = answer(command, "tenants", "create", "acme")
    answer(command, "keys", "create", "--tenant", "acme", "--user", "alice")
    gone = answer(command, "keys", "create", "--tenant", "acme", "--user", "bob")
    answer(command, "keys", "revoke", gone["prefix"])
    command("tenants", "suspend", "acme")

    listed = answer(command, "tenants", "list")["tenants"]
    shown = words(command("tenants", "list"))

    assert [(one["name"], one["status"], one["keys"]) for one in listed] == [
        ("default", "active", 0),
        ("acme", "suspended", 1),
    ]
    assert listed[1]["tenant_id"] == made["tenant_id"]
    assert "acme suspended 1" in shown


def test_each_change_is_in_the_log_once_and_of_that_tenant(
    command: Command, sql: psycopg.Connection
) -> None:
    made = answer(command, "tenants", "create", "acme")
    for name in ("suspend", "suspend", "resume", "resume", "suspend"):
        command("tenants", name, made["tenant_id"])

    rows = sql.execute(
        "SELECT event_type, tenant_id::text, payload FROM log.events ORDER BY sequence_number"
    ).fetchall()

    verbs = ("created", "suspended", "resumed", "suspended")
    own = made["tenant_id"]
    assert rows == [(f"tenant.{name}", own, {"tenant_id": own}) for name in verbs]
    assert '"status": "suspended"' in command("log", "state", f"tenant:{own}")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("create", "default"), ErrorCode.CONFLICT, "tenant 'default' already"),
        (("create", "Acme"), ErrorCode.VALIDATION_ERROR, "a-z, 0-9 or a hyphen"),
        (("create", "--", "-acme"), ErrorCode.VALIDATION_ERROR, "The first is no hyphen"),
        (("create", "acme\n"), ErrorCode.VALIDATION_ERROR, "1 to 63"),
        (("create", "a" * 64), ErrorCode.VALIDATION_ERROR, "1 to 63"),
        (("create", DEFAULT_ID), ErrorCode.VALIDATION_ERROR, "look like an id"),
        (("suspend", "nowhere"), ErrorCode.NOT_FOUND, "no tenant 'nowhere'"),
        (("resume", "nowhere"), ErrorCode.NOT_FOUND, "no tenant 'nowhere'"),
        (("suspend", "default"), ErrorCode.VALIDATION_ERROR, "cannot be suspended"),
        (("suspend", DEFAULT_ID), ErrorCode.VALIDATION_ERROR, "cannot be suspended"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(
    command: Command,
    sql: psycopg.Connection,
    arguments: tuple[str, ...],
    code: ErrorCode,
    said: str,
) -> None:
    done = CliRunner().invoke(app, ("tenants", *arguments))

    assert isinstance(done.exception, MemoryFault)
    assert (done.exception.code, said in done.exception.message) == (code, True)
    assert sql.execute("SELECT name, status FROM tenant").fetchall() == [("default", "active")]
    assert sql.execute("SELECT count(*) FROM log.events").fetchall() == [(0,)]
