"""stakeholder_map, commitment_list and timeline: who, what by when, and in which order."""

import pytest

from memory_core.events import stakeholders
from tests.integration.planted_events import Event, Garden, Planted
from tests.tool_client import Json, ToolClient

# --- stakeholder_map -------------------------------------------------------------------------


@pytest.fixture
async def staff(garden: Garden) -> Planted:
    planted = await garden.document(
        Event("Alice Chen leads the login redesign.", time="2026-01-01", actors=("Alice Chen",),
              category="Stakeholder"),
        Event("Alice Chen and Bob Ray shipped the login redesign.", time="2026-03-01",
              actors=("Alice Chen", "Bob Ray"), category="Execution"),
        Event("Cleo Park cooked lunch.", actors=("Cleo Park",), category="Execution"),
        source_id="staff",
    )  # fmt: skip
    garden.alias(planted, "Alice Chen", "AC")
    return planted


async def test_who_was_involved(staff: Planted, tools: ToolClient) -> None:
    answer = await tools("stakeholder_map", query='"login redesign"')

    alice, bob = answer["stakeholders"]
    assert (alice["name"], alice["events"], alice["roles"]) == ("Alice Chen", 2, {"owner": 2})
    assert alice["aliases"] == ["AC"]
    assert (alice["first_time"][:10], alice["last_time"][:10]) == ("2026-01-01", "2026-03-01")
    assert {event["event_id"] for event in alice["examples"]} == set(staff.ids[:2])
    assert all(event["evidence"] for event in alice["examples"])
    assert (bob["name"], bob["events"]) == ("Bob Ray", 1)


async def test_a_due_date_is_not_when_a_person_took_part(garden: Garden, tools: ToolClient) -> None:
    planted = await garden.document(
        Event("Alice Chen will paint the hall.", category="Commitment", time="2099-01-01",
              actors=("Alice Chen",)),
        source_id="promise",
    )  # fmt: skip
    garden.sql.execute(
        "UPDATE semantic_event SET event_time = '2026-03-01Z' WHERE event_id = %s", planted.ids
    )

    [alice] = (await tools("stakeholder_map"))["stakeholders"]

    assert (alice["first_time"][:10], alice["last_time"][:10]) == ("2026-03-01", "2026-03-01")


@pytest.mark.usefixtures("staff")
@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({}, ["Alice Chen", "Bob Ray", "Cleo Park"]),
        ({"category": "Execution"}, ["Alice Chen", "Bob Ray", "Cleo Park"]),
        ({"category": "Stakeholder"}, ["Alice Chen"]),
        ({"time_from": "2026-02-01"}, ["Alice Chen", "Bob Ray"]),
        ({"time_to": "2026-02-01"}, ["Alice Chen"]),
        ({"limit": 1}, ["Alice Chen"]),
        ({"query": '"no such thing"'}, []),
        ({"artifact_uid": "uid_0000000000000000"}, []),
    ],
)
async def test_stakeholders_by_filters(
    tools: ToolClient, arguments: Json, names: list[str]
) -> None:
    answer = await tools("stakeholder_map", **arguments)

    assert [person["name"] for person in answer["stakeholders"]] == names


async def test_what_was_done_under_a_name_is_shown_under_that_name(
    garden: Garden, tools: ToolClient
) -> None:
    planted = await garden.document(
        Event("Alice Chen leads the login redesign.", actors=("Alice Chen",)),
        Event("AC and Alice Chen met Acme.", actors=("AC", "Alice Chen", "Acme")),
        source_id="staff",
    )
    garden.alias(planted, "Alice Chen", "AC")
    garden.alias(planted, "Acme", kind="org")

    answer = await tools("stakeholder_map")

    alice, ac, acme = answer["stakeholders"]
    assert (alice["name"], alice["type"], alice["events"]) == ("Alice Chen", "person", 2)
    assert alice["aliases"] == ["AC"]
    assert (ac["name"], ac["events"]) == ("AC", 1)
    assert (acme["name"], acme["type"]) == ("Acme", "org")
    assert answer["total"] == 3


async def test_the_examples_are_the_surest_and_newest(garden: Garden, tools: ToolClient) -> None:
    planted = await garden.document(
        *(Event(f"Alice Chen did thing {number}.", actors=("Alice Chen",), confidence=confidence,
                time=f"2026-01-0{number}")
          for number, confidence in enumerate((0.9, 0.5, 0.9, 0.4, 0.9, 0.9), start=1)),
        source_id="staff",
    )  # fmt: skip

    [alice] = (await tools("stakeholder_map"))["stakeholders"]

    newest_of_sure = [planted.ids[number - 1] for number in (6, 5, 3)]
    assert [event["event_id"] for event in alice["examples"]] == newest_of_sure


