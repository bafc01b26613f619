"""One trace: the call, the job it requests, every attempt, chunk and model call; and its price."""

import asyncio
from typing import Any

import psycopg
import pytest

from memory_core.kernel.errors import NotFound
from memory_core.kernel.prices import Price
from memory_core.runtime import Runtime
from memory_core.telemetry.trace_tree import Node, TraceSubject, find_subject, read_tree
from tests.integration.commands import Command, answer
from tests.pipeline_client import Pipeline
from tests.scripted_provider import ScriptedProvider, ServerError
from tests.tool_client import ToolClient

NOTE = {"artifact_type": "note", "source_system": "notes", "title": "Minutes"}
TEXT = " ".join(f"Decision {n}: the plan number {n} of Alice Chen stays." for n in range(150))
PRICES = {"gpt-4o": Price(2.5, 10.0)}


def kinds(node: Node) -> set[str]:
    return {node.kind}.union(*map(kinds, node.children))


@pytest.fixture
async def ingested(tools: ToolClient, openai: Pipeline, provider: ScriptedProvider) -> Any:
    """A document whose first attempt failed."""
    stored = await tools("artifact_ingest", **NOTE, content=TEXT)
    provider.enqueue(ServerError())
    await openai.extract("run-1")
    await openai.rows("UPDATE event_jobs SET next_run_at = now()")
    await openai.extract("run-2")
    return stored


async def test_requests_to_the_provider_name_the_trace_of_the_call(
    ingested: Any, openai: Pipeline, provider: ScriptedProvider
) -> None:
    [job] = await openai.jobs()
    calls = await openai.calls()
    sent = [call.traceparent.split("-") for call in provider.chats]
    assert {trace_id for _, trace_id, _, _ in sent} == {job["trace_id"]}
    assert sorted(span_id for _, _, span_id, _ in sent) == sorted(c["span_id"] for c in calls)
    assert {call["trace_id"] for call in calls} == {job["trace_id"]}
    assert {call["run_id"] for call in calls} == {"run-1", "run-2"}
    assert {call["chunk_index"] for call in calls} >= {0, 1}


async def test_the_change_that_stores_the_events_is_in_the_trace(
    ingested: Any, openai: Pipeline, sql: psycopg.Connection
) -> None:
    [job] = await openai.jobs()
    rows = sql.execute("SELECT DISTINCT event_type, trace_id FROM log.events").fetchall()
    assert ("events.replaced", job["trace_id"]) in rows


async def test_the_tree_goes_from_the_call_to_each_model_call(
    ingested: Any, openai: Pipeline, runtime: Runtime, sql: psycopg.Connection
) -> None:
    [job] = await openai.jobs()
    audited = "SELECT 1 FROM tool_calls WHERE trace_id = %s"
    while sql.execute(audited, [job["trace_id"]]).fetchone() is None:
        await asyncio.sleep(0.05)
    [root] = await read_tree(runtime.database, TraceSubject(trace_id=job["trace_id"]), PRICES)
    assert kinds(root) == {"call", "job", "run", "chunk", "model"}
    [of_job] = [child for child in root.children if child.kind == "job"]
    first, second = of_job.children
    assert (first.outcome, second.outcome) == ("OPENAI_CONNECTION_ERROR → PENDING", "DONE")
    assert (first.details["attempt"], second.details["attempt"]) == (1, 2)
    calls = await openai.calls()
    assert root.tokens == sum(c["prompt_tokens"] + c["completion_tokens"] for c in calls)
    costs = [PRICES["gpt-4o"].of(c["prompt_tokens"], c["completion_tokens"]) for c in calls]
    assert root.dollars == pytest.approx(sum(costs))


async def test_documents_jobs_and_traces_are_found_by_their_ids(
    ingested: Any, openai: Pipeline, runtime: Runtime
) -> None:
    [job] = await openai.jobs()
    uid = ingested["artifact_uid"]
    async with runtime.database.session() as session:
        assert await find_subject(session, uid[:10]) == TraceSubject(artifact_uid=uid)
        assert await find_subject(session, f"job_{job['job_id']}") == TraceSubject(
            job_id=job["job_id"]
        )
        trace = TraceSubject(trace_id=job["trace_id"])
        assert await find_subject(session, job["trace_id"]) == trace
        with pytest.raises(NotFound):
            await find_subject(session, "the merger")
    with pytest.raises(NotFound):
        await read_tree(runtime.database, TraceSubject(artifact_uid="uid_0000000000000000"), {})


def test_the_command_draws_it_and_tells_it_to_scripts(
    ingested: Any, sql: psycopg.Connection, command: Command
) -> None:
    [(job_id,)] = sql.execute("SELECT job_id FROM event_jobs").fetchall()
    drawn = command("trace", ingested["artifact_uid"])
    assert f"job {job_id}" in drawn
    assert "attempt 2" in drawn
    assert "chunk 1" in drawn
    assert "tokens" in drawn
    [tree] = answer(command, "trace", str(job_id))["trees"]
    of_job = tree if tree["kind"] == "job" else tree["children"][0]
    assert of_job["artifact_uid"] == ingested["artifact_uid"]
    assert len(of_job["children"]) == 2
