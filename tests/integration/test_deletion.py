"""artifact_delete: everything that came of a document goes, and nothing else."""

import asyncio
from typing import Any

import psycopg
import pytest

from mcp_server.failures import error_in
from memory_core.index.writer import settle_now
from memory_core.kernel.errors import MemoryFault
from memory_core.runtime import Runtime
from tests.indexing import assert_exact
from tests.indexing import counts as indexed_counts
from tests.tool_client import Json, ToolClient

TABLES = ("artifact_revision", "revision_text", "revision_chunk", "event_jobs", "semantic_event",
          "event_evidence", "extraction_cache")  # fmt: skip
BOATHOUSE = "The otters moved into the boathouse."
LONG = "\n\n".join(f"Paragraph {n}: otters number {n} swam by. " * 6 for n in range(120))


async def note(tools: ToolClient, content: str, source_id: str = "otters") -> Json:
    return await tools(
        "artifact_ingest",
        artifact_type="note",
        source_system="notes",
        source_id=source_id,
        content=content,
    )


def counts(sql: psycopg.Connection) -> dict[str, int]:
    numbers = {}
    for table in TABLES:
        row = sql.execute(f"SELECT count(*) FROM {table}").fetchone()
        assert row is not None
        numbers[table] = int(row[0])
    return numbers


def add_event(sql: psycopg.Connection, document: Json, content: str, quotes: int) -> str:
    """An event of that revision as the pipeline stores it, with this many pieces of evidence."""
    row = sql.execute(
        "INSERT INTO semantic_event (artifact_uid, revision_id, category, narrative, subject_json, "
        "actors_json, confidence, extraction_run_id) "
        "VALUES (%s, %s, 'Decision', 'Otters stay.', '{}', '[]', 0.9, %s) RETURNING event_id::text",
        [document["artifact_uid"], document["revision_id"], document["job_id"]],
    ).fetchone()
    assert row is not None
    for number in range(quotes):
        sql.execute(
            "INSERT INTO event_evidence "
            "(event_id, artifact_uid, revision_id, start_char, end_char, quote) "
            "VALUES (%s, %s, %s, %s, %s, %s)",
            [
                row[0],
                document["artifact_uid"],
                document["revision_id"],
                number,
                number + 1,
                content[number],
            ],
        )
    return str(row[0])


def cache_answers(sql: psycopg.Connection) -> None:
    """One cached extraction per distinct passage of what is stored now."""
    sql.execute(
        "INSERT INTO extraction_cache (chunk_hash, context_hash, prompt_version, model, answer) "
        "SELECT DISTINCT content_hash, 'context', '1', 'rules', '{}'::jsonb FROM revision_chunk "
        "ON CONFLICT DO NOTHING"
    )


async def test_everything_goes_and_the_counts_say_so(
    tools: ToolClient, runtime: Runtime, sql: psycopg.Connection
) -> None:
    long = await note(tools, LONG)
    short = await note(tools, BOATHOUSE)
    add_event(sql, long, LONG, quotes=2)
    add_event(sql, short, BOATHOUSE, quotes=1)
    await settle_now(runtime, [short["artifact_uid"]])
    cache_answers(sql)
    passages = counts(sql)["revision_chunk"]

    deleted = await tools("artifact_delete", artifact_uid=short["artifact_uid"])

    assert deleted == {
        "artifact_uid": short["artifact_uid"],
        "revisions": 2,
        "chunks": passages,
        "vectors": 2,
        "events": 2,
        "evidence": 3,
        "jobs": 2,
        "cache_entries": passages,
        "lineage_entries": 0,
        "indexed": True,
    }
    assert counts(sql) == dict.fromkeys(TABLES, 0)
    assert set((await indexed_counts(runtime)).values()) == {0}


async def test_nothing_of_it_is_found_by_any_tool(tools: ToolClient) -> None:
    stored = await note(tools, LONG)
    uid, artifact = stored["artifact_uid"], stored["artifact_id"]

    await tools("artifact_delete", artifact_id=artifact)

    for tool, arguments in (
        ("artifact_get", {"artifact_uid": uid}),
        ("artifact_get", {"artifact_id": artifact}),
        ("artifact_get", {"artifact_uid": uid, "revision_id": stored["revision_id"]}),
        ("artifact_history", {"artifact_uid": uid}),
        ("artifact_delete", {"artifact_uid": uid}),
        ("artifact_delete", {"artifact_id": artifact}),
    ):
        assert (await tools.refusal(tool, **arguments))["error_code"] == "NOT_FOUND"
    for tool, more in (("hybrid_search", {}), ("hybrid_search", {"artifact_uid": uid}),
                       ("artifact_search", {})):  # fmt: skip
        assert (await tools(tool, query="otters", **more))["results"] == []
    with pytest.raises(Exception, match="no artifact"):
        await tools.client.read_resource(f"memory://artifact/{uid}")


