"""A request with a key of the client's own is made once, however often it is sent."""

import asyncio
from typing import Any

import psycopg

from tests.tool_client import Json, ToolClient

NOTE: dict[str, Any] = {
    "artifact_type": "note",
    "source_system": "notes",
    "content": "Decision: tea is served at four.",
}


def count(sql: psycopg.Connection, table: str) -> int:
    row = sql.execute(f"SELECT count(*) FROM {table}").fetchone()  # type: ignore[arg-type]
    assert row is not None
    return int(row[0])


async def test_sent_again_it_returns_the_first_answer_and_stores_nothing(
    tools: ToolClient, sql: psycopg.Connection
) -> None:
    """Without a source_id each call would store another document."""
    first = await tools("artifact_ingest", **NOTE, idempotency_key="k1")
    again = await tools("artifact_ingest", **NOTE, idempotency_key="k1")

    assert {**again, "indexed": None} == {**first, "indexed": None}
    assert (first["status"], count(sql, "artifact_revision"), count(sql, "event_jobs")) == (
        *("created", 1, 1),
    )
    job = await tools("job_status", job_id=first["job_id"])
    assert job["idempotency_key"] == "k1"


async def test_with_other_arguments_it_is_a_conflict(
    tools: ToolClient, sql: psycopg.Connection
) -> None:
    await tools("artifact_ingest", **NOTE, idempotency_key="k1")
    for changed in ({"content": "Decision: at five."}, {"title": "Tea"}, {"priority": 5}):
        error = await tools.refusal("artifact_ingest", **{**NOTE, **changed}, idempotency_key="k1")
        assert error["error_code"] == "CONFLICT"
        assert error["details"] == {"parameter": "idempotency_key"}

    assert count(sql, "artifact_revision") == 1


async def test_another_key_is_another_request(tools: ToolClient, sql: psycopg.Connection) -> None:
    first = await tools("artifact_ingest", **NOTE, idempotency_key="k1")
    second = await tools("artifact_ingest", **NOTE, idempotency_key="k2")

    assert first["artifact_uid"] != second["artifact_uid"]
    assert count(sql, "artifact_revision") == 2


async def test_of_many_at_once_one_stores(tools: ToolClient, sql: psycopg.Connection) -> None:
    answers: list[Json] = await asyncio.gather(
        *(tools("artifact_ingest", **NOTE, idempotency_key="k1") for _ in range(8))
    )

    assert len({answer["artifact_uid"] for answer in answers}) == 1
    assert {answer["status"] for answer in answers} == {"created"}
    assert count(sql, "artifact_revision") == 1


async def test_an_answer_without_new_work_is_kept_as_well(tools: ToolClient) -> None:
    named = {**NOTE, "source_id": "tea"}
    await tools("artifact_ingest", **named)
    unchanged = await tools("artifact_ingest", **named, idempotency_key="k1")
    assert unchanged["status"] == "unchanged"
    await tools("artifact_ingest", **{**named, "content": "Decision: at five."})

    again = await tools("artifact_ingest", **named, idempotency_key="k1")
    assert again["status"] == "unchanged", "the first answer; the newer text stays the latest"


async def test_a_key_goes_with_its_document(tools: ToolClient, sql: psycopg.Connection) -> None:
    first = await tools("artifact_ingest", **NOTE, idempotency_key="k1")
    await tools("artifact_delete", artifact_uid=first["artifact_uid"])
    assert count(sql, "idempotent_request") == 0

    again = await tools("artifact_ingest", **NOTE, idempotency_key="k1")
    assert (again["status"], again["artifact_uid"] == first["artifact_uid"]) == ("created", False)
