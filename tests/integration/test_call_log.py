"""One line for every call of a tool: which, about what, how it ended, how long it took."""

import json
import logging
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from mcp_server.server import build_server
from memory_core.kernel.errors import ErrorCode, MemoryFault
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from tests.integration.planted_events import Event, Garden
from tests.patience import PATIENCE
from tests.serving import SERVE, HttpServer, variables
from tests.tool_client import ToolClient

LINE = re.compile(
    r"tool=(?P<tool>\S+) artifact_uid=(?P<uid>\S+) revision_id=(?P<revision>\S+) "
    r"outcome=(?P<outcome>\S+) trace_id=[0-9a-f]{32} ms=\d+\.\d$",
    re.MULTILINE,
)
SECRET = "The merger with Brightwater is off"
Lines = Callable[[], list[tuple[str, str, str, str]]]


def calls_in(text: str) -> list[tuple[str, str, str, str]]:
    return [
        (found["tool"], found["uid"], found["revision"], found["outcome"])
        for found in LINE.finditer(text)
    ]


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Lines:
    """What was logged since the last look, all of it about calls."""
    caplog.set_level(logging.INFO, logger="mcp_server")

    def look() -> list[tuple[str, str, str, str]]:
        messages = [r.getMessage() for r in caplog.records if r.name.startswith("mcp_server")]
        caplog.clear()
        assert SECRET not in "\n".join(messages)
        calls = calls_in("\n".join(messages))
        assert len(calls) == len(messages), messages
        return calls

    return look


async def test_a_call_that_works_is_told_with_its_ids(tools: ToolClient, lines: Lines) -> None:
    note = {"artifact_type": "note", "source_system": "notes", "title": SECRET}
    stored = await tools("artifact_ingest", **note, content=SECRET)
    uid, revision = stored["artifact_uid"], stored["revision_id"]
    await tools("hybrid_search", query=SECRET)
    await tools("artifact_get", artifact_id=stored["artifact_id"])
    await tools("event_search", artifact_uid=uid)
    await tools("job_status", job_id=stored["job_id"])

    assert lines() == [
        ("artifact_ingest", uid, revision, "ok"),
        ("hybrid_search", "-", "-", "ok"),
        ("artifact_get", uid, revision, "ok"),
        ("event_search", uid, "-", "ok"),
        ("job_status", uid, revision, "ok"),
    ]


async def test_an_event_is_told_with_its_document(
    garden: Garden, tools: ToolClient, lines: Lines
) -> None:
    planted = await garden.document(Event(SECRET), source_id="1")
    lines()

    await tools("event_get", event_id=planted.ids[0])

    assert lines() == [("event_get", planted.uid, planted.revision, "ok")]


async def test_a_call_that_fails_is_told_with_its_code(tools: ToolClient, lines: Lines) -> None:
    for tool, arguments in [
        ("artifact_get", {"artifact_uid": "uid_0", "revision_id": "rev_0"}),
        ("event_search", {"category": SECRET}),
        ("event_search", {"query": SECRET, "limit": "many"}),
        ("event_search", {"query": SECRET, "colour": SECRET}),
        ("timeline", {"time_from": SECRET}),
        ("artifact_get", {"artifact_uid": SECRET}),
        ("artifact_get", {"artifact_uid": "uid_0\ntool=forged outcome=ok"}),
        (SECRET, {}),
        ("memory_guess", {"content": SECRET}),
    ]:
        await tools.refusal(tool, **arguments)  # type: ignore[arg-type]

    assert lines() == [
        ("artifact_get", "uid_0", "rev_0", "NOT_FOUND"),
        ("event_search", "-", "-", "VALIDATION_ERROR"),
        ("event_search", "-", "-", "VALIDATION_ERROR"),
        ("event_search", "-", "-", "VALIDATION_ERROR"),
        ("timeline", "-", "-", "VALIDATION_ERROR"),
        ("artifact_get", "-", "-", "NOT_FOUND"),
        ("artifact_get", "-", "-", "NOT_FOUND"),
        ("?", "-", "-", "NOT_FOUND"),
        ("?", "-", "-", "NOT_FOUND"),
    ]


class Broken(Runtime):
    """Stores whose faults repeat what they were given, as a driver's may."""

    fault: Exception = ValueError(f"row contains {SECRET}")

    async def open(self) -> None:
        raise self.fault


async def test_a_fault_of_ours_shows_where_and_never_what(
    services: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="mcp_server")
    async with Client(build_server(services, runtime=Broken(services))) as client:
        error = await ToolClient(client).refusal("memory_list")

    assert error["error_code"] == "INTERNAL_ERROR"
    assert SECRET not in caplog.text
    assert "ValueError" in caplog.text
    assert "in memory_list" in caplog.text, "the frames of the traceback"
    assert calls_in(caplog.text) == [("memory_list", "-", "-", "INTERNAL_ERROR")]


async def test_a_fault_of_others_is_a_warning(
    services: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="mcp_server")
    runtime = Broken(services)
    runtime.fault = MemoryFault("away", code=ErrorCode.CHROMA_CONNECTION_ERROR)
    async with Client(build_server(services, runtime=runtime)) as client:
        await ToolClient(client).refusal("memory_list")

    assert calls_in(caplog.text) == [("memory_list", "-", "-", "CHROMA_CONNECTION_ERROR")]


# --- the processes that serve ----------------------------------------------------------------


async def test_over_http_it_is_in_the_servers_log(settings: Settings, tmp_path: Path) -> None:
    with HttpServer(settings, tmp_path / "log") as server:
        async with Client(f"{server.url}/mcp") as client:
            await ToolClient(client)("memory_search", query=SECRET)
            await ToolClient(client).refusal("memory_search", query=SECRET, limit=0)

    log = (tmp_path / "log").read_text()
    assert calls_in(log) == [
        ("memory_search", "-", "-", "ok"),
        ("memory_search", "-", "-", "VALIDATION_ERROR"),
    ]
    assert SECRET not in log


def test_over_stdio_it_is_on_standard_error(settings: Settings, tmp_path: Path) -> None:
    log = tmp_path / "stderr"
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, *SERVE, "--stdio"],
            env=variables(settings),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
        try:
            start = {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            }
            request(process, "initialize", start)
            request(
                process, "tools/call", {"name": "memory_search", "arguments": {"query": SECRET}}
            )
            request(process, "tools/call", {"name": "memory_delete", "arguments": {}})
        finally:
            process.communicate(timeout=PATIENCE)

    assert calls_in(log.read_text()) == [
        ("memory_search", "-", "-", "ok"),
        ("memory_delete", "-", "-", "VALIDATION_ERROR"),
    ]
    assert SECRET not in log.read_text()


def request(process: "subprocess.Popen[str]", method: str, params: dict[str, Any]) -> None:
    """Asks, and waits for the answer."""
    assert process.stdin is not None
    assert process.stdout is not None
    message = {"jsonrpc": "2.0", "id": method, "method": method, "params": params}
    process.stdin.write(json.dumps(message) + "\n")
    process.stdin.flush()
    while json.loads(process.stdout.readline()).get("id") != method:
        pass
