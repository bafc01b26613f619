"""No text that a client sends is in the audit, the log or the traces, in whatever parameter."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from mcp import Client
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError

from memory_core.kernel.settings import Settings
from tests.otlp_collector import Collector
from tests.serving import stdio

CANARY = f"canary{uuid4().hex}nest"
# For required parameters, where the canary is in another one.
VALID: dict[str, Any] = {"string": "2026-03-01", "integer": 1, "number": 0.5, "boolean": True}


def carrying(schema: dict[str, Any]) -> list[Any]:
    """The canary in the form that a parameter takes, and in forms that it does not."""
    if schema["type"] == "array":
        return [[CANARY], CANARY]
    if schema["type"] == "object":
        return [{CANARY: CANARY}]
    return [CANARY, f"uid_{CANARY}", f"evt_{CANARY}", [CANARY], {CANARY: CANARY}]


def valid(schema: dict[str, Any]) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    return [] if schema["type"] == "array" else VALID.get(schema["type"], {})


def calls(tool: Any) -> Iterator[dict[str, Any]]:
    properties = tool.input_schema["properties"]
    base = {name: valid(properties[name]) for name in tool.input_schema.get("required", [])}
    for name, schema in properties.items():
        for value in carrying(schema):
            yield {**base, name: value}
    everything = {
        name: CANARY if schema["type"] == "string" and "enum" not in schema else valid(schema)
        for name, schema in properties.items()
    }
    yield everything
    yield {**base, CANARY: CANARY}


async def send_everywhere(client: Client) -> int:
    sent = 0
    for tool in (await client.list_tools()).tools:
        for arguments in calls(tool):
            await client.call_tool(tool.name, arguments)
            sent += 1
    note = {"artifact_type": "note", "source_system": "notes"}
    text = f"Decision: {CANARY} launches in May."
    for metadata in ({"content": text, "title": CANARY}, {"content": text, "author": CANARY}):
        answer = await client.call_tool("artifact_ingest", {**note, **metadata})
        assert not answer.is_error, answer.content
        sent += 1
    await client.call_tool(CANARY, {CANARY: CANARY})
    for address in (f"memory://artifact/{CANARY}", f"memory://{CANARY}/x", f"{CANARY}://x"):
        with pytest.raises(MCPError):
            await client.read_resource(address)
    for prompt in (await client.list_prompts()).prompts:
        given = {argument.name: CANARY for argument in prompt.arguments or ()}
        await client.get_prompt(prompt.name, given)
    return sent


async def test_a_text_in_any_parameter_of_any_tool_leaves_no_trace(
    settings: Settings, tmp_path: Path, sql: psycopg.Connection
) -> None:
    log = tmp_path / "stderr"
    with Collector() as collector, log.open("w") as stderr:
        chosen = {
            "otel_exporter_otlp_endpoint": collector.endpoint,
            "toolsets": "core,events,admin",
            "ingest_roots": str(tmp_path),
            "index_wait_ms": 0,
        }
        server = stdio(settings.model_copy(update=chosen))
        async with Client(stdio_client(server, errlog=stderr)) as client:
            sent = await send_everywhere(client)
        collector.wait_for("tool artifact_ingest")
        traced = b"".join(collector.bodies)
    rows = sql.execute("SELECT to_jsonb(c) FROM tool_calls c WHERE transport = 'stdio'").fetchall()
    by_kind = [row[0]["kind"] for row in rows]
    assert by_kind.count("tool") == sent + 1
    assert {"resource", "prompt"} <= set(by_kind)
    assert CANARY not in json.dumps(rows)
    assert "tool=artifact_ingest" in log.read_text()
    assert CANARY not in log.read_text()
    assert b"artifact_ingest" in traced
    assert CANARY.encode() not in traced
