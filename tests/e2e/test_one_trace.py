"""One trace, from an assistant's call to the request at the provider, wherever one looks for it."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from mcp import Client

from tests.e2e.pipeline import Pipeline
from tests.e2e.stacks import eventually, scripted_stack
from tests.otlp_collector import CollectedSpan, Collector

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
NOTE = {
    "artifact_type": "note",
    "source_system": "test",
    "content": "Decision: Alice Chen launches the beta in May.",
}


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        yield collector


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory, collector: Collector) -> Iterator[Pipeline]:
    """A stack that has made events of one note, asked for by a client with a span of its own."""
    with scripted_stack(
        tmp_path_factory.mktemp("trace"),
        OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoint,
        LOG_FORMAT="json",
    ) as (stack, provider):
        pipeline = Pipeline(stack, provider)
        stored = asyncio.run(ingest(pipeline))
        pipeline.wait_for_job(stored["job_id"], "DONE")
        yield pipeline


async def ingest(pipeline: Pipeline) -> dict[str, Any]:
    async with Client(pipeline.stack.mcp_url) as client:
        meta = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
        answer = await client.call_tool("artifact_ingest", NOTE, meta=meta)
    assert not answer.is_error, answer.content
    assert answer.structured_content is not None
    return answer.structured_content


def test_it_is_in_the_audit(pipeline: Pipeline) -> None:
    query = "SELECT tool_name, task_id FROM tool_calls WHERE trace_id = %s"
    [row] = eventually(lambda: pipeline.sql(query, TRACE))
    [job] = pipeline.sql("SELECT job_id FROM event_jobs")
    assert row == {"tool_name": "artifact_ingest", "task_id": job["job_id"]}


def test_it_is_on_the_job_and_in_the_tags_of_its_run(pipeline: Pipeline) -> None:
    [job] = pipeline.sql("SELECT trace_id, locked_by FROM event_jobs")
    assert job["trace_id"] == TRACE
    [run] = pipeline.runs(runIds=[job["locked_by"]])
    assert {"key": "trace_id", "value": TRACE} in run["tags"]


def test_it_is_in_the_request_to_the_provider(pipeline: Pipeline) -> None:
    assert {call.traceparent.split("-")[1] for call in pipeline.provider.chats} == {TRACE}


def test_the_collector_has_the_whole_tree(pipeline: Pipeline, collector: Collector) -> None:
    tree: list[CollectedSpan] = []
    for name in (
        "tools/call artifact_ingest",
        "tool artifact_ingest",
        "job",
        "run",
        "chunk 0",
        "model extract",
    ):
        span = collector.wait_for(name, TRACE)
        assert span.parent_id == (tree[-1].span_id if tree else SPAN), name
        tree.append(span)
    run, model = tree[3], tree[5]
    [job] = pipeline.sql("SELECT job_id, locked_by FROM event_jobs")
    assert run.attributes["dagster.run_id"] == job["locked_by"]
    assert model.attributes["gen_ai.usage.input_tokens"] > 0
    [call] = [call for call in pipeline.provider.chats if TRACE in call.traceparent]
    assert call.traceparent.split("-")[2] == model.span_id


def test_it_is_in_the_lines_of_the_logs(pipeline: Pipeline) -> None:
    def told(child: str, words: str) -> bool:
        text = pipeline.stack.layout.log_of(child).read_text()
        lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        matching = [line for line in lines if words in line["message"]]
        return any(line.get("trace_id") == TRACE for line in matching)

    eventually(lambda: told("mcp-server", "tool=artifact_ingest"))
    eventually(lambda: told("dagster-code", "extracted job_id="))