@pytest.mark.usefixtures("staff")
async def test_a_map_says_over_how_many_events_it_counts(
    tools: ToolClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = await tools("stakeholder_map", limit=1)
    assert (whole["total"], whole["events_considered"], whole["events_total"]) == (3, 3, 3)

    monkeypatch.setattr(stakeholders, "EVENTS_CONSIDERED", 1)
    monkeypatch.setattr(stakeholders, "MATCHES_CONSIDERED", 1)
    newest = await tools("stakeholder_map")
    best = await tools("stakeholder_map", query='"login redesign"')

    assert {person["name"]: person["events"] for person in newest["stakeholders"]} == {
        "Alice Chen": 1,
        "Bob Ray": 1,
    }
    assert (newest["events_considered"], newest["events_total"]) == (1, 3)
    assert (best["events_considered"], best["events_total"]) == (1, 2)


# --- timeline --------------------------------------------------------------------------------


@pytest.fixture
async def course(garden: Garden) -> Planted:
    return await garden.document(
        Event("The beta closed.", time="2026-03-05T17:00:00Z"),
        Event("The beta opened.", time="2026-03-01T09:00:00Z"),
        Event("The beta was announced.", time="2026-03-01T07:00:00Z", actors=("Alice Chen",)),
        Event("The beta had a logo."),
        Event("Soup was served.", time="2026-03-02T12:00:00Z", subject="canteen"),
        source_id="course",
    )


@pytest.mark.usefixtures("course")
async def test_a_timeline_is_in_order_day_by_day(tools: ToolClient) -> None:
    answer = await tools("timeline")

    assert [(day["day"], [e["narrative"] for e in day["events"]]) for day in answer["days"]] == [
        ("2026-03-01", ["The beta was announced.", "The beta opened."]),
        ("2026-03-02", ["Soup was served."]),
        ("2026-03-05", ["The beta closed."]),
        (None, ["The beta had a logo."]),
    ]
    assert answer["total"] == 5
    assert all(e["evidence"] for day in answer["days"] for e in day["events"])


@pytest.mark.usefixtures("course")
@pytest.mark.parametrize(
    ("arguments", "days", "total"),
    [
        ({"query": '"beta"'}, ["2026-03-01", "2026-03-05", None], 4),
        ({"subject": "canteen"}, ["2026-03-02"], 1),
        ({"actor": "Alice Chen"}, ["2026-03-01"], 1),
        ({"time_from": "2026-03-02", "time_to": "2026-03-04"}, ["2026-03-02"], 1),
        ({"limit": 2}, ["2026-03-02", "2026-03-05"], 5),  # the newest two
        ({"query": '"nothing like it"'}, [], 0),
    ],
)
async def test_a_timeline_by_filters(
    tools: ToolClient, arguments: Json, days: list[str | None], total: int
) -> None:
    answer = await tools("timeline", **arguments)

    assert [day["day"] for day in answer["days"]] == days
    assert answer["total"] == total


@pytest.mark.parametrize("tool", ["stakeholder_map", "timeline", "event_search"])
async def test_an_empty_memory_answers(tools: ToolClient, tool: str) -> None:
    for arguments in ({}, {"query": "anything"}):
        answer = await tools(tool, **arguments)
        assert not any(answer.get(part) for part in ("stakeholders", "days", "events"))
    assert (await tools("commitment_list"))["commitments"] == []


# --- all that take a period ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "name", "arguments"),
    [
        ("artifact_search", "time", {"query": "otter"}),
        ("hybrid_search", "time", {"query": "otter"}),
        ("event_search", "time", {"query": "otter"}),
        ("stakeholder_map", "time", {}),
        ("timeline", "time", {}),
        ("commitment_list", "due", {}),
    ],
)
async def test_a_period_that_ends_before_it_begins_is_refused(
    tools: ToolClient, tool: str, name: str, arguments: Json
) -> None:
    period = {f"{name}_from": "2026-03-02", f"{name}_to": "2026-03-01"}

    error = await tools.refusal(tool, **arguments, **period)

    assert error["error_code"] == "VALIDATION_ERROR"
    assert error["details"] == {"parameter": f"{name}_from"}
    same_day = {f"{name}_from": "2026-03-02", f"{name}_to": "2026-03-02"}
    await tools(tool, **arguments, **same_day)
