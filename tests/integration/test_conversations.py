"""Conversations: turns are written once and read back in order."""

import asyncio

import pytest

from tests.tool_client import Json, ToolClient


async def say(tools: ToolClient, turn: int, content: str, *, role: str = "user") -> Json:
    return await tools(
        "history_append", conversation_id="c1", role=role, content=content, turn_index=turn
    )


async def test_turns_come_back_in_order_with_their_roles(tools: ToolClient) -> None:
    await say(tools, 2, "You are welcome. 😊", role="assistant")
    await say(tools, 0, "Be brief.", role="system")
    await say(tools, 1, "Merci !\r\n\tZoë")

    answer = await tools("history_get", conversation_id="c1")

    assert [(t["turn_index"], t["role"], t["content"]) for t in answer["turns"]] == [
        (0, "system", "Be brief."),
        (1, "user", "Merci !\r\n\tZoë"),
        (2, "assistant", "You are welcome. 😊"),
    ]
    assert answer["total"] == 3


async def test_the_last_turns_of_a_long_conversation_in_order(tools: ToolClient) -> None:
    for turn in range(60):
        await say(tools, turn, f"turn {turn}")

    default = await tools("history_get", conversation_id="c1")
    most = await tools("history_get", conversation_id="c1", limit=50)
    last = await tools("history_get", conversation_id="c1", limit=1)

    assert [turn["turn_index"] for turn in default["turns"]] == list(range(44, 60))
    assert [turn["turn_index"] for turn in most["turns"]] == list(range(10, 60))
    assert [turn["turn_index"] for turn in last["turns"]] == [59]
    assert default["total"] == most["total"] == last["total"] == 60


async def test_the_same_turn_again_changes_nothing(tools: ToolClient) -> None:
    first = await say(tools, 0, "Hello")
    again = await say(tools, 0, "Hello")

    assert (first["status"], again["status"]) == ("created", "unchanged")
    assert (await tools("history_get", conversation_id="c1"))["total"] == 1


@pytest.mark.parametrize(
    "other", [{"content": "Goodbye"}, {"role": "assistant"}, {"content": "Hello "}]
)
async def test_another_text_or_role_for_a_turn_is_a_conflict_and_the_first_is_kept(
    tools: ToolClient, other: dict[str, str]
) -> None:
    await say(tools, 0, "Hello")

    turn = {"conversation_id": "c1", "role": "user", "content": "Hello", "turn_index": 0}
    error = await tools.refusal("history_append", **{**turn, **other})

    assert error["error_code"] == "CONFLICT"
    assert error["details"] == {"conversation_id": "c1", "turn_index": 0}
    [kept] = (await tools("history_get", conversation_id="c1"))["turns"]
    assert (kept["role"], kept["content"]) == ("user", "Hello")


async def test_two_clients_append_the_same_turn_at_once(tools: ToolClient) -> None:
    answers = await asyncio.gather(*(say(tools, 0, "Hello") for _ in range(8)))

    assert sorted(answer["status"] for answer in answers) == ["created"] + ["unchanged"] * 7


async def test_two_texts_for_one_turn_at_once_leave_exactly_one(tools: ToolClient) -> None:
    turn = {"conversation_id": "c1", "role": "user", "turn_index": 0}
    answers = await asyncio.gather(
        *(
            tools.client.call_tool("history_append", {**turn, "content": content})
            for content in ("this", "that")
        )
    )

    assert sorted(answer.is_error or False for answer in answers) == [False, True]
    assert (await tools("history_get", conversation_id="c1"))["total"] == 1


async def test_conversations_do_not_mix(tools: ToolClient) -> None:
    await say(tools, 0, "Hello")

    other = await tools("history_get", conversation_id="c2")

    assert other == {"conversation_id": "c2", "turns": [], "total": 0}


async def test_a_deleted_conversation_is_gone_and_can_begin_again(tools: ToolClient) -> None:
    for turn in range(3):
        await say(tools, turn, f"turn {turn}")

    deleted = await tools("history_delete", conversation_id="c1")

    assert deleted == {"conversation_id": "c1", "turns": 3}
    assert (await tools("history_get", conversation_id="c1"))["total"] == 0
    assert (await say(tools, 0, "Another text"))["status"] == "created"


async def test_one_turn_is_deleted_and_the_others_stay(tools: ToolClient) -> None:
    for turn in range(3):
        await say(tools, turn, f"turn {turn}")

    assert (await tools("history_delete", conversation_id="c1", turn_index=1))["turns"] == 1

    kept = (await tools("history_get", conversation_id="c1"))["turns"]
    assert [turn["turn_index"] for turn in kept] == [0, 2]


@pytest.mark.parametrize("missing", [{"conversation_id": "c2"}, {"turn_index": 7}])
async def test_deleting_what_is_not_there_is_not_found(
    tools: ToolClient, missing: dict[str, str | int]
) -> None:
    await say(tools, 0, "Hello")

    error = await tools.refusal("history_delete", **{"conversation_id": "c1", **missing})

    assert error["error_code"] == "NOT_FOUND"
    assert (await tools("history_get", conversation_id="c1"))["total"] == 1
