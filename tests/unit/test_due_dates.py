"""When a commitment is due: a field of its own, with the words that state it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memory_core.extraction.answer import read_answer
from memory_core.extraction.grounds import Context
from memory_core.extraction.model import (
    Category,
    ChunkEvent,
    DocumentContext,
    Due,
    ProposedEvent,
    ProposedQuote,
    Subject,
    SubjectType,
)
from memory_core.extraction.proof import Proved, prove
from memory_core.extraction.rules import propose
from memory_core.text.chunk import Chunk

WRITTEN = datetime(2026, 3, 2, tzinfo=UTC)
FRIDAY = datetime(2026, 3, 6, tzinfo=UTC)
TEXT = "Notes. Ann Lee will send the report by Friday. The fair opens on 2026-05-01, in May."
CONTEXT = DocumentContext("note", "Notes", "Ann Lee", (), WRITTEN)
ANSWER: dict[str, Any] = {
    "category": "Commitment",
    "subject": {"type": "object", "ref": "report"},
    "actors": [],
    "event_time": "2026-03-06",
    "narrative": "Ann Lee will send the report by Friday.",
    "evidence": {"quote": "Ann Lee will send the report by Friday."},
    "confidence": 0.9,
}


def promised(due: Due | None) -> ProposedEvent:
    return ProposedEvent(
        category=Category.COMMITMENT,
        subject=Subject(SubjectType.OBJECT, "report"),
        narrative="Ann Lee will send the report by Friday.",
        quote=ProposedQuote("Ann Lee will send the report by Friday."),
        confidence=0.9,
        due=due,
    )


def proved(due: Due | None, text: str = TEXT) -> Proved:
    chunk = Chunk(index=1, text=text, start_char=1000, end_char=1000 + len(text), token_count=20)
    return prove(chunk, None, [promised(due)], [], Context(CONTEXT))


def only(found: Proved) -> ChunkEvent:
    [event] = found.events
    return event


def test_an_answer_to_the_newest_prompt_has_both_times() -> None:
    raw = {**ANSWER, "event_time": "2026-03-02", "due_time": "2026-03-06", "due_quote": "Friday"}

    [event] = read_answer({"events": [raw]}, 3).events

    assert (event.event_time, event.due) == (WRITTEN, Due(FRIDAY, "Friday"))


@pytest.mark.parametrize("prompt", [1, 2])
def test_in_an_answer_to_an_older_prompt_the_time_of_a_promise_is_when_it_is_due(
    prompt: int,
) -> None:
    [event] = read_answer({"events": [ANSWER]}, prompt).events

    assert (event.event_time, event.due) == (None, Due(FRIDAY))


def test_only_a_commitment_is_due() -> None:
    raw = {**ANSWER, "category": "Decision", "due_time": "2026-03-06", "due_quote": "Friday"}

    [event] = read_answer({"events": [raw]}, 3).events

    assert (event.event_time, event.due) == (FRIDAY, None)


def test_the_words_of_a_due_date_are_the_text_at_their_offsets() -> None:
    due = only(proved(Due(FRIDAY, "by  friday"))).due

    assert due == Due(FRIDAY, "by Friday", 1036, 1045)
    assert TEXT[36:45] == "by Friday"


@pytest.mark.parametrize(
    "due",
    [
        pytest.param(Due(FRIDAY, "by Thursday"), id="words that stand nowhere"),
        pytest.param(Due(FRIDAY, "2026-05-01"), id="words that state another day"),
        pytest.param(Due(FRIDAY, "May"), id="another month"),
        pytest.param(Due(FRIDAY, "the report … Friday"), id="words put together"),
        pytest.param(Due(FRIDAY, "…"), id="no words"),
    ],
)
def test_a_due_date_that_the_text_does_not_state_is_left_out_and_reported(due: Due) -> None:
    proof = proved(due)

    assert only(proof).due is None
    assert [item.reason for item in proof.rejected] == ["DUE_NOT_IN_TEXT"]


def test_words_far_from_the_promise_do_not_prove_its_due_date() -> None:
    far = TEXT + " And so on." * 60 + " It was on 2026-03-06."

    assert only(proved(Due(FRIDAY, "2026-03-06"), far)).due is None


def test_a_due_date_without_words_is_the_extractors_reading() -> None:
    assert only(proved(Due(FRIDAY))).due == Due(FRIDAY)


def test_a_time_of_day_in_another_zone_states_the_same_day() -> None:
    late = datetime(2026, 5, 1, tzinfo=UTC) + timedelta(hours=31)

    assert only(proved(Due(late, "on 2026-05-01"))).due is not None
    assert only(proved(replace(Due(late, "on 2026-05-01"), time=FRIDAY))).due is None


def test_the_rules_say_when_it_was_promised_and_when_it_is_due() -> None:
    [event] = [e for e in propose(TEXT, CONTEXT).events if e.category is Category.COMMITMENT]

    assert event.event_time == WRITTEN
    assert event.due is not None
    assert (event.due.time, event.due.quote) == (FRIDAY, "Friday")
    assert only(proved(event.due)).due == Due(FRIDAY, "Friday", 1039, 1045)
