"""The grouper behind a chat model: it only groups what it was given."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from memory_core.extraction import prompts
from memory_core.extraction.model import Category, ChunkEvent, Evidence, Subject, SubjectType
from tests.integration.asking import Asking, Opened
from tests.scripted_provider import (
    Answer,
    Fault,
    Refusal,
    RefusesSchema,
    ScriptedProvider,
    Truncated,
)

# --- the grouper ------------------------------------------------------------------------------


def candidate(id_: str, narrative: str = "Bob did it.") -> ChunkEvent:
    return ChunkEvent(
        id=id_,
        chunk_index=0,
        category=Category.EXECUTION,
        subject=Subject(SubjectType.OBJECT, "it"),
        narrative=narrative,
        confidence=0.5,
        evidence=Evidence(0, 3, "Bob", "exact", None),
        event_time=datetime(2026, 5, 1, tzinfo=UTC),
    )


async def grouped(extract: Asking, sizes: list[int], max_calls: int = 10) -> list[list[str]]:
    blocks = [
        [candidate(f"b{block}e{number}") for number in range(size)]
        for block, size in enumerate(sizes)
    ]
    return await extract.grouper.group(blocks, max_calls=max_calls, ledger=extract.ledger)


async def test_the_grouper_gives_candidates_and_gets_ids(
    opened: Opened, provider: ScriptedProvider
) -> None:
    provider.on_merge = lambda events, _: {
        "groups": [{"members": [event["id"] for event in events], "narrative": None}]
    }
    extract = opened()

    assert await grouped(extract, [2]) == [["b0e0", "b0e1"]]
    [call] = provider.chats
    system, question = call.body["messages"]
    assert system["content"] == prompts.load("merge").text
    assert json.loads(question["content"])[0] == {
        "id": "b0e0",
        "category": "Execution",
        "subject": "it",
        "actors": [],
        "time": "2026-05-01T00:00:00+00:00",
        "narrative": "Bob did it.",
    }
    assert call.body["response_format"]["json_schema"]["name"] == "event_merge"
    assert [call.kind for call in extract.calls] == ["merge"]


@pytest.mark.parametrize(
    ("sizes", "questions"),
    [([2, 3], [5]), ([30, 30, 2], [60, 2]), ([200], [60]), ([2] * 40, [60, 20])],
)
async def test_blocks_share_questions_as_far_as_they_fit(
    opened: Opened, provider: ScriptedProvider, sizes: list[int], questions: list[int]
) -> None:
    await grouped(opened(), sizes)

    asked = [json.loads(call.body["messages"][-1]["content"]) for call in provider.chats]
    assert sorted(map(len, asked), reverse=True) == questions


async def test_no_more_questions_are_asked_than_allowed(
    opened: Opened, provider: ScriptedProvider
) -> None:
    extract = opened()
    await grouped(extract, [60, 60, 60], max_calls=2)

    assert len(provider.chats) == 2
    assert extract.ledger.unasked_merges == 60


async def test_what_does_not_fit_into_a_question_is_counted(opened: Opened) -> None:
    extract = opened()
    await grouped(extract, [200, 2])

    assert extract.ledger.unasked_merges == 140


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"groups": None},
        {"groups": "b0e0"},
        {"groups": [None, 3, "x", {}, {"members": None}, {"members": "b0e0"}]},
        {"groups": [{"members": [1, None, {}]}]},
    ],
    ids=str,
)
async def test_a_grouping_of_another_shape_groups_nothing(
    opened: Opened, provider: ScriptedProvider, answer: dict[str, Any]
) -> None:
    provider.enqueue(Answer(answer))

    assert [group for group in await grouped(opened(), [2]) if group] == []


@pytest.mark.parametrize("fault", [Refusal(), Truncated()], ids=repr)
async def test_a_grouping_that_does_not_come_groups_nothing(
    opened: Opened, provider: ScriptedProvider, fault: Fault
) -> None:
    provider.enqueue(fault)

    assert await grouped(opened(), [2]) == []


async def test_the_grouper_falls_back_to_plain_json_as_well(
    opened: Opened, provider: ScriptedProvider
) -> None:
    provider.enqueue(RefusesSchema())
    extract = opened()
    await grouped(extract, [2])
    await extract()

    formats = [call.body["response_format"]["type"] for call in provider.chats]
    assert formats == ["json_schema", "json_object", "json_object"]
