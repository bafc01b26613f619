"""event_search: whatever people type, it is never an error of the database."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_server.failures import error_in
from tests.integration.planted_events import Planted
from tests.integration.searched_events import AUTH, BETA, LUNCH, PRICE_RISK, PRICING, narratives
from tests.tool_client import ToolClient

# --- odd input -------------------------------------------------------------------------------


@pytest.mark.parametrize("query", [None, "", "   ", "\n\t"])
async def test_without_a_query_the_newest_come_first(
    searched: ToolClient, query: str | None
) -> None:
    answer = await searched("event_search", query=query)

    assert narratives(answer) == [
        event.narrative for event in (BETA, PRICE_RISK, PRICING, AUTH, LUNCH)
    ]
    assert answer["total"] == 5


@pytest.mark.parametrize(
    "query",
    [
        "the and of",  # only stop words
        "?!…",
        "🙃",
        "\\",
        "\\\\' \\",
        "'",
        "''",
        '"',
        '"unclosed',
        "%",
        "%s %(query)s %%",
        "$1",
        "_",
        "& | ! <->",
        "a:* & !b <2> (c",
        "-",
        "--",
        "- - -",
        "-a",
        "or",
        "or or",
        "NULL",
        "'; DROP TABLE semantic_event; --",
        "\u202e\u200b\ufeff",
        "王 小明",
        "a" * 500,
        "pricing " * 62,
        " ".join(f"w{i}" for i in range(120)),
        "é" * 500,
        "{" * 250,
        "null",
        "[]",
        "[1, 2]",
        '{"a": 1}',
    ],
)
async def test_odd_queries_are_answered(searched: ToolClient, query: str) -> None:
    answer = await searched("event_search", query=query)

    assert len(answer["events"]) == min(answer["total"], 20)


@pytest.mark.parametrize(
    "query",
    [
        "pricing ?!…",
        "🙃 pricing",
        "pricing \\",
        "\\' pricing \\",
        "pricing '",
        '"pricing',
        '" pricing',
        "% pricing %s %(query)s",
        "pricing $1 _",
        "& | ! <-> pricing",
        "pricing:* & !",
        "- pricing - -",
        "pricing --",
        "pricing \u202e\u200b",
        "pricing " * 62,
        "pricing " + "{" * 250,
        "pricing " + "é" * 480,
        "(pricing)",
        "the pricing and of",
    ],
)
@pytest.mark.parametrize("sort", ["relevance", "time"])
async def test_odd_marks_do_not_hide_what_is_asked_for(
    searched: ToolClient, query: str, sort: str
) -> None:
    answer = await searched("event_search", query=query, sort=sort)

    assert {PRICING.narrative, PRICE_RISK.narrative} <= set(narratives(answer))


@pytest.mark.parametrize("parameter", ["query", "actor", "subject", "source_system"])
async def test_text_that_no_store_can_hold_is_refused(tools: ToolClient, parameter: str) -> None:
    error = await tools.refusal("event_search", **{parameter: "pri\x00cing"})

    assert error["error_code"] == "VALIDATION_ERROR"
    assert error["details"]["parameter"] == parameter


@pytest.mark.parametrize(
    "arguments",
    [
        {"query": "x" * 501},
        {"limit": 0},
        {"limit": 101},
        {"offset": -1},
        {"category": "Nonsense"},
        {"category": "decision"},
        {"min_confidence": 1.1},
        {"time_from": "yesterday-ish"},
        {"sort": "newest"},
        {"artifact_type": "book"},
        {"nonsense": 1},
    ],
)
async def test_bad_values_are_refused(tools: ToolClient, arguments: dict[str, Any]) -> None:
    error = await tools.refusal("event_search", **arguments)

    assert error["error_code"] == "VALIDATION_ERROR"
    assert error["details"]["parameter"] == next(iter(arguments))


async def test_a_wrong_category_names_the_right_ones(tools: ToolClient) -> None:
    error = await tools.refusal("event_search", category="Nonsense")

    for category in ("Commitment", "Execution", "Decision", "Collaboration", "QualityRisk",
                     "Feedback", "Change", "Stakeholder"):  # fmt: skip
        assert category in error["error"]


# Everything a client can send; lone surrogates cannot be sent at all, and a JSON list is unpacked
# before the tool sees it.
any_text = st.text(st.characters(exclude_categories=("Cs",)), max_size=300).filter(
    lambda text: not text.lstrip().startswith("[")
)
operator_soup = st.text("ab '\"\\&|!()<>:*-%_or\n", max_size=60)


@settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(query=any_text | operator_soup, actor=any_text, subject=any_text, data=st.data())
async def test_no_text_gives_a_database_error(
    tools: ToolClient, planted: Planted, query: str, actor: str, subject: str, data: st.DataObject
) -> None:
    chosen = data.draw(st.sets(st.sampled_from(["query", "actor", "subject"]), min_size=1))
    values = {"query": query, "actor": actor, "subject": subject}
    arguments = {name: values[name] for name in chosen}
    answer = await tools.client.call_tool("event_search", arguments)

    if answer.is_error:
        assert error_in(answer)["error_code"] == "VALIDATION_ERROR"
        assert any("\x00" in text for text in arguments.values())
    else:
        assert answer.structured_content is not None
        assert answer.structured_content["total"] >= len(answer.structured_content["events"])
