"""What the rules find in documents that were read: precision does not fall, unnoticed.

Every event of tests/data/judged.jsonl has a verdict and a reason. A rule that finds something new
there makes the first test fail until a person has read it and written down what it is worth.
"""

from collections import Counter

import pytest

from memory_core.extraction.model import Category
from memory_core.kernel.settings import Settings
from tests.judged_documents import Judged, place_of, proposed, verdicts

LEAST = Settings.model_fields["min_confidence"].default
JUDGED = {verdict.place: verdict for verdict in verdicts()}
FOUND = {place_of(document, event): event for document, event in proposed()}
SHOWN = {place: event for place, event in FOUND.items() if event.confidence >= LEAST}


def test_every_event_has_been_judged() -> None:
    assert [place for place in FOUND if place not in JUDGED] == []


def test_what_was_judged_is_still_found() -> None:
    assert [place for place in JUDGED if place not in FOUND] == []


def test_there_are_enough_to_tell() -> None:
    assert len(JUDGED) >= 300
    assert all(verdict.why for verdict in JUDGED.values())
    counts = Counter(verdict.category for verdict in JUDGED.values())
    assert len(counts) == len(Category)
    assert min(counts.values()) >= 8


def test_of_what_is_shown_almost_all_is_right() -> None:
    assert share_right(0.7) >= 0.97


def test_what_is_said_surely_is_right_nine_times_in_ten() -> None:
    assert share_right(0.8) >= 0.9


def test_what_is_rejected_is_mostly_wrong() -> None:
    rejected = [JUDGED[place].right for place in FOUND if place not in SHOWN]
    assert sum(rejected) < len(rejected) / 2


@pytest.mark.parametrize("verdict", JUDGED.values(), ids=lambda verdict: verdict.quote[:40])
def test_event_is_told_as_it_was_judged(verdict: Judged) -> None:
    event = FOUND[verdict.place]
    day = event.event_time.date().isoformat() if event.event_time else None
    assert event.narrative == verdict.narrative
    assert tuple(actor.ref for actor in event.actors) == verdict.actors
    assert day == verdict.day
    assert (event.due.time.date().isoformat() if event.due else None) == verdict.due


def share_right(least: float) -> float:
    sure = [JUDGED[place].right for place, event in FOUND.items() if event.confidence >= least]
    return sum(sure) / len(sure)
