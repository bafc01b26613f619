"""When: dates are read against the day of the text, or not at all."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from memory_core.extraction.model import DocumentContext
from memory_core.extraction.rules import propose

TUESDAY = datetime(2024, 3, 5, 10, 0, tzinfo=UTC)
DATED = DocumentContext("note", author="Ann Lee", date=TUESDAY)
UNDATED = DocumentContext("note", author="Ann Lee")

DUE = [
    pytest.param("by 2024-04-01", "2024-04-01", id="iso"),
    pytest.param("by 12 March", "2024-03-12", id="day month"),
    pytest.param("by March 12th", "2024-03-12", id="month day"),
    pytest.param("by 12 January", "2025-01-12", id="next year"),
    pytest.param("by 12 March 2025", "2025-03-12", id="with year"),
    pytest.param("by tomorrow", "2024-03-06", id="tomorrow"),
    pytest.param("by Friday", "2024-03-08", id="weekday"),
    pytest.param("by next Friday", "2024-03-15", id="next weekday"),
    pytest.param("by Friday 15 March", "2024-03-15", id="weekday with day"),
    pytest.param("by the end of the week", "2024-03-08", id="end of week"),
    pytest.param("by the end of next week", "2024-03-15", id="end of next week"),
    pytest.param("by the end of the month", "2024-03-31", id="end of month"),
    pytest.param("by end of Q1", "2024-03-31", id="end of quarter"),
    pytest.param("by Q2 2025", "2025-06-30", id="quarter with year"),
    pytest.param("by mid-April", "2024-04-15", id="mid month"),
    pytest.param("by the end of April", "2024-04-30", id="end of a month"),
    pytest.param("in two weeks", "2024-03-19", id="in two weeks"),
    pytest.param("by the 16th", "2024-03-16", id="ordinal"),
    pytest.param("by 25/03/2024", "2024-03-25", id="unambiguous numbers"),
    pytest.param("after the demo on Monday, by Friday", "2024-03-08", id="by wins"),
]

NEVER = [
    pytest.param("by 03/04/2024", id="ambiguous numbers"),
    pytest.param("by 31 February", id="no such day"),
    pytest.param("one day", id="no date"),
]

RELATIVE = ["by Friday", "by tomorrow", "by end of Q1", "by 12 March", "in two weeks"]


def due(text: str, context: DocumentContext) -> str | None:
    (event,) = propose(f"I will send the report to Bob {text}.", context).events
    return event.due.time.date().isoformat() if event.due else None


@pytest.mark.parametrize(("phrase", "day"), DUE)
def test_due_date_is_the_commitments_own(phrase: str, day: str) -> None:
    assert due(phrase, DATED) == day


@pytest.mark.parametrize("phrase", NEVER)
def test_unclear_date_stays_open(phrase: str) -> None:
    assert due(phrase, DATED) is None


@pytest.mark.parametrize("phrase", RELATIVE)
def test_relative_date_needs_the_document_date(phrase: str) -> None:
    assert due(phrase, UNDATED) is None


def test_absolute_date_needs_no_document_date() -> None:
    assert due("by 12 March 2025", UNDATED) == "2025-03-12"


def test_time_is_aware_and_in_utc() -> None:
    (event,) = propose("I'll send it by 2024-03-15T14:30:00+02:00.", DATED).events
    assert event.due is not None
    assert event.due.time == datetime(2024, 3, 15, 12, 30, tzinfo=UTC)


def test_day_of_the_writer_counts_not_the_day_in_utc() -> None:
    late = datetime(2024, 3, 5, 23, 30, tzinfo=timezone(timedelta(hours=-5)))
    assert due("by tomorrow", DocumentContext("note", author="Ann", date=late)) == "2024-03-06"


def test_dated_heading_is_nearer_than_the_document_date() -> None:
    text = "## 2024-06-03\n\nBob will send the report by Friday.\n"
    (event,) = propose(text, DATED).events
    assert event.event_time == datetime(2024, 6, 3, tzinfo=UTC)
    assert event.due is not None
    assert event.due.time == datetime(2024, 6, 7, tzinfo=UTC)


def test_heading_without_year_and_document_date_anchors_nothing() -> None:
    (event,) = propose("# Dec 11\n\nBob will send the report by Friday.\n", UNDATED).events
    assert (event.event_time, event.due) == (None, None)


def test_day_line_of_a_chat_anchors_its_messages() -> None:
    text = "#team\nThursday 29 January 2026\n\n[08:55] Ann Lee: I'll send it by Friday\n"
    (event,) = propose(text, DocumentContext("chat")).events
    assert event.due is not None
    assert event.due.time == datetime(2026, 1, 30, tzinfo=UTC)


def test_mail_header_anchors_its_message() -> None:
    text = "From: Ann Lee <a@x.org>\nDate: Tue, 5 Mar 2024 10:00:00 +0000\n\nI'll send it Friday.\n"
    (event,) = propose(text, DocumentContext("email")).events
    assert event.event_time == datetime(2024, 3, 5, tzinfo=UTC)
    assert event.due is not None
    assert event.due.time == datetime(2024, 3, 8, tzinfo=UTC)


def test_decision_happened_on_the_stated_day() -> None:
    (event,) = propose("## 2024-06-03\n\nWe decided to end it on 1 July.\n", UNDATED).events
    assert event.event_time == datetime(2024, 6, 3, tzinfo=UTC)


def test_execution_looks_back() -> None:
    (event,) = propose("Bob fixed the login page yesterday.", DATED).events
    assert event.event_time == datetime(2024, 3, 4, tzinfo=UTC)


@pytest.mark.parametrize("kind", ["note", "email", "chat", "transcript"])
def test_what_is_reported_happened_on_the_day_of_the_document(kind: str) -> None:
    context = DocumentContext(kind, author="Ann Lee", date=TUESDAY)
    events = propose("We decided to keep the old price.", context).events
    assert [event.event_time for event in events] == [datetime(2024, 3, 5, tzinfo=UTC)]


@pytest.mark.parametrize("when", ["last year", "in January", "some time ago", "previously"])
def test_what_was_long_ago_has_no_day(when: str) -> None:
    (event,) = propose(f"Bob fixed the login page {when}.", DATED).events
    assert event.event_time is None


def test_a_specification_happened_on_no_day() -> None:
    (event,) = propose("We decided to use rows.", DocumentContext("doc", date=TUESDAY)).events
    assert event.event_time is None


def test_a_day_that_something_is_moved_to_is_not_when_it_was_moved() -> None:
    (event,) = propose("The meeting was moved to 12 March.", DATED).events
    assert event.event_time == datetime(2024, 3, 5, tzinfo=UTC)


def test_a_document_is_superseded_after_its_own_day() -> None:
    text = "Date: 2024-01-02\n\n## Status\n\nSuperseded by ADR 9\n"
    (event,) = propose(text, DATED).events
    assert event.event_time is None


def test_heading_without_year_takes_that_of_its_neighbour() -> None:
    text = "# 14 January 2025\n\nHello.\n\n# Dec 17\n\nWe decided to wait a week.\n"
    (event,) = propose(text, UNDATED).events
    assert event.event_time == datetime(2024, 12, 17, tzinfo=UTC)


@pytest.mark.parametrize(
    ("said", "day"),
    [
        ("Decision: We decided to launch the beta in May.", "2026-03-02"),
        ("Decision: We decided in November to launch the beta.", None),
        ("Decision: We decided in 2024 to launch the beta.", None),
    ],
)
def test_a_month_ahead_is_what_was_decided_and_not_when(said: str, day: str | None) -> None:
    [event] = propose(f"# Kick-off, 2 March 2026\n\n{said}\n", DocumentContext("note")).events

    assert (event.event_time and event.event_time.date().isoformat()) == day
