"""`mcp-memory tenants delete`: what was a tenant's is nowhere, what is another's stays."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner

from mcp_server.cli import app
from memory_core.kernel.database import Session
from memory_core.kernel.errors import InvalidInput, NotFound
from memory_core.kernel.orchestrator import NoOrchestrator
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from memory_core.upkeep import tenant_deletion
from memory_core.webhooks import subscriptions
from tests.access_server import AccessServer
from tests.indexing import caught_up
from tests.isolation.asking import Asking
from tests.isolation.filling import Filled
from tests.isolation.principals import LOCAL, NAMESAKE, TENANTS
from tests.isolation.tool_oracles import ORACLES
from tests.isolation.world import World
from tests.patience import PATIENCE

GONE = "acme"
READING = sorted(
    name for name in ORACLES
    if not name.endswith(("ingest", "delete", "store", "append", "cancel", "reextract"))
)  # fmt: skip


@pytest.fixture(scope="module")
def server(services: Settings) -> Iterator[AccessServer]:
    options = {"auth": "keys", "rate_calls_per_minute": 0, "rate_tenant_calls_per_minute": 0}
    with AccessServer(services, **options) as server:
        yield server


@pytest.fixture
async def filled(
    runtime: Runtime, server: AccessServer, sql: psycopg.Connection[Any]
) -> AsyncIterator[Filled]:
    async with AsyncExitStack() as stack:
        filled = Filled(World(random.Random(5)), runtime, server, sql)
        await filled.begin(stack)
        await filled.fill()
        async with runtime.database.transaction() as session:
            await subscriptions.add(session, "https://kept.example/", ["artifact.created"])
        yield filled


def rows_with(sql: psycopg.Connection[Any], pattern: str) -> dict[str, list[str]]:
    """The tables that have one of these words, and what stands there."""
    tables = sql.execute(
        "SELECT schemaname || '.' || quote_ident(tablename) FROM pg_tables "
        "WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
    ).fetchall()
    by_table = {}
    for (table,) in tables:
        query = f"SELECT t::text FROM {table} t WHERE t::text ~* %s LIMIT 3"
        if rows := sql.execute(query, [pattern]).fetchall():
            by_table[table] = [row[0][:300] for row in rows]
    return by_table


def words_of(filled: Filled, tenant: str) -> str:
    """Of its texts; its name; and its users that no other tenant speaks of."""
    own = [item for item in filled.world.items if item.owner.tenant == tenant]
    words = {word for item in own for word in item.words}
    names = {tenant, *(item.owner.user for item in own)}
    for item in filled.world.items:
        if item.owner.tenant != tenant:
            names -= {item.owner.user, *(one.removeprefix("user:") for one in item.listed)}
    assert names == {"acme", "carol"}
    return "|".join(sorted(words | {rf"\m{name}\M" for name in names}))


async def delete(filled: Filled) -> None:
    runtime = filled.runtime
    await tenant_deletion.delete(runtime.database, runtime.orchestrator, GONE)
    await caught_up(runtime)


async def test_nothing_of_the_tenant_is_left_and_all_of_the_others(filled: Filled) -> None:
    pattern = words_of(filled, GONE)
    assert len(rows_with(filled.sql, pattern)) > 10
    collections = await filled.runtime.vectors.labels()
    assert any(TENANTS[GONE].hex in name for name in collections)

    await delete(filled)

    assert rows_with(filled.sql, pattern) == {}
    # The worker drops them when it comes to the end of the tenant in the log.
    async with asyncio.timeout(PATIENCE):
        while any(TENANTS[GONE].hex in name for name in await filled.runtime.vectors.labels()):
            await asyncio.sleep(0.02)
    for who in (NAMESAKE, LOCAL):
        for name in READING:
            await ORACLES[name](Asking(filled, who, random.Random(name)))
    assert "kept.example" in str(rows_with(filled.sql, "kept.example"))


async def test_its_keys_are_refused_and_its_end_is_in_the_log(filled: Filled) -> None:
    key = next(key for who, key in filled.keys.items() if who.tenant == GONE)

    await delete(filled)

    while filled.server.ask("/nothing-here", key).status_code != 401:
        await asyncio.sleep(0.02)
    kinds = filled.sql.execute(
        "SELECT event_type, payload FROM log.events WHERE aggregate_type = 'tenant'"
    ).fetchall()
    assert kinds == [("tenant.deleted", {"tenant_id": str(TENANTS[GONE])})]


class Interrupted(NoOrchestrator):
    """The process ends with the third document."""

    def __init__(self) -> None:
        self.documents = 0

    async def forget(self, session: Session, artifact_uid: str) -> int:
        self.documents += 1
        if self.documents == 3:
            raise SystemExit
        return await super().forget(session, artifact_uid)


async def test_a_deletion_that_was_interrupted_goes_on(filled: Filled) -> None:
    pattern, database = words_of(filled, GONE), filled.runtime.database
    with pytest.raises(SystemExit):
        await tenant_deletion.delete(database, Interrupted(), GONE)
    _, left = await tenant_deletion.preview(database, GONE)
    assert left.documents == 13
    status = filled.sql.execute("SELECT status FROM tenant WHERE name = %s", [GONE]).fetchone()
    assert status == ("deleting",)

    await delete(filled)

    assert rows_with(filled.sql, pattern) == {}


async def test_a_preview_counts_and_changes_nothing(filled: Filled) -> None:
    _, counts = await tenant_deletion.preview(filled.runtime.database, GONE)

    world = filled.world
    documents = [one for one in world.documents() if one.owner.tenant == GONE]
    assert counts.documents == len(documents)
    assert counts.revisions == sum(len(one.contents) for one in documents)
    assert counts.events == sum(e.document.owner.tenant == GONE for e in world.events.values())
    assert (counts.memories, counts.conversations, counts.keys) == (6, 6, 3)
    again = await tenant_deletion.preview(filled.runtime.database, GONE)
    assert again[1] == counts


@pytest.mark.parametrize(("name", "fault"), [("default", InvalidInput), ("nowhere", NotFound)])
async def test_some_cannot_be_deleted(runtime: Runtime, name: str, fault: type[Exception]) -> None:
    with pytest.raises(fault):
        await tenant_deletion.delete(runtime.database, runtime.orchestrator, name)


def test_the_command_asks_first(command: Any, sql: psycopg.Connection[Any]) -> None:
    command("tenants", "create", GONE)
    refused = CliRunner().invoke(app, ["tenants", "delete", GONE], input="n\n")
    would = command("tenants", "delete", GONE, "--dry-run")
    there = sql.execute("SELECT status FROM tenant WHERE name = %s", [GONE]).fetchone()
    done = command("tenants", "delete", GONE, "--yes")

    assert (refused.exit_code, there) == (1, ("active",))
    assert "nothing was changed" in would
    assert "The tenant acme is deleted" in done
    assert sql.execute("SELECT count(*) FROM tenant WHERE name = %s", [GONE]).fetchone() == (0,)
