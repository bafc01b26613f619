"""What `mcp-memory up` says once everything is ready."""

import asyncio
from io import StringIO

import psycopg
import pytest
from rich.console import Console

from mcp_server.cli.up import Terminal
from memory_core.kernel.settings import Settings
from stack.services import StackPlan
from stack.stack_state import StackState
from tests.integration.planted_events import ingest
from tests.tool_client import ToolClient


async def said_when_ready(settings: Settings) -> str:
    out = StringIO()
    plan = StackPlan(settings=settings, state=StackState(pid=1, mode="full"), children=())
    before = asyncio.all_tasks()
    Terminal(Console(file=out, width=200)).ready(plan)
    await asyncio.gather(*(asyncio.all_tasks() - before))
    return out.getvalue()


@pytest.mark.parametrize("failed", [True, False])
async def test_failed_jobs_are_told_in_one_line(
    tools: ToolClient, settings: Settings, sql: psycopg.Connection, failed: bool
) -> None:
    for name in ("one", "two"):
        await ingest(tools, f"Note {name}.", source_id=name)
    if failed:
        sql.execute(
            "UPDATE event_jobs SET status = 'FAILED', last_error_code = 'OPENAI_AUTH_ERROR'"
        )

    said = await said_when_ready(settings)

    warning = "! Extraction failed for 2 documents: 2 with OPENAI_AUTH_ERROR. `mcp-memory doctor`"
    assert (warning in said) == failed


async def test_the_command_to_connect_names_the_memory_that_runs(settings: Settings) -> None:
    said = " ".join((await said_when_ready(settings)).split())

    assert f"run `DATA_DIR={settings.data_dir} " in said
    assert "mcp-memory connect claude` (or cursor, vscode)" in said
