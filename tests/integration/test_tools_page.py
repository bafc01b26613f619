"""docs/tools.md shows what the tools really answer.

After an intended change, of the tools or of what is extracted from the demo:
`UPDATE_SNAPSHOTS=1 python -m pytest tests/integration/test_tools_page.py`.
"""

import os
from pathlib import Path

import pytest
from mcp import Client

from mcp_server.server import build_server
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from tests.example_calls import Json, examples
from tests.integration import demo_corpus
from tests.tool_client import ToolClient, in_one_task
from tests.tools_page import PAGE, Answered, render


@pytest.fixture
async def demo(runtime: Runtime) -> Runtime:
    """The demo corpus alone."""
    await demo_corpus.load(runtime)
    return runtime


async def answers(tools: ToolClient, file: Path) -> dict[str, Answered]:
    """Of each tool, its first call."""
    answered: dict[str, Answered] = {}
    story = examples(file)
    example = next(story)
    while True:
        answer = await tools(example.tool, **example.arguments)
        answered.setdefault(example.tool, Answered(example, answer))
        try:
            example = story.send(answer)
        except StopIteration:
            return answered


async def test_the_page_shows_every_tool_with_a_real_answer(
    demo: Runtime, services: Settings, tmp_path: Path
) -> None:
    note = tmp_path / "kickoff.md"
    note.write_text("Decision: the beta starts in March.\n")
    allowed = services.model_copy(update={"ingest_roots": str(tmp_path)})
    server = build_server(allowed, stdio=True)
    listed: list[Json] = [
        tool.model_dump(mode="json", by_alias=True, exclude_none=True)
        for tool in await server.list_tools()
    ]
    async with in_one_task(Client(server)) as client:
        answered = await answers(ToolClient(client), note)

    page = render(listed, answered, str(tmp_path))
    if os.environ.get("UPDATE_SNAPSHOTS"):
        PAGE.write_text(page, encoding="utf-8")

    assert set(answered) == {tool["name"] for tool in listed}
    assert PAGE.read_text(encoding="utf-8") == page, "review it, then UPDATE_SNAPSHOTS=1"


# --- the specification's own examples --------------------------------------------------------


async def test_the_example_queries_of_the_specification_work_as_written(
    demo: Runtime, tools: ToolClient
) -> None:
    decisions = await tools("event_search", query="pricing", category="Decision", limit=10)
    assert decisions["events"]
    assert {event["category"] for event in decisions["events"]} == {"Decision"}

    commitments = {"category": "Commitment"}
    none_then = await tools(
        "event_search",
        **commitments,
        time_from="2024-01-01T00:00:00Z",
        time_to="2024-03-31T23:59:59Z",
    )
    assert none_then["total"] == 0, "the demo begins in November 2025"
    due = await tools(
        "event_search",
        **commitments,
        time_from="2026-01-01T00:00:00Z",
        time_to="2026-03-31T23:59:59Z",
    )
    assert due["total"] > 0
    times = {(e["due"]["time"] if "due" in e else e["event_time"])[:7] for e in due["events"]}
    assert times <= {"2026-01", "2026-02", "2026-03"}

    uid = decisions["events"][0]["artifact_uid"]
    listed = await tools("event_list_for_revision", artifact_uid=uid, include_evidence=True)
    assert all(event["evidence"] for event in listed["events"])
    assert decisions["events"][0]["event_id"] in {e["event_id"] for e in listed["events"]}

    assert (await tools("job_status", artifact_uid=uid))["status"] == "DONE"

    again = await tools("event_reextract", artifact_uid=uid, force=True)
    assert (again["artifact_uid"], again["status"]) == (uid, "PENDING")


@pytest.mark.parametrize("tool", ["event_list_for_revision", "job_status", "event_reextract"])
async def test_its_made_up_document_is_not_found(tools: ToolClient, tool: str) -> None:
    error = await tools.refusal(tool, artifact_uid="uid_abc123")

    assert error["error_code"] == "NOT_FOUND"
