"""Which events of two revisions tell of the same occurrence, also where there are thousands."""

import pytest

from memory_core.events import diff
from memory_core.events.diff import match
from memory_core.events.stored_events import ProvedEvents
from tests.stored_event import stored_event, stored_evidence


def revision(*told: tuple[str, str]) -> ProvedEvents:
    """Of narratives and quotes."""
    events = [stored_event(narrative) for narrative, _ in told]
    evidence = {
        event.event_id: [stored_evidence(event, quote)]
        for event, (_, quote) in zip(events, told, strict=True)
    }
    return ProvedEvents(events, evidence)


def narratives(before: ProvedEvents, after: ProvedEvents) -> set[tuple[str, str]]:
    pairs, _, _ = match(before, after)
    return {(old.narrative, new.narrative) for old, new in pairs}


def test_the_same_quote_comes_before_the_likest_narrative() -> None:
    before = revision(("The price is fixed at ten.", "ten it is"))
    after = revision(
        ("The price is fixed at two.", "two it is"), ("Ten was chosen as price.", "ten it is")
    )

    assert narratives(before, after) == {("The price is fixed at ten.", "Ten was chosen as price.")}


def test_nearly_the_same_quote_is_enough() -> None:
    before = revision(("Ten was chosen.", "we charge ten per seat from May on"))
    after = revision(("They settled the price.", "we charge ten per seat from May on!"))

    assert len(narratives(before, after)) == 1


def test_what_has_nothing_in_common_is_left() -> None:
    pairs, removed, added = match(revision(("Ten.", "ten")), revision(("A bird sang.", "birds")))

    assert (pairs, len(removed), len(added)) == ([], 1, 1)


def test_thousands_that_are_the_same_are_not_compared_with_each_other() -> None:
    """All quote the same; each is found again by what it tells."""
    statements = [(f"Request {number} was approved.", "Approved.") for number in range(4_000)]

    pairs, removed, added = match(revision(*statements), revision(*reversed(statements)))

    assert all(old.narrative == new.narrative for old, new in pairs)
    assert (len(pairs), removed, added) == (4_000, [], [])


def test_of_thousands_that_differ_a_bounded_number_is_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(diff, "COMPARED_EVENTS", 2)
    before = revision(*((f"Number {n} was moved.", f"q{n}") for n in range(3)))
    after = revision(*((f"Number {n} was moved!", f"r{n}") for n in range(3)))

    pairs, removed, added = match(before, after)

    assert (len(pairs), len(removed), len(added)) == (2, 1, 1)
