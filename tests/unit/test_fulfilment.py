"""Whether a report tells that a promise was kept: by its words, its numbers, its act and its time.

Stems are taken as Postgres would, as far as these sentences need it.
"""

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.events.fulfilment import Promises, StatedEvent, Statement, keeps, kept
from memory_core.kernel.database import columns
from tests.stored_event import stored_event

JANUARY = datetime(2026, 1, 5, 9, tzinfo=UTC)
FEBRUARY = datetime(2026, 2, 5, 9, tzinfo=UTC)
DUE = datetime(2026, 3, 13, tzinfo=UTC)
_STOP = {"alice", "chen", "the", "will", "was", "has", "had", "been", "and", "for", "march",
         "mar", "end", "until", "responsible"}  # fmt: skip


def stems(text: str) -> list[str]:
    words = re.findall(r"[a-z]{3,}", text.lower())
    return [re.sub(r"(?:ed|ing|s|e)$", "", word) for word in words if word not in _STOP]


def statement(text: str, *, said_at: datetime = JANUARY, time: datetime | None = DUE,
              who: str = "alice chen", document: str = "rev_1") -> Statement:  # fmt: skip
    event = replace(stored_event(text, category="Commitment"), revision_id=document, due_time=time)
    return Statement.of(
        StatedEvent(
            **columns(event),
            quotes="",
            said_at=said_at,
            place=0,
            who=[who] if who else [],
            own_words=stems(text),
            told_words=stems(text),
        )
    )


def is_kept(promised: str, told: str, *, due: datetime | None = DUE) -> bool:
    promise = statement(promised, time=due)
    return keeps(statement(told, said_at=FEBRUARY, time=None, document="rev_2"), promise) > 0


@pytest.mark.parametrize(
    ("promised", "told"),
    [
        ("Alice Chen will deliver the parser module.", "Alice Chen delivered the parser module."),
        ("Alice Chen will write the pricing report.", "Alice Chen has written the pricing report."),
        ("AC will deliver the session API by March 13th.", "The session API was completed."),
        ("I'll have the login page in customers' hands.", "The login page is live for customers."),
        ("AC to deliver the login service to staging.", "The login service is on staging."),
        ("Alice Chen will send the sales report.", "Alice Chen shared the sales report."),
        ("Alice Chen will paint the meeting room.", "The meeting room was painted."),
        ("Alice Chen will send the Q1 sales report.", "Alice Chen sent the Q1 sales report."),
        ("The pricing page will be live.", "The pricing page is live."),
        ("The pricing report will be reviewed.", "Alice Chen reviewed the pricing report."),
    ],
)
def test_what_keeps_a_promise(promised: str, told: str) -> None:
    assert is_kept(promised, told)


@pytest.mark.parametrize(
    ("promised", "told"),
    [
        # another act
        ("Alice Chen will review the pricing report.", "Alice Chen wrote the pricing report."),
        ("Alice Chen will send the pricing report.", "Alice Chen wrote the pricing report."),
        ("Alice Chen will deliver the pricing report.", "Alice Chen reviewed the pricing report."),
        ("Alice Chen will review the pricing report.", "The pricing report is complete."),
        ("Alice Chen will paint the meeting room.", "Alice Chen cleaned the meeting room."),
        ("I'll have the login page in customers' hands.", "Customers have reviewed the login "
         "page in their hands."),
        ("The pricing report will be reviewed.", "The pricing report was written."),
        ("Alice Chen commits to the goal to test the pricing report.", "Alice Chen wrote the goal "
         "of the pricing report."),
        # not done
        ("Alice Chen will write the pricing report.", "Alice Chen started the pricing report."),
        ("Alice Chen will write the pricing report.", "Alice Chen has not written the pricing "
         "report."),
        ("Alice Chen will not publish the pricing report.", "The pricing report was published."),
        # another number
        ("Alice Chen will send the Q2 sales report.", "Alice Chen sent the Q1 sales report."),
        ("Alice Chen will send the Q1 sales report.", "Alice Chen sent the sales report."),
        ("Alice Chen will release version 2.1 of the parser.", "Version 2.0 of the parser was "
         "released."),
        # too little in common
        ("Alice Chen will send the beta launch plan.", "Alice Chen sent the icons."),
        ("Alice Chen will send the marketing report.", "Alice Chen sent the sales report."),
    ],
)  # fmt: skip
def test_what_does_not(promised: str, told: str) -> None:
    assert not is_kept(promised, told)


