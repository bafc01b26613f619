"""`mcp-memory backfill plan` as a person reads it."""

import asyncio

import psycopg
import pytest

from memory_core.runtime import Runtime
from tests.integration import demo_corpus
from tests.integration.commands import Command, answer, words
from tests.integration.planted_events import ingest
from tests.tool_client import Json, ToolClient


@pytest.fixture
async def extracted(tools: ToolClient, runtime: Runtime) -> Json:
    stored = await ingest(tools, "Decision: we launch in May.", source_id="note")
    await demo_corpus.extract_pending(runtime)
    return stored


@pytest.mark.usefixtures("extracted")
def test_nothing_is_outdated(command: Command) -> None:
    text = words(command("backfill", "plan"))

    assert text.startswith("Nothing is outdated. Events are made with rules, version ")
    assert "rules rules" not in text


async def test_what_an_older_version_made_is_counted_in_plain_words(
    command: Command, extracted: Json, sql: psycopg.Connection
) -> None:
    sql.execute("UPDATE extraction SET extract_version = '0-rules'")

    text = words(await asyncio.to_thread(command, "backfill", "plan"))

    assert "Extracting again with rules, version " in text
    assert "revisions to extract 1 (1 of them latest)" in text
    assert "0 (0 sent, 0 received)" in text
    assert "rules, version 0-rules 1" in text
    which = ("--document", extracted["artifact_uid"][:10])
    assert (await asyncio.to_thread(answer, command, "backfill", "plan", *which))["revisions"] == 1
