"""Answers that were paid for once are not asked for again."""

import asyncio
import threading

import pytest

from memory_core.extraction import prompts
from memory_core.kernel.database import Database
from tests.integration.asking import NOTHING, Opened, narratives, until
from tests.scripted_provider import (
    Answer,
    Held,
    ScriptedProvider,
    ServerError,
)

# --- the cache --------------------------------------------------------------------------------


async def test_what_is_known_is_not_asked_for_again(
    opened: Opened, provider: ScriptedProvider
) -> None:
    first = await opened()()
    second = await opened()()

    assert (first.from_cache, second.from_cache) == (False, True)
    assert (first.events, first.entities) == (second.events, second.entities)
    assert len(provider.chats) == 1


async def test_an_answer_from_before_may_not_do_and_is_what_is_known_no_longer(
    opened: Opened, stores: Database, provider: ScriptedProvider
) -> None:
    extract = opened()
    await extract()
    provider.enqueue(Answer(NOTHING))
    async with stores.session() as session:
        [now] = await (await session.connection.execute("SELECT now() AS at")).fetchall()

    assert narratives(await extract(answers_since=now["at"])) == []
    assert narratives(await extract()) == []
    assert (await extract(answers_since=now["at"])).from_cache, "it was given since"
    assert len(provider.chats) == 2


async def test_another_model_is_asked_for_itself(
    opened: Opened, provider: ScriptedProvider
) -> None:
    await opened(openai_event_model="one")()
    await opened(openai_event_model="another")()

    assert [call.body["model"] for call in provider.chats] == ["one", "another"]


async def test_another_prompt_is_asked_for_itself(
    opened: Opened, provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    await opened()()
    shipped = prompts.load("extract")
    newer = prompts.Prompt("extract", shipped.number + 1, shipped.text + " Be brief.")
    monkeypatch.setattr(prompts, "load", lambda name: newer)
    await opened()()

    assert [call.body["messages"][0]["content"] for call in provider.chats] == [
        shipped.text,
        newer.text,
    ]


async def test_a_failed_call_leaves_nothing_behind(
    opened: Opened, provider: ScriptedProvider
) -> None:
    provider.enqueue(ServerError())
    extract = opened()
    await extract.fault()

    assert not (await extract()).from_cache


async def test_who_asks_the_same_at_once_shares_one_call(
    opened: Opened, provider: ScriptedProvider
) -> None:
    gate = threading.Event()
    provider.enqueue(Held(gate))
    extract = opened()
    asking = [asyncio.create_task(extract()) for _ in range(10)]
    await until(lambda: provider.in_flight == 1)
    gate.set()
    proposals = await asyncio.gather(*asking)

    assert len(provider.chats) == 1
    assert len({proposal.events for proposal in proposals}) == 1
    assert sum(proposal.from_cache for proposal in proposals) == 9


async def test_a_caller_that_gives_up_does_not_cancel_the_call_of_others(
    opened: Opened, provider: ScriptedProvider
) -> None:
    gate = threading.Event()
    provider.enqueue(Held(gate))
    extract = opened()
    asker = asyncio.create_task(extract())
    sharers = [asyncio.create_task(extract()) for _ in range(3)]
    await until(lambda: provider.in_flight == 1)
    asker.cancel()
    await asyncio.wait([asker])
    gate.set()

    for proposal in await asyncio.gather(*sharers):
        assert len(proposal.events) == 3
    assert asker.cancelled()


async def test_a_call_that_every_caller_gave_up_is_ended(
    opened: Opened, provider: ScriptedProvider
) -> None:
    gate = threading.Event()
    provider.enqueue(Held(gate))
    extract = opened(extract_concurrency=1)
    askers = [asyncio.create_task(extract()) for _ in range(3)]
    await until(lambda: provider.in_flight == 1)
    for asker in askers:
        asker.cancel()
    await asyncio.gather(*askers, return_exceptions=True)

    assert len((await extract()).events) == 3, "another caller may ask in its place"
    gate.set()