@pytest.mark.parametrize(
    "when",
    ["by 13 March 2026", "by March 13th", "by the 13th of March", "by 2026-03-13", "by Q1",
     "by the end of Q1", "by 13 March, 5pm", "until 13 Mar."],
)  # fmt: skip
def test_the_numbers_of_the_due_date_need_not_be_told_again(when: str) -> None:
    assert is_kept(f"Alice Chen will deliver the parser {when}.", "The parser was delivered.")


def test_a_number_that_is_also_in_the_due_date_is_still_a_number() -> None:
    promised = "Alice Chen will send the Q1 sales report by 13 March."

    assert statement(promised).numbers == {"q1"}
    assert not is_kept(promised, "Alice Chen sent the sales report.")


@pytest.mark.parametrize(
    ("time", "later"),
    [
        (datetime(2026, 1, 4, tzinfo=UTC), False),
        (datetime(2026, 1, 5, tzinfo=UTC), True),  # of that day, which is all that is known
        (datetime(2026, 1, 6, tzinfo=UTC), True),
    ],
)
def test_a_dated_report_counts_from_the_day_of_the_promise(time: datetime, later: bool) -> None:
    promise = statement("Alice Chen will deliver the parser.")
    report = statement("Alice Chen delivered the parser.", said_at=FEBRUARY, time=time,
                     document="rev_2")  # fmt: skip

    assert (keeps(report, promise) > 0) is later


def test_the_report_of_another_person_does_not_count_and_one_without_a_person_does() -> None:
    promise = statement("Alice Chen will deliver the parser.")
    for who, counts in (("bob ray", False), ("", True)):
        report = statement("The parser was delivered.", said_at=FEBRUARY, time=None, who=who,
                         document="rev_2")  # fmt: skip
        assert (keeps(report, promise) > 0) is counts


def test_a_promise_told_again_in_other_words_is_kept_with_it() -> None:
    """Minutes and the table of who does what say the same; a report that is due later does not."""
    first = statement("Alice Chen will deliver the new login service to staging.")
    again = statement("Alice Chen is responsible for: login service on staging.", document="rev_2")
    later = statement("Alice Chen will deliver the new login service to staging.",
                      time=FEBRUARY, document="rev_3")  # fmt: skip
    report = statement("The login service is on staging.", said_at=FEBRUARY, document="rev_4")

    assert set(kept([first, again, later], [report])) == {first.event_id, again.event_id}


_ACTS = ["send", "write", "fix", "review"]
_THINGS = ["pricing report", "launch plan", "parser module", "final pricing report", "plan"]


@st.composite
def sentences(draw: st.DrawFn) -> tuple[list[Statement], list[Statement]]:
    """Promises and reports of few words, so that many of them are nearly the same."""

    def some(form: str) -> list[str]:
        pairs = st.tuples(st.sampled_from(_ACTS), st.sampled_from(_THINGS))
        return [form.format(*pair) for pair in draw(st.lists(pairs, max_size=12))]

    promises = [statement(text) for text in some("Alice Chen will {} the {}.")]
    reports = some("Alice Chen {}ed the {}.") + some("{} of the {} is done.")
    said = [statement(text, said_at=FEBRUARY, time=None, document="rev_2") for text in reports]
    return promises, said


@given(sentences())
def test_looking_up_by_words_finds_what_comparing_all_with_all_would(
    both: tuple[list[Statement], list[Statement]],
) -> None:
    promises, reports = both
    kept = Promises(promises)

    for report in reports:
        everything = [(keeps(report, promise), promise) for promise in promises]
        assert kept.kept_by(report) == [fit for fit in everything if fit[0]]
