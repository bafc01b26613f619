"""Events by address, and the prompts for the five questions."""

import re
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from tests.integration.planted_events import Event, Garden
from tests.tool_client import ToolClient

TEXT = "It rained.\nAlice said\nwe charge per seat\nfrom May on. They left."
PRICE = Event(
    "Alice Chen decided to charge per seat.", time="2026-03-01", actors=("Alice Chen",),
    quote="we charge per seat",
)  # fmt: skip
LEFT = Event("They left.", category="Execution")


async def read(tools: ToolClient, address: str) -> str:
    answer = await tools.client.read_resource(address)
    [content] = answer.contents
    assert content.mime_type == "text/markdown"
    text: str = content.text  # type: ignore[union-attr]
    return text


async def test_an_event_with_its_proof(garden: Garden, tools: ToolClient) -> None:
    planted = await garden.document(PRICE, LEFT, source_id="1", content=TEXT, title="Minutes")

    for event_id in (planted.ids[0], f"evt_{planted.ids[0]}"):
        text = await read(tools, f"memory://event/{event_id}")
        assert text.startswith(f"# Decision: {PRICE.narrative}\n")
        assert "- when: 2026-03-01" in text
        assert "- who: Alice Chen (owner)" in text
        assert f"- document: Minutes, revision {planted.revision}" in text
        assert (
            "\n> …It rained. Alice said **we charge per seat** from May on. They left.…\n" in text
        )
    undated = await read(tools, f"memory://event/{planted.ids[1]}")
    assert "- when: no date given" in undated
    assert "- who: –" in undated


async def test_a_documents_events_in_time_order(garden: Garden, tools: ToolClient) -> None:
    planted = await garden.document(LEFT, PRICE, source_id="1", content=TEXT)
    await garden.document(Event("Elsewhere."), source_id="2")
    empty = await garden.document(source_id="3")

    assert await read(tools, f"memory://timeline/{planted.uid}") == (
        "## 2026-03-01\n\n"
        "- **Decision** Alice Chen decided to charge per seat. — “we charge per seat”\n\n"
        "## No date given\n\n"
        "- **Execution** They left. — “They left.”"
    )
    assert await read(tools, f"memory://timeline/{empty.uid}") == "No events."


@pytest.mark.parametrize(
    "address",
    [
        "memory://event/6f0c7a52-8d0e-4f43-9b1d-3f3f2f1f6a11",
        "memory://event/nonsense",
        "memory://timeline/uid_0000000000000000",
    ],
)
async def test_what_is_not_there_is_said_to_be(tools: ToolClient, address: str) -> None:
    with pytest.raises(MCPError, match=r"There is no|is not an id"):
        await tools.client.read_resource(address)


# --- prompts ---------------------------------------------------------------------------------

QUESTIONS: list[tuple[str, dict[str, str], list[str]]] = [
    ("decisions_about", {"topic": "pricing"}, ["event_search", "event_search"]),
    ("commitments_of", {"person": "Alice Chen"}, ["commitment_list"]),
    ("commitments_of", {"person": "Alice Chen", "until": "Q1"}, ["commitment_list"]),
    ("feedback_on", {"topic": "new UI"}, ["event_search", "event_search", "hybrid_search"]),
    ("changes_of", {"document": "ADR-014"}, ["artifact_search", "artifact_history", "event_diff"]),
    ("stakeholders_of", {"topic": "login"}, ["stakeholder_map", "event_search"]),
]


async def prompt(tools: ToolClient, name: str, arguments: dict[str, Any]) -> str:
    answer = await tools.client.get_prompt(name, arguments)
    [message] = answer.messages
    text: str = message.content.text  # type: ignore[union-attr]
    return text


@pytest.mark.parametrize(("name", "arguments", "calls"), QUESTIONS)
async def test_a_question_uses_the_right_tools_in_the_right_order(
    tools: ToolClient, name: str, arguments: dict[str, str], calls: list[str]
) -> None:
    text = await prompt(tools, name, arguments)
    listed = {tool.name: tool.input_schema for tool in (await tools.client.list_tools()).tools}

    shown = re.findall(r"\b(\w+)\(([^()]*)\)", text)
    shown = [(tool, given) for tool, given in shown if tool in listed]
    assert [tool for tool, _ in shown] == calls
    for tool, given in shown:
        assert set(re.findall(r"(\w+)=", given)) <= set(listed[tool]["properties"])
    assert all(value in text for value in arguments.values())
    assert "exact quote" in text


async def test_a_time_in_words_is_to_be_turned_into_a_date(tools: ToolClient) -> None:
    text = await prompt(tools, "commitments_of", {"person": "Alice Chen", "until": "Q1"})

    assert 'due_to="Q1"' not in text
    assert "ISO date" in text
    assert "due_to" not in await prompt(tools, "commitments_of", {"person": "Alice Chen"})


@pytest.mark.parametrize("name", ["decisions_about", "feedback_on", "stakeholders_of"])
async def test_quotes_in_a_topic_do_not_break_the_call(tools: ToolClient, name: str) -> None:
    text = await prompt(tools, name, {"topic": 'the "new" UI'})

    assert r'query="the \"new\" UI"' in text
