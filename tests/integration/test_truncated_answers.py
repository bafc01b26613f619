"""An answer that did not fit is asked for in halves, which are joined."""

from typing import Any

import pytest

from memory_core.extraction.grounds import Context
from memory_core.extraction.proof import prove
from memory_core.kernel.database import Database
from memory_core.text.chunk import Chunk
from tests.integration.asking import CONTEXT, Opened
from tests.scripted_provider import (
    ScriptedProvider,
    ServerError,
    Truncated,
)

LONG = "\n".join(f"Line {n}: Bob Roth will deliver part {n} on time." for n in range(20))


async def test_a_truncated_answer_is_asked_for_in_halves_and_joined(
    opened: Opened, provider: ScriptedProvider
) -> None:
    provider.enqueue(Truncated())
    extract = opened()
    proposal = await extract(LONG)

    whole, left, right = (call.body["messages"][-1]["content"] for call in provider.chats)
    assert whole == LONG == left + right
    assert left.endswith("\n"), "cut between lines"
    assert len(proposal.events) == 20
    assert [entity.name for entity in proposal.entities] == ["Bob Roth", "Bob Roth"]
    assert extract.outcomes == ["truncated", "ok", "ok"]
    assert proposal.rejections == ()


async def test_quotes_of_halves_are_proved_in_the_whole_chunk(
    opened: Opened, provider: ScriptedProvider
) -> None:
    provider.enqueue(Truncated(), Truncated())
    proposal = await opened()(LONG)
    proved = prove(
        Chunk(3, 1000, 1000 + len(LONG), LONG, 1), None, proposal.events, (), Context(CONTEXT)
    )

    assert len(proved.events) == 20
    assert proved.rejected == []
    for event in proved.events:
        evidence = event.evidence
        assert LONG[evidence.start_char - 1000 : evidence.end_char - 1000] == evidence.quote
    assert len({event.evidence.start_char for event in proved.events}) == 20


async def test_equal_words_in_both_halves_are_two_places(
    opened: Opened, provider: ScriptedProvider
) -> None:
    words = "Decision: the budget is approved."
    text = f"{words}\n{LONG}\n{words}\n"
    provider.enqueue(Truncated())
    proposal = await opened()(text)
    proved = prove(Chunk(0, 0, len(text), text, 1), None, proposal.events, (), Context(CONTEXT))

    starts = [event.evidence.start_char for event in proved.events if event.evidence.quote == words]
    assert starts == [0, text.rindex(words)]


async def test_a_half_that_fails_costs_nothing_but_itself(
    opened: Opened, provider: ScriptedProvider
) -> None:
    provider.enqueue(
        Truncated(), ServerError(only=lambda body: "Line 19:" in body["messages"][-1]["content"])
    )
    extract = opened()
    await extract.fault(LONG)
    before = [call.body["messages"][-1]["content"] for call in provider.chats]
    proposal = await extract(LONG)

    after = [call.body["messages"][-1]["content"] for call in provider.chats][len(before) :]
    assert after == [before[-1]], "neither the whole nor the first half"
    assert len(proposal.events) == 20
    assert not proposal.from_cache
    assert (await extract(LONG)).from_cache


async def test_what_halves_answered_goes_with_their_passage(
    opened: Opened, provider: ScriptedProvider, stores: Database
) -> None:
    provider.enqueue(Truncated())
    await opened()(LONG)
    async with stores.session() as session:
        cursor = await session.connection.execute(
            "SELECT count(*) AS n, count(DISTINCT passage_of(chunk_hash)) AS passages "
            "FROM extraction_cache"
        )
        assert await cursor.fetchone() == {"n": 3, "passages": 1}


async def test_a_passage_too_small_to_halve_is_a_result_with_a_reason(
    opened: Opened, provider: ScriptedProvider
) -> None:
    provider.enqueue(Truncated())
    proposal = await opened()()

    assert proposal.events == ()
    assert [item.reason for item in proposal.rejections] == ["TRUNCATED"]


async def test_halves_of_which_one_never_fits_keep_what_the_other_says(
    opened: Opened, provider: ScriptedProvider
) -> None:
    def hopeless(body: Any) -> bool:
        return "Line 0:" in body["messages"][-1]["content"]

    provider.enqueue(*(Truncated(only=hopeless) for _ in range(10)))
    proposal = await opened()(LONG)

    assert 0 < len(proposal.events) < 20
    assert [item.reason for item in proposal.rejections] == ["TRUNCATED"]


@pytest.mark.parametrize("entities", [None, {}, "Bob", 3])
async def test_halves_join_whatever_they_say_of_entities(
    opened: Opened, provider: ScriptedProvider, entities: Any
) -> None:
    provider.enqueue(Truncated())
    provider.on_extract = lambda text, _: {"events": [], "entities": entities}
    proposal = await opened()(LONG)

    assert proposal.entities == ()
