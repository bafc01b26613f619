"""The texts that searches of the tests go over."""

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest

from memory_core.runtime import Runtime
from tests.conftest import IndexHost
from tests.tool_client import Json, ToolClient

DEMO = Path(__file__).resolve().parents[2] / "demo"
MANIFEST: list[Json] = json.loads((DEMO / "manifest.json").read_text(encoding="utf-8"))
DOCUMENTS = len({document["source_id"] for document in MANIFEST})


@pytest.fixture
async def corpus(
    _session_client: ToolClient,
    _session_runtime: Runtime,
    sql: psycopg.Connection,
    index_host: IndexHost,
) -> ToolClient:
    """Every tool, over the shipped sample. Tests that use it only read."""
    tools = _session_client
    held = sql.execute("SELECT count(DISTINCT artifact_uid) FROM artifact_revision").fetchone()
    if held != (DOCUMENTS,) or not index_host.serves(_session_runtime):
        # A reader of ours would keep the tables, and could not let go of them while we wait.
        await index_host.stop()
        sql.execute("TRUNCATE artifact_revision, event_jobs, memory CASCADE")
        await index_host.serve(_session_runtime)
        for document in MANIFEST:
            content = (DEMO / document["file"]).read_bytes().decode()
            fields = {name: value for name, value in document.items() if name != "file"}
            await tools("artifact_ingest", content=content, **fields)
    return tools


async def note(tools: ToolClient, content: str, **changes: Any) -> Json:
    document = {
        "artifact_type": "note",
        "source_system": "notes",
        "source_id": "otters",
        "content": content,
    }
    return await tools("artifact_ingest", **{**document, **changes})


async def found_texts(tools: ToolClient, query: str) -> list[str]:
    return [hit["text"] for hit in (await tools("hybrid_search", query=query, limit=50))["results"]]
