"""A model's answer is believed event by event."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from memory_core.extraction.answer import is_answer, read_answer
from memory_core.extraction.model import (
    Actor,
    ActorRole,
    Category,
    Entity,
    EntityType,
    ProposedEvent,
    ProposedQuote,
    Subject,
    SubjectType,
)

PROMPT = 3
GOOD: dict[str, Any] = {
    "category": "Decision",
    "subject": {"type": "project", "ref": " Lantern "},
    "actors": [{"ref": "Alice Chen", "role": "owner"}],
    "event_time": "2026-03-15T14:30:00+02:00",
    "narrative": "The team decided to launch in May.",
    "evidence": {"quote": "we launch in May", "start_char": 4, "end_char": 20},
    "confidence": 0.8,
}
LONE, NUL = "\ud800", "\x00"


def changed(**changes: Any) -> dict[str, Any]:
    """The good event, with these fields. A name with a dot goes one level down."""
    event = json.loads(json.dumps(GOOD))
    for name, value in changes.items():
        outer, _, inner = name.partition("__")
        if inner:
            event[outer][inner] = value
        else:
            event[outer] = value
    return event


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in GOOD.items() if key != name}


def test_a_good_event_is_read_whole() -> None:
    [event] = read_answer({"events": [GOOD]}, PROMPT).events

    assert event == ProposedEvent(
        category=Category.DECISION,
        subject=Subject(SubjectType.PROJECT, "Lantern"),
        narrative="The team decided to launch in May.",
        quote=ProposedQuote("we launch in May", 4, 20),
        confidence=0.8,
        actors=(Actor("Alice Chen", ActorRole.OWNER),),
        event_time=datetime(2026, 3, 15, 12, 30, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        pytest.param(changed(category="Gossip"), "category", id="category"),
        pytest.param(changed(category="decision"), "category", id="category's case"),
        pytest.param(changed(category=LONE), "category", id="category is no text"),
        pytest.param(changed(category=None), "category", id="no category"),
        pytest.param(changed(subject__type="planet"), "subject.type", id="subject's type"),
        pytest.param(changed(subject__ref="  "), "subject.ref", id="subject without a name"),
        pytest.param(changed(subject="Lantern"), "subject", id="subject as a string"),
        pytest.param(
            changed(actors=[{"ref": "Al", "role": "boss"}]), "actors.0.role", id="actor's role"
        ),
        pytest.param(
            changed(actors=[{"ref": NUL, "role": "owner"}]), "actors.0.ref", id="actor with U+0000"
        ),
        pytest.param(changed(actors="Alice"), "actors", id="actors as a string"),
        pytest.param(changed(event_time="next Friday"), "event_time", id="time in words"),
        pytest.param(changed(event_time=f"2026-01-0{NUL}"), "event_time", id="time with U+0000"),
        pytest.param(changed(event_time=1_700_000_000), "event_time", id="time as a number"),
        pytest.param(
            changed(event_time="9999-12-31T23:59:59-14:00"), "event_time", id="time past the end"
        ),
        pytest.param(changed(narrative=""), "narrative", id="empty narrative"),
        pytest.param(changed(narrative=" \n"), "narrative", id="blank narrative"),
        pytest.param(changed(narrative="x" * 2_001), "narrative", id="endless narrative"),
        pytest.param(changed(narrative=f"a{NUL}b"), "narrative", id="narrative with U+0000"),
        pytest.param(changed(narrative=f"a{LONE}b"), "narrative", id="narrative, lone surrogate"),
        pytest.param(changed(evidence__quote=""), "evidence.quote", id="empty quote"),
        pytest.param(changed(evidence__quote=LONE), "evidence.quote", id="quote, lone surrogate"),
        pytest.param(changed(evidence__quote=["a"]), "evidence.quote", id="quote as a list"),
        pytest.param(without("evidence"), "evidence", id="no evidence"),
        pytest.param(changed(confidence=1.01), "confidence", id="confidence above 1"),
        pytest.param(changed(confidence=-0.1), "confidence", id="confidence below 0"),
        pytest.param(changed(confidence=float("nan")), "confidence", id="confidence NaN"),
        pytest.param(changed(confidence=float("inf")), "confidence", id="confidence infinite"),
        pytest.param(changed(confidence="sure"), "confidence", id="confidence in words"),
        pytest.param(without("confidence"), "confidence", id="no confidence"),
        pytest.param("an event", "event", id="a string"),
        pytest.param(None, "event", id="null"),
        pytest.param([GOOD], "event", id="a list"),
    ],
)
def test_a_faulty_event_costs_itself_and_its_reason_is_kept(bad: Any, field: str) -> None:
    proposal = read_answer({"events": [GOOD, bad, changed(narrative="Another.")]}, PROMPT)

    assert [event.narrative for event in proposal.events] == [GOOD["narrative"], "Another."]
    [rejected] = proposal.rejections
    assert rejected.reason == "INVALID_FIELD"
    assert rejected.detail.startswith(f"{field}: ")
    rejected.detail.encode()
    assert NUL not in rejected.detail


@pytest.mark.parametrize("offset", [None, -1, 10**30, 1.5, "12", "x", float("nan"), [], LONE])
def test_an_offset_is_a_hint_and_a_bad_one_costs_nothing(offset: Any) -> None:
    bad = changed(evidence__start_char=offset, evidence__end_char=offset)
    proposal = read_answer({"events": [bad]}, PROMPT)

    assert [event.quote.quote for event in proposal.events] == ["we launch in May"]
    assert proposal.rejections == ()


@pytest.mark.parametrize("time", [None, "", "  "])
def test_an_event_may_have_no_time(time: str | None) -> None:
    [event] = read_answer({"events": [changed(event_time=time)]}, PROMPT).events

    assert event.event_time is None


def test_a_time_without_an_offset_is_utc() -> None:
    [event] = read_answer({"events": [changed(event_time="2026-03-15")]}, PROMPT).events

    assert event.event_time == datetime(2026, 3, 15, tzinfo=UTC)


def test_faulty_entities_are_left_out() -> None:
    entities: list[Any] = [
        {"name": "Alice Chen", "type": "person", "aliases": ["Al", "Al", "Ms Chen"]},
        {"name": "Lantern", "type": "lamp", "aliases": []},
        {"name": LONE, "type": "person", "aliases": []},
        {"name": "Bob", "type": "person", "aliases": [NUL]},
        "Carol",
        {"name": "Keyhaven", "type": "org"},
    ]
    proposal = read_answer({"events": [], "entities": entities}, PROMPT)

    assert proposal.entities == (
        Entity("Alice Chen", EntityType.PERSON, ("Al", "Ms Chen")),
        Entity("Keyhaven", EntityType.ORG),
    )


@pytest.mark.parametrize("entities", [None, {}, "Alice", 3])
def test_entities_of_another_shape_are_none(entities: Any) -> None:
    assert read_answer({"events": [], "entities": entities}, PROMPT).entities == ()


@pytest.mark.parametrize("raw", [None, [], "events", {}, {"events": None}, {"events": {}}])
def test_without_a_list_of_events_it_is_no_answer(raw: Any) -> None:
    assert not is_answer(raw)


def test_an_empty_list_of_events_is_an_answer() -> None:
    assert is_answer({"events": []})
