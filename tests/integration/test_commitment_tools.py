"""What became of promises: commitment_list."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from memory_core.events.commitments import list_commitments
from memory_core.runtime import Runtime
from tests.integration import demo_corpus
from tests.integration.planted_events import Event, Garden, Planted, ingest
from tests.tool_client import ToolClient

NOW = datetime(2026, 2, 1, tzinfo=UTC)


def promise(text: str, due: str | None, *actors: str) -> Event:
    return Event(text, category="Commitment", time=due, actors=actors)


@pytest.fixture
async def promises(garden: Garden) -> Planted:
    planted = await garden.document(
        promise("Alice Chen will deliver the parser module.", "2026-01-15", "Alice Chen"),
        promise("Alice Chen will write the migration guide.", "2026-01-20", "Alice Chen"),
        promise("Bob Ray will paint the meeting room.", "2026-03-01", "Bob Ray"),
        promise("Bob Ray will think about the canteen menu.", None, "Bob Ray"),
        source_id="promises",
        ts="2026-01-01T00:00:00Z",
    )
    await garden.document(
        Event("Alice Chen delivered the parser module.", category="Execution",
              time="2026-01-14", actors=("Alice Chen",)),
        Event("Bob Ray wrote the migration guide for something else.", category="Execution",
              time="2026-01-14", actors=("Bob Ray",)),
        source_id="report",
        ts="2026-01-14T00:00:00Z",
    )  # fmt: skip
    return planted


async def statuses(runtime: Runtime, **arguments: Any) -> list[tuple[str, str]]:
    values: dict[str, Any] = {
        "actor": None, "due_from": None, "due_to": None, "status": None, "limit": 20, "now": NOW,
    }  # fmt: skip
    page = await list_commitments(runtime, **{**values, **arguments})
    return [(item.status, item.event.narrative) for item in page.commitments]


@pytest.mark.usefixtures("promises")
async def test_what_became_of_each_promise(runtime: Runtime) -> None:
    assert await statuses(runtime) == [
        ("done", "Alice Chen will deliver the parser module."),
        ("overdue", "Alice Chen will write the migration guide."),
        ("open", "Bob Ray will paint the meeting room."),
        ("open", "Bob Ray will think about the canteen menu."),
    ]


@pytest.mark.usefixtures("promises")
@pytest.mark.parametrize(
    ("status", "promised"),
    [
        ("done", ["the parser module."]),
        ("overdue", ["the migration guide."]),
        # Without a date a promise cannot be late, but it is not done.
        ("open", ["the meeting room.", "the canteen menu."]),
        ("unknown", ["the canteen menu."]),
    ],
)
async def test_promises_by_status(runtime: Runtime, status: str, promised: list[str]) -> None:
    texts = [" ".join(text.split()[-3:]) for _, text in await statuses(runtime, status=status)]

    assert texts == promised


@pytest.mark.usefixtures("promises")
@pytest.mark.parametrize(
    ("now", "status"),
    [
        (datetime(2026, 1, 20, tzinfo=UTC), "open"),
        (datetime(2026, 1, 20, 0, 0, 1, tzinfo=UTC), "open"),
        (datetime(2026, 1, 20, 23, 59, 59, tzinfo=UTC), "open"),
        (datetime(2026, 1, 21, tzinfo=UTC), "overdue"),
        # The day is that of UTC, wherever the clock stands.
        (datetime(2026, 1, 21, 0, 30, tzinfo=timezone(timedelta(hours=1))), "open"),
    ],
)
async def test_what_is_due_on_a_day_is_late_when_the_day_is_over(
    runtime: Runtime, now: datetime, status: str
) -> None:
    guide = "Alice Chen will write the migration guide."

    assert (status, guide) in await statuses(runtime, now=now)
    assert (status, guide) in await statuses(runtime, now=now, status=status)


async def test_what_is_due_at_a_time_of_day_is_late_after_it(
    garden: Garden, runtime: Runtime
) -> None:
    await garden.document(promise("A will sing.", "2026-01-20T09:00:00Z", "A B"), source_id="1")

    for minute, status in ((59, "open"), (61, "overdue")):
        now = datetime(2026, 1, 20, 8, tzinfo=UTC) + timedelta(minutes=minute)
        assert await statuses(runtime, now=now) == [(status, "A will sing.")]
        assert len(await statuses(runtime, now=now, status=status)) == 1


@pytest.mark.usefixtures("promises")
async def test_promises_by_due_date_and_actor(runtime: Runtime) -> None:
    january = datetime(2026, 1, 18, tzinfo=UTC)

    assert [text for _, text in await statuses(runtime, due_to=january)] == [
        "Alice Chen will deliver the parser module."
    ]
    assert len(await statuses(runtime, due_from=january)) == 2
    assert len(await statuses(runtime, actor="Bob Ray")) == 2
    assert len(await statuses(runtime, limit=1)) == 1


@pytest.mark.usefixtures("promises")
async def test_a_promise_kept_comes_with_both_quotes(tools: ToolClient) -> None:
    answer = await tools("commitment_list", actor="Alice Chen", status="done")

    [item] = answer["commitments"]
    assert item["due"][:10] == "2026-01-15"
    assert item["promised"]["evidence"][0]["quote"] == "Alice Chen will deliver the parser module."
    assert item["fulfilled_by"]["evidence"][0]["quote"] == "Alice Chen delivered the parser module."


async def test_what_was_done_before_it_was_promised_does_not_count(
    garden: Garden, runtime: Runtime
) -> None:
    await garden.document(
        Event("Alice Chen delivered the parser module.", category="Execution",
              time="2025-12-01", actors=("Alice Chen",)),
        source_id="report",
        ts="2025-12-01T00:00:00Z",
    )  # fmt: skip
    await garden.document(
        promise("Alice Chen will deliver the parser module.", "2026-01-15", "Alice Chen"),
        source_id="promise",
        ts="2026-01-01T00:00:00Z",
    )

    assert [status for status, _ in await statuses(runtime)] == ["overdue"]


async def test_a_report_without_an_actor_counts(garden: Garden, runtime: Runtime) -> None:
    await garden.document(
        promise("Alice Chen will deliver the parser module.", "2026-01-15", "Alice Chen"),
        source_id="promise",
        ts="2026-01-01T00:00:00Z",
    )
    await garden.document(
        Event("The parser module was delivered.", category="Execution", time="2026-01-10"),
        source_id="report",
        ts="2026-01-10T00:00:00Z",
    )

    assert [status for status, _ in await statuses(runtime)] == ["done"]


def report(text: str, *actors: str, time: str | None = None) -> Event:
    return Event(text, category="Execution", time=time, actors=actors or ("Alice Chen",))


JANUARY, FEBRUARY = "2026-01-01T09:00:00Z", "2026-02-01T09:00:00Z"


async def test_the_title_of_a_report_is_not_what_it_says(garden: Garden, runtime: Runtime) -> None:
    await garden.document(
        promise("Alice Chen will send the beta launch plan.", "2026-03-01", "Alice Chen"),
        source_id="promise", ts=JANUARY,
    )  # fmt: skip
    await garden.document(
        report("Alice Chen sent the icons."),
        source_id="report", ts=FEBRUARY, title="Beta launch plan",
    )  # fmt: skip

    assert [status for status, _ in await statuses(runtime)] == ["open"]


async def test_a_word_may_hold_what_ends_a_quoted_one(garden: Garden, runtime: Runtime) -> None:
    where = "example.com/it's/o'clock"
    await garden.document(
        promise(f"Alice Chen will publish the guide at {where}.", "2026-03-01", "Alice Chen"),
        report(f"Alice Chen published the guide at {where}."),
        source_id="guide",
        ts=JANUARY,
    )

    assert [status for status, _ in await statuses(runtime)] == ["done"]


async def test_when_it_is_due_is_not_what_is_promised(garden: Garden, runtime: Runtime) -> None:
    text = "Alice Chen will send the invoice to Contoso by Wednesday."
    await garden.document(
        replace(promise(text, "2026-01-07", "Alice Chen"), due_quote="Wednesday"),
        source_id="promise", ts=JANUARY,
    )  # fmt: skip
    await garden.document(
        report("Alice Chen has sent the invoice to Contoso."), source_id="report", ts=FEBRUARY
    )

    assert [status for status, _ in await statuses(runtime)] == ["done"]


async def test_a_report_keeps_the_promise_with_its_number(garden: Garden, runtime: Runtime) -> None:
    quarters = [
        promise(f"Alice Chen will send the {quarter} sales report.", "2026-04-10", "Alice Chen")
        for quarter in ("Q1", "Q2")
    ]
    await garden.document(*quarters, source_id="promise", ts=JANUARY)
    await garden.document(
        report("Alice Chen sent the Q1 sales report."), source_id="report", ts=FEBRUARY
    )

    assert {(status, text.split()[5]) for status, text in await statuses(runtime)} == {
        ("done", "Q1"),
        ("open", "Q2"),
    }


async def test_a_report_keeps_one_promise_wherever_the_page_ends(
    garden: Garden, runtime: Runtime
) -> None:
    """The other one fits it better and stands on the next page."""
    await garden.document(
        promise("Alice Chen will send the big quarterly sales report.", "2026-03-01",
                "Alice Chen"),
        promise("Alice Chen will send the quarterly sales report.", "2026-03-02", "Alice Chen"),
        source_id="promise", ts=JANUARY,
    )  # fmt: skip
    await garden.document(
        report("Alice Chen sent the quarterly sales report."), source_id="report", ts=FEBRUARY
    )

    assert [status for status, _ in await statuses(runtime)] == ["open", "done"]
    assert [status for status, _ in await statuses(runtime, limit=1)] == ["open"]


async def test_a_promise_made_twice_is_kept_once_for_both(garden: Garden, runtime: Runtime) -> None:
    text = "Alice Chen will deliver the parser module."
    for name in ("first", "again"):
        await garden.document(promise(text, "2026-03-01", "Alice Chen"), source_id=name, ts=JANUARY)
    await garden.document(
        report("Alice Chen delivered the parser module."), source_id="report", ts=FEBRUARY
    )

    assert [status for status, _ in await statuses(runtime)] == ["done", "done"]


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (["promise", "report"], "done"),
        (["report", "promise"], "open"),
    ],
)
async def test_within_a_document_an_undated_report_counts_further_down(
    garden: Garden, runtime: Runtime, lines: list[str], status: str
) -> None:
    said = {
        "promise": promise("Alice Chen will deliver the parser.", "2026-03-01", "Alice Chen"),
        "report": report("Alice Chen delivered the parser."),
    }
    await garden.document(*(said[line] for line in lines), source_id="minutes", ts=JANUARY)

    assert [found for found, _ in await statuses(runtime)] == [status]


@pytest.mark.parametrize(("told", "status"), [("2025-12-01", "open"), (FEBRUARY, "done")])
async def test_an_undated_report_counts_from_a_later_document(
    garden: Garden, runtime: Runtime, told: str, status: str
) -> None:
    await garden.document(
        promise("Alice Chen will deliver the parser.", "2026-03-01", "Alice Chen"),
        source_id="promise", ts=JANUARY,
    )  # fmt: skip
    await garden.document(report("Alice Chen delivered the parser."), source_id="report", ts=told)

    assert [found for found, _ in await statuses(runtime)] == [status]


async def test_who_is_promised_something_has_not_promised_it(
    garden: Garden, runtime: Runtime
) -> None:
    await garden.document(
        Event("Bob Ray will send Alice Chen the signed contract.", category="Commitment",
              time="2026-03-01", actors=("Bob Ray", "Alice Chen"), roles=("owner", "stakeholder")),
        Event("Cleo Park will pay.", category="Commitment", actors=("Cleo Park",),
              roles=("other",)),
        source_id="promise", ts=JANUARY,
    )  # fmt: skip
    await garden.document(
        report("Alice Chen sent the signed contract back."), source_id="report", ts=FEBRUARY
    )

    assert await statuses(runtime, actor="Alice Chen") == []
    assert [status for status, _ in await statuses(runtime, actor="Bob Ray")] == ["open"]
    assert len(await statuses(runtime, actor="Cleo Park")) == 1, "no other could promise it"


async def test_one_open_promise_behind_many_overdue_ones_is_found(
    garden: Garden, tools: ToolClient, runtime: Runtime
) -> None:
    await garden.document(
        *(promise(f"Bob Ray will paint room {number}.", "2026-01-02", "Bob Ray")
          for number in range(20)),
        promise("Bob Ray will paint the hall.", "2999-01-01", "Bob Ray"),
        source_id="promises",
    )  # fmt: skip
    garden.sql.execute(
        "INSERT INTO semantic_event (artifact_uid, revision_id, category, due_time, narrative, "
        "subject_json, actors_json, confidence, extraction_run_id) "
        "SELECT artifact_uid, revision_id, category, due_time, narrative, subject_json, "
        "actors_json, confidence, extraction_run_id "
        "FROM semantic_event, generate_series(1, 100) WHERE due_time < '2027-01-01'"
    )

    answer = await tools("commitment_list", status="open")
    overdue = await tools("commitment_list", status="overdue", limit=5)
    every = await tools("commitment_list", limit=5)

    assert [item["promised"]["narrative"] for item in answer["commitments"]] == [
        "Bob Ray will paint the hall."
    ]
    assert (answer["total"], answer["truncated"]) == (1, False)
    assert (len(overdue["commitments"]), overdue["total"], overdue["truncated"]) == (5, None, True)
    assert (len(every["commitments"]), every["total"], every["truncated"]) == (5, 2021, True)


@pytest.mark.usefixtures("promises")
async def test_an_upper_bound_without_a_time_is_the_end_of_its_day(tools: ToolClient) -> None:
    for due_to, many in (("2026-01-14", 0), ("2026-01-15", 1), ("2026-01-14T23:59:59Z", 0)):
        answer = await tools("commitment_list", due_to=due_to)
        assert len(answer["commitments"]) == many, due_to


async def test_superseded_promises_are_gone(garden: Garden, runtime: Runtime) -> None:
    await garden.document(promise("A will sing.", "2026-01-15", "A B"), source_id="promise")
    await garden.document(promise("A will dance.", "2026-01-16", "A B"), source_id="promise")

    assert [text for _, text in await statuses(runtime)] == ["A will dance."]


async def test_a_promise_quoted_in_a_reply_is_not_a_new_one(
    tools: ToolClient, runtime: Runtime
) -> None:
    """Two real mails through the real extractor: the second quotes the first below its answer."""
    first = (
        "From: Alice Chen <alice@example.com>\nTo: Bob Ray <bob@example.com>\n"
        "Subject: Parser\nDate: Mon, 5 Jan 2026 09:00:00 +0000\n\n"
        "I will deliver the parser module by 15 January 2026.\n"
    )
    reply = (
        "From: Bob Ray <bob@example.com>\nTo: Alice Chen <alice@example.com>\n"
        "Subject: Re: Parser\nDate: Tue, 6 Jan 2026 09:00:00 +0000\n\n"
        "Thank you, that helps.\n\n"
        "On Mon, 5 Jan 2026, Alice Chen wrote:\n"
        "> I will deliver the parser module by 15 January 2026.\n"
    )
    sent = {"artifact_type": "email", "source_system": "gmail"}
    await ingest(
        tools, first, source_id="1", author="Alice Chen", ts="2026-01-05T09:00:00Z", **sent
    )
    await ingest(tools, reply, source_id="2", author="Bob Ray", ts="2026-01-06", **sent)
    await demo_corpus.extract_pending(runtime)

    answer = await tools("commitment_list")

    assert len(answer["commitments"]) == 1
    actors = answer["commitments"][0]["promised"]["actors"]
    assert "Bob Ray" not in {actor["ref"] for actor in actors}
