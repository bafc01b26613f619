"""Every call is in tool_calls: who asked what, in which trace, how it ended; never a text."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from mcp import Client
from mcp.client.stdio import stdio_client
from psycopg.rows import dict_row

from mcp_server.server import build_server
from memory_core.kernel import migrations
from memory_core.kernel.database import Database
from memory_core.kernel.errors import PostgresUnavailable
from memory_core.kernel.principal import Principal, asking
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from memory_core.telemetry.audit import Audit, AuditedCall
from memory_core.telemetry.audit_partitions import keep_audit
from tests.serving import HttpServer, stdio
from tests.tool_client import ToolClient, in_one_task

Rows = Callable[[], list[dict[str, Any]]]
SECRET = "The merger with Brightwater is off"
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture
def rows(settings: Settings) -> Rows:
    """What the audit holds of this test, in the order of the calls. Servers that live on from test
    to test may still be writing calls of the last one."""
    since = datetime.now(UTC)

    def look() -> list[dict[str, Any]]:
        with psycopg.connect(settings.dsn, row_factory=dict_row) as connection:
            cursor = connection.execute(
                "SELECT * FROM tool_calls WHERE created_at >= %s ORDER BY created_at", [since]
            ).fetchall()
        assert SECRET not in json.dumps(cursor, default=str)
        return cursor

    return look


@pytest.fixture
async def served(settings: Settings, runtime: Runtime) -> AsyncIterator[ToolClient]:
    """A server over the stores of the test; `runtime.audit.close()` has everything written."""
    async with in_one_task(Client(build_server(settings, runtime=runtime))) as client:
        yield ToolClient(client)


async def test_a_call_is_recorded_with_asker_trace_parameters_and_answer(
    served: ToolClient, runtime: Runtime, rows: Rows
) -> None:
    note = {"artifact_type": "note", "source_system": "notes", "title": SECRET}
    stored = await served("artifact_ingest", **note, content=SECRET)
    await runtime.audit.close()

    [row] = rows()
    assert (row["kind"], row["transport"], row["tool_name"]) == ("tool", "http", "artifact_ingest")
    assert (row["principal"], row["tenant_id"]) == ("local", UUID(int=0))
    assert row["error"] is None
    assert row["task_id"] == UUID(stored["job_id"])
    assert row["parameters"]["artifact_type"] == "note"
    assert row["parameters"]["content"]["chars"] == len(SECRET)
    assert row["result"]["artifact_uid"] == stored["artifact_uid"]
    assert len(row["trace_id"]) == 32
    assert row["latency_ms"] >= 0
    assert row["completed_at"] > row["created_at"]


async def test_the_change_in_the_log_has_the_same_trace(
    served: ToolClient, runtime: Runtime, rows: Rows, sql: psycopg.Connection
) -> None:
    await served("memory_store", content=SECRET, type="fact", confidence=1.0)
    await runtime.audit.close()
    [row] = rows()
    changes = sql.execute("SELECT trace_id, span_id FROM log.events").fetchall()
    assert changes == [(row["trace_id"], row["span_id"])]


async def test_a_refused_call_is_recorded_with_its_code(
    served: ToolClient, runtime: Runtime, rows: Rows
) -> None:
    await served.refusal("event_search", query=SECRET, colour=SECRET)
    await served.refusal("artifact_get", artifact_uid=SECRET)
    await served.refusal(SECRET)
    await runtime.audit.close()
    assert [(row["tool_name"], row["error"]) for row in rows()] == [
        ("event_search", "VALIDATION_ERROR"),
        ("artifact_get", "NOT_FOUND"),
        ("?", "NOT_FOUND"),
    ]


async def test_resources_and_prompts_are_recorded(
    served: ToolClient, runtime: Runtime, rows: Rows
) -> None:
    note = {"artifact_type": "note", "source_system": "notes", "content": SECRET}
    uid = (await served("artifact_ingest", **note))["artifact_uid"]
    await served.client.read_resource(f"memory://artifact/{uid}")
    with pytest.raises(Exception, match="no artifact"):
        await served.client.read_resource("memory://artifact/uid_0")
    await served.client.get_prompt("decisions_about", {"topic": SECRET})
    await runtime.audit.close()
    assert [(row["kind"], row["tool_name"], row["error"]) for row in rows()[1:]] == [
        ("resource", "memory://artifact", None),
        ("resource", "memory://artifact", "NOT_FOUND"),
        ("prompt", "decisions_about", None),
    ]
    assert rows()[1]["parameters"] == {"artifact_uid": uid}


async def test_a_client_that_names_its_span_is_the_parent(
    served: ToolClient, runtime: Runtime, rows: Rows
) -> None:
    meta = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
    await served.client.call_tool("memory_list", {}, meta=meta)
    await runtime.audit.close()
    [row] = rows()
    assert (row["trace_id"], row["parent_span_id"]) == (TRACE, SPAN)


async def test_the_principal_of_a_call_is_the_one_who_asks(
    settings: Settings, runtime: Runtime, rows: Rows
) -> None:
    tenant = uuid4()
    with asking(Principal(tenant_id=tenant, user="alice")):
        async with Client(build_server(settings, runtime=runtime)) as client:
            await ToolClient(client)("embedding_health")
    await runtime.audit.close()
    [row] = rows()
    assert (row["principal"], row["tenant_id"]) == ("alice", tenant)


async def test_of_a_deleted_document_ids_and_lengths_stay_and_hashes_go(
    served: ToolClient, runtime: Runtime, rows: Rows
) -> None:
    note = {"artifact_type": "note", "source_system": "notes", "title": SECRET}
    stored = await served("artifact_ingest", **note, content=SECRET)
    await served("event_search", query=SECRET, artifact_uid=stored["artifact_uid"])
    await served("hybrid_search", query="another question")
    await runtime.audit.close()
    await served("artifact_delete", artifact_uid=stored["artifact_uid"])
    await runtime.audit.close()
    ingest, search, other, _ = rows()
    assert ingest["parameters"]["content"] == {"chars": len(SECRET)}
    assert search["parameters"]["query"] == {"chars": len(SECRET)}
    assert set(other["parameters"]["query"]) == {"chars", "sha256"}
    assert ingest["result"]["artifact_uid"] == stored["artifact_uid"]


# --- the writer ------------------------------------------------------------------------------


def call(name: str = "memory_list") -> AuditedCall:
    now = datetime.now(UTC)
    return AuditedCall(
        kind="tool",
        transport="http",
        tool_name=name,
        tenant_id=UUID(int=0),
        principal="local",
        trace_id=TRACE,
        span_id=SPAN,
        parent_span_id=None,
        parameters={},
        result=None,
        error=None,
        created_at=now,
        completed_at=now,
        latency_ms=0,
    )


async def test_calls_are_written_in_order_and_batches(runtime: Runtime, rows: Rows) -> None:
    audit = Audit(lambda: runtime.database)
    for number in range(1200):
        audit.record(call(f"tool_{number:04}"))
    await audit.close()
    assert [row["tool_name"] for row in rows()] == [f"tool_{n:04}" for n in range(1200)]
    assert (audit.written, audit.waiting, audit.dropped) == (1200, 0, 0)


async def test_without_postgres_calls_beyond_the_limit_are_dropped_and_counted(
    runtime: Runtime, rows: Rows
) -> None:
    away = True
    audit = Audit(lambda: None if away else runtime.database, capacity=10, write_seconds=0.01)
    for _ in range(15):
        audit.record(call())
    assert (audit.waiting, audit.dropped) == (10, 5)
    away = False
    while audit.waiting:
        await asyncio.sleep(0.01)
    assert len(rows()) == 10


async def test_calls_wait_while_postgres_does_not_answer(
    settings: Settings, runtime: Runtime, rows: Rows
) -> None:
    database = Database(settings.dsn)  # not open: as unavailable as a server that is away
    audit = Audit(lambda: database, write_seconds=0.01)
    for number in range(3):
        audit.record(call(f"tool_{number}"))
    with pytest.raises(PostgresUnavailable):
        async with database.session():
            pass
    await asyncio.sleep(0.05)
    assert (audit.waiting, audit.dropped) == (3, 0)
    database = runtime.database
    while audit.waiting:
        await asyncio.sleep(0.01)
    assert [row["tool_name"] for row in rows()] == ["tool_0", "tool_1", "tool_2"]


async def test_what_postgres_refuses_does_not_hold_up_the_rest(
    runtime: Runtime, rows: Rows
) -> None:
    audit = Audit(lambda: runtime.database, write_seconds=0.01)
    audit.record(call("x" * 300))
    while audit.waiting:
        await asyncio.sleep(0.01)
    audit.record(call("fits"))
    await audit.close()
    assert [row["tool_name"] for row in rows()] == ["fits"]
    assert audit.dropped == 1


async def test_audit_days_of_0_records_nothing(settings: Settings, rows: Rows) -> None:
    off = settings.model_copy(update={"audit_days": 0})
    async with Client(build_server(off)) as client:
        await ToolClient(client)("memory_list")
    assert rows() == []


# --- processes -------------------------------------------------------------------------------


async def test_a_server_that_is_stopped_has_written_every_call(
    settings: Settings, tmp_path: Path, rows: Rows
) -> None:
    with HttpServer(settings, tmp_path / "log") as server:
        async with Client(f"{server.url}/mcp") as client:
            for _ in range(20):
                await ToolClient(client)("memory_search", query=SECRET)
    calls = rows()
    assert [row["transport"] for row in calls] == ["http"] * 20


async def test_a_stdio_server_whose_client_leaves_has_written_every_call(
    settings: Settings, rows: Rows
) -> None:
    async with Client(stdio_client(stdio(settings))) as client:
        for _ in range(5):
            await ToolClient(client)("memory_list")
    assert [row["transport"] for row in rows()] == ["stdio"] * 5


async def test_a_killed_server_loses_at_most_the_last_second(
    settings: Settings, tmp_path: Path, rows: Rows
) -> None:
    """The first call is older than a second when the last one is answered."""
    with HttpServer(settings, tmp_path / "log") as server:
        async with Client(f"{server.url}/mcp") as client:
            tools = ToolClient(client)
            await tools("memory_search", query="first")
            begun = asyncio.get_running_loop().time()
            while asyncio.get_running_loop().time() < begun + 1.0:
                await tools("memory_list")
            server.send_signal(signal.SIGKILL)
    assert rows()[0]["tool_name"] == "memory_search"


def test_a_command_is_recorded_with_the_tools_it_asks(settings: Settings, rows: Rows) -> None:
    subprocess.run(
        [sys.executable, "-m", "mcp_server.cli", "search", SECRET, "--json"],
        env=settings.environment() | {"PATH": "/usr/bin"},
        check=True,
        capture_output=True,
    )
    by_kind = {row["kind"]: row for row in rows()}
    command, tool = by_kind["command"], by_kind["tool"]
    assert command["tool_name"] == "mcp-memory search"
    assert command["parameters"] == {"options": ["--json"], "words": 2}
    assert tool["transport"] == "command"
    assert tool["trace_id"] == command["trace_id"]
    assert tool["parent_span_id"] == command["span_id"]


# --- the table ---------------------------------------------------------------------------------


def test_the_table_has_the_columns_and_indexes_of_its_specification(
    sql: psycopg.Connection,
) -> None:
    columns = dict(
        sql.execute(
            "SELECT column_name, format_type(a.atttypid, a.atttypmod) "
            "FROM information_schema.columns c JOIN pg_attribute a "
            "ON a.attrelid = 'tool_calls'::regclass AND a.attname = c.column_name "
            "WHERE c.table_name = 'tool_calls'"
        ).fetchall()
    )
    expected = {
        "id": "uuid",
        "task_id": "uuid",
        "agent_id": "uuid",
        "trace_id": "character varying(32)",
        "span_id": "character varying(16)",
        "parent_span_id": "character varying(16)",
        "tool_name": "character varying(255)",
        "parameters": "jsonb",
        "result": "jsonb",
        "error": "text",
        "tokens_used": "integer",
        "cost_dollars": "numeric(10,6)",
        "latency_ms": "integer",
        "created_at": "timestamp with time zone",
        "completed_at": "timestamp with time zone",
    }
    assert expected.items() <= columns.items()
    indexes = sql.execute("SELECT indexname FROM pg_indexes WHERE tablename = 'tool_calls'")
    names = ("task", "agent", "trace", "tool_name", "errors", "params_gin")
    assert {f"idx_tool_calls_{name}" for name in names} <= {row[0] for row in indexes}


# --- retention -------------------------------------------------------------------------------


async def test_partitions_are_made_ahead_and_dropped_when_all_in_them_is_old(
    own_database: str,
) -> None:
    migrations.apply(own_database)
    database = Database(own_database, unasked="a test looks at what is stored")
    await database.open()
    try:
        later = datetime(datetime.now(UTC).year + 1, 6, 15, tzinfo=UTC)
        kept = await keep_audit(database, 90, later)
        async with database.session() as session:
            partitions = await session.values(str, "old_audit_partitions", before=later)
        assert f"tool_calls_y{later.year}m09" in kept.made
        assert len(kept.dropped) == 4, "those that the migration made"
        assert partitions == [], "nothing that is over is left"
        again = await keep_audit(database, 90, later)
        assert (again.made, again.dropped) == ([], [])
        half = datetime(later.year, 9, 28, tzinfo=UTC)
        assert (await keep_audit(database, 90, half)).dropped == []
    finally:
        await database.close()