async def test_other_documents_stay(
    tools: ToolClient, runtime: Runtime, sql: psycopg.Connection
) -> None:
    await note(tools, LONG, "kept")
    kept = (counts(sql), await indexed_counts(runtime))
    gone = await note(tools, LONG, "gone")

    await tools("artifact_delete", artifact_uid=gone["artifact_uid"])

    assert (counts(sql), await indexed_counts(runtime)) == kept
    assert (await tools("hybrid_search", query="otters"))["results"]


async def test_cached_answers_that_another_document_uses_stay(
    tools: ToolClient, sql: psycopg.Connection
) -> None:
    shared, own = "Shared passage about otters.", "A passage of its own."
    await note(tools, shared, "kept")
    await note(tools, own, "gone")
    gone = await note(tools, shared, "gone")
    cache_answers(sql)
    assert counts(sql)["extraction_cache"] == 2

    deleted = await tools("artifact_delete", artifact_uid=gone["artifact_uid"])

    assert deleted["cache_entries"] == 1
    assert counts(sql)["extraction_cache"] == 1
    kept = sql.execute(
        "SELECT count(*) FROM extraction_cache k "
        "JOIN revision_chunk c ON c.content_hash = k.chunk_hash"
    ).fetchone()
    assert kept == (1,)


async def test_a_deleted_document_can_come_back_as_new(tools: ToolClient) -> None:
    first = await note(tools, LONG)
    await tools("artifact_delete", artifact_uid=first["artifact_uid"])

    again = await note(tools, LONG)

    assert again["status"] == "created"
    assert again["artifact_id"] == first["artifact_id"]
    assert again["job_id"] != first["job_id"]
    assert (await tools("hybrid_search", query="otters"))["results"]


@pytest.mark.parametrize("contents", [[LONG, LONG], [LONG, "Short."], ["One.", "Two."]])
async def test_deleting_while_ingesting_leaves_all_or_nothing(
    tools: ToolClient, runtime: Runtime, sql: psycopg.Connection, contents: list[str]
) -> None:
    stored = await note(tools, contents[0])
    uid = stored["artifact_uid"]

    async def delete() -> Any:
        return await tools.client.call_tool("artifact_delete", {"artifact_uid": uid})

    for _ in range(4):
        results = await asyncio.gather(
            *(note(tools, content) for content in contents), delete(), delete(),
            return_exceptions=True,
        )  # fmt: skip
        assert not [r for r in results if isinstance(r, MemoryFault | AssertionError)]
        for deleted in results[len(contents) :]:
            assert not deleted.is_error or error_in(deleted)["error_code"] == "NOT_FOUND"
        await assert_consistent(runtime, sql)


async def assert_consistent(runtime: Runtime, sql: psycopg.Connection) -> None:
    """Postgres and Chroma hold the same revisions, each whole, one of them the latest."""
    revisions = sql.execute(
        "SELECT artifact_id, is_chunked, chunk_count, is_latest FROM artifact_revision"
    ).fetchall()
    after = counts(sql)
    await assert_exact(runtime)

    assert sum(latest for *_, latest in revisions) == min(1, len(revisions))
    assert after["revision_text"] == after["event_jobs"] == len(revisions)
    assert after["revision_chunk"] == sum(max(count, 1) for _, _, count, _ in revisions)


async def test_what_a_failed_change_said_of_it_goes_as_well(
    tools: ToolClient, sql: psycopg.Connection
) -> None:
    stored = await note(tools, BOATHOUSE)
    sql.execute(
        "INSERT INTO log.dead_letter_queue (event_id, projection_name, event_type, event_data, "
        "error_message, error_stacktrace) "
        "SELECT event_id, 'index', event_type, jsonb_build_object('payload', payload), %s, %s "
        "FROM log.events WHERE payload->>'artifact_uid' = %s",
        [f"cannot embed {BOATHOUSE}", BOATHOUSE, stored["artifact_uid"]],
    )

    await tools("artifact_delete", artifact_uid=stored["artifact_uid"])

    letters = sql.execute("SELECT d::text FROM log.dead_letter_queue d").fetchall()
    assert len(letters) == 1
    assert "boathouse" not in letters[0][0]
