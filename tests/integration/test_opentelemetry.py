"""Spans reach a collector as one tree, and nothing of OpenTelemetry's SDK is loaded without one."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest
from mcp import Client

from memory_core.kernel.settings import Settings
from tests.otlp_collector import Collector
from tests.serving import HttpServer, variables
from tests.tool_client import ToolClient

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SECRET = "The merger with Brightwater is off"


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        yield collector


def sending_to(collector: Collector, settings: Settings) -> Settings:
    return settings.model_copy(update={"otel_exporter_otlp_endpoint": collector.endpoint})


async def test_our_span_is_below_the_sdks_and_that_below_the_clients(
    settings: Settings, tmp_path: Path, collector: Collector, sql: psycopg.Connection
) -> None:
    with HttpServer(sending_to(collector, settings), tmp_path / "log") as server:
        async with Client(f"{server.url}/mcp") as client:
            meta = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
            await client.call_tool("memory_list", {}, meta=meta)
    above = collector.wait_for("tools/call memory_list", TRACE)
    ours = collector.wait_for("tool memory_list", TRACE)
    assert (above.scope, above.parent_id) == ("mcp-python-sdk", SPAN)
    assert (ours.scope, ours.parent_id) == ("mcp-memory", above.span_id)
    query = "SELECT trace_id, span_id, parent_span_id FROM tool_calls WHERE trace_id = %s"
    row = sql.execute(query, [TRACE]).fetchone()
    assert row == (TRACE, ours.span_id, above.span_id)


async def test_a_failed_call_is_a_failed_span_without_its_message(
    settings: Settings, tmp_path: Path, collector: Collector
) -> None:
    with HttpServer(sending_to(collector, settings), tmp_path / "log") as server:
        async with Client(f"{server.url}/mcp") as client:
            await ToolClient(client).refusal("event_search", query=SECRET, colour=SECRET)
            await ToolClient(client).refusal(SECRET)
            with pytest.raises(Exception, match="Brightwater"):
                await client.read_resource(f"memory://artifact/{SECRET}")
    span = collector.wait_for("tool event_search")
    assert (span.error, span.attributes["error.type"]) == (True, "VALIDATION_ERROR")
    collector.wait_for("resource memory://artifact")
    assert not any(b"Brightwater" in body for body in collector.bodies)


async def test_a_header_names_the_parent_where_the_message_does_not(
    settings: Settings, tmp_path: Path, sql: psycopg.Connection
) -> None:
    with HttpServer(settings, tmp_path / "log") as server:
        headers = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
        async with httpx.AsyncClient() as client:
            await client.get(f"{server.url}/health")  # opens the stores
            answer = await client.get(f"{server.url}/changes?types=nonsense", headers=headers)
    assert answer.status_code == 400
    rows = sql.execute(
        "SELECT kind, tool_name, error, trace_id, parent_span_id FROM tool_calls "
        "WHERE kind = 'page'"
    ).fetchall()
    assert rows == [("page", "GET /changes", "HTTP_400", TRACE, SPAN)]


LOADS = """
import asyncio, sys
from mcp import Client
from memory_core.kernel.settings import load_settings
from memory_core.telemetry import span_export
from mcp_server.server import build_server

async def call():
    settings = load_settings()
    span_export.start(settings, "serve")
    async with Client(build_server(settings)) as client:
        assert not (await client.call_tool("memory_list", {})).is_error

asyncio.run(call())
loaded = [name for name in sys.modules
          if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter", "prometheus_client"))]
print(",".join(loaded))
"""


@pytest.mark.parametrize("is_on", [False, True])
def test_the_sdk_is_loaded_only_when_a_collector_is_named(
    settings: Settings, collector: Collector, is_on: bool
) -> None:
    chosen = sending_to(collector, settings) if is_on else settings
    done = subprocess.run(
        [sys.executable, "-c", LOADS],
        env=variables(chosen),
        check=True,
        capture_output=True,
        text=True,
    )
    assert bool(done.stdout.strip()) is is_on, done.stdout
