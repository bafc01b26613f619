"""event_search: what people type finds what they mean, and never an error of the database."""

import pytest

from tests.integration.planted_events import Event, Garden, Planted
from tests.integration.searched_events import AUTH, BETA, LUNCH, PRICE_RISK, PRICING, narratives
from tests.tool_client import Json, ToolClient

# --- natural language ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("who decided to charge per location?", PRICING),
        ("what's the deadline for the beta?", BETA),
        ("What’s the deadline for the beta?", BETA),
        ("auth redesign — who?", AUTH),
        ("AUTH REDESIGN!!!", AUTH),
        ("risk: small customers leaving", PRICE_RISK),
        ("🍲 soup 🍲", LUNCH),
        ("(soup)", LUNCH),
        ("soup & canteen | fridays", LUNCH),
        ("soup:* <-> !!", LUNCH),
        ("Tomás", AUTH),
        ("canteens", LUNCH),  # another form of the word
    ],
)
async def test_the_meant_event_comes_first(searched: ToolClient, query: str, first: Event) -> None:
    answer = await searched("event_search", query=query)

    assert narratives(answer)[0] == first.narrative
    assert answer["events"][0]["evidence"][0]["quote"] == first.words
    assert answer["total"] >= len(answer["events"])


async def test_a_decision_about_pricing(searched: ToolClient) -> None:
    """Both events about pricing, before the others; with the category, the one decision."""
    loose = await searched("event_search", query="decision about pricing")
    assert set(narratives(loose)[:2]) == {PRICING.narrative, PRICE_RISK.narrative}

    answer = await searched("event_search", query="decision about pricing", category="Decision")

    assert narratives(answer) == [PRICING.narrative]


FOLLOW_UP = Event("The team decided to hold a follow up meeting on Monday.")
SIGN_UP = Event("Sign up closes on 24 March; that is the deadline for the beta.")
SEATS = Event("Access costs 5.00 per seat since 2026-03-15.")


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("what did we decide about the follow-up meeting?", FOLLOW_UP),
        ("when is the sign-up deadline for beta customers?", SIGN_UP),
        ("beta - what is the deadline?", SIGN_UP),
        ("deadline - beta", SIGN_UP),
        ("prices since 2026-03-15", SEATS),
        ("$5.00/seat", SEATS),
        ("did the team decide or postpone the meeting?", FOLLOW_UP),
    ],
)
@pytest.mark.parametrize("sort", ["relevance", "time"])
async def test_hyphens_and_slashes_are_no_operators(
    garden: Garden, tools: ToolClient, query: str, first: Event, sort: str
) -> None:
    await garden.document(FOLLOW_UP, SIGN_UP, SEATS, LUNCH, source_id="one")

    answer = await tools("event_search", query=query, sort=sort)

    listed = narratives(answer)
    assert first.narrative in listed if sort == "time" else listed[0] == first.narrative
    assert LUNCH.narrative not in listed


async def test_of_a_long_query_two_rare_words_will_do(garden: Garden, tools: ToolClient) -> None:
    """Words that are nowhere do not count, however many; nor does one alone."""
    await garden.document(PRICING, PRICE_RISK, LUNCH, source_id="one")
    nowhere = " ".join(f"xq{number}zv" for number in range(70))

    both = await tools("event_search", query=f"{nowhere} canteen fridays"[-500:])
    one = await tools("event_search", query=f"{nowhere} fridays"[-500:])

    assert LUNCH.narrative in narratives(both)
    assert LUNCH.narrative not in narratives(one)


# --- operators -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('"auth redesign"', {AUTH}),
        ('"redesign auth"', set()),
        ('"per location instead"', {PRICING}),
        ("pricing -customers", {PRICING}),
        ("pricing -location", {PRICE_RISK}),
        ("soup or beta", {LUNCH, BETA}),
        ("soup OR redesign", {LUNCH, AUTH}),
        ('"auth redesign" or soup', {AUTH, LUNCH}),
        ('pricing -"small customers"', {PRICING}),
    ],
)
async def test_operators_are_taken_to_the_letter(
    searched: ToolClient, query: str, expected: set[Event]
) -> None:
    answer = await searched("event_search", query=query)

    assert set(narratives(answer)) == {event.narrative for event in expected}
    assert answer["total"] == len(expected)


async def test_an_exclusion_holds_for_what_is_near_in_meaning(
    garden: Garden, tools: ToolClient
) -> None:
    """The excluded event is the nearest vector of all: its very words are asked for."""
    await garden.document(PRICING, PRICE_RISK, source_id="one")
    near = await tools("event_search", query=PRICE_RISK.narrative)
    assert narratives(near)[0] == PRICE_RISK.narrative

    answer = await tools("event_search", query=f"{PRICE_RISK.narrative} -drive")

    assert PRICE_RISK.narrative not in narratives(answer)


async def test_only_an_exclusion_gives_everything_else(planted: Planted, tools: ToolClient) -> None:
    answer = await tools("event_search", query="-pricing", artifact_uid=planted.uid)

    assert set(narratives(answer)) == {BETA.narrative}


# --- filters ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"category": "Decision"}, {PRICING}),
        ({"category": "Feedback"}, set()),
        ({"actor": "Alice Chen"}, {BETA, AUTH}),
        ({"actor": "alice CHEN "}, {BETA, AUTH}),
        ({"actor": "Tomás Herrera"}, {AUTH}),
        ({"actor": "Nobody Atall"}, set()),
        ({"subject": "pricing model"}, {PRICING, PRICE_RISK}),
        ({"subject": "canteen"}, {LUNCH}),
        ({"min_confidence": 0.9}, {PRICING, BETA, AUTH}),
        ({"min_confidence": 1.0}, set()),
        ({"artifact_type": "email"}, {AUTH, LUNCH}),
        ({"source_system": "test"}, {PRICING, PRICE_RISK, BETA}),
        ({"source_system": "nowhere"}, set()),
        ({"time_from": "2026-01-12"}, {PRICE_RISK, BETA}),
        ({"time_to": "2026-01-10T09:00:00Z"}, {PRICING, AUTH}),
        ({"time_from": "2026-01-10T10:00:00+01:00", "time_to": "2026-02-01"},
         {PRICING, PRICE_RISK}),
        ({"category": "Stakeholder", "actor": "Alice Chen"}, {AUTH}),
        ({"category": "Decision", "actor": "Alice Chen"}, set()),
        ({"subject": "pricing model", "min_confidence": 0.9, "category": "Decision",
          "actor": "Dana Whitlock", "artifact_type": "note", "source_system": "test",
          "time_from": "2026-01-01", "time_to": "2026-12-31"}, {PRICING}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("sort", ["relevance", "time"])
async def test_each_filter_alone_and_together(
    searched: ToolClient, filters: Json, expected: set[Event], sort: str
) -> None:
    answer = await searched("event_search", sort=sort, **filters)

    assert set(narratives(answer)) == {event.narrative for event in expected}
    assert answer["total"] == len(expected)
    assert set(answer["filters_applied"]) == set(filters)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"category": "QualityRisk"}, {PRICE_RISK}),
        ({"actor": "Dana Whitlock"}, {PRICING}),
        ({"artifact_type": "email"}, set()),
        ({"time_to": "2026-01-11"}, {PRICING}),
        ({"min_confidence": 0.9}, {PRICING}),
    ],
)
async def test_filters_hold_for_words(
    searched: ToolClient, filters: Json, expected: set[Event]
) -> None:
    answer = await searched("event_search", query='"pricing" or "charge"', **filters)

    assert set(narratives(answer)) == {event.narrative for event in expected}
    assert answer["filters_applied"]["query"] == '"pricing" or "charge"'


async def test_only_this_document(planted: Planted, tools: ToolClient) -> None:
    answer = await tools("event_search", artifact_uid=planted.uid)

    assert {event["artifact_uid"] for event in answer["events"]} == {planted.uid}
    assert answer["total"] == 3
    assert answer["filters_applied"] == {"artifact_uid": planted.uid}
    assert (await tools("event_search", artifact_uid="uid_0000000000000000"))["total"] == 0


async def test_what_was_applied_is_echoed_as_it_was_understood(searched: ToolClient) -> None:
    answer = await searched(
        "event_search",
        query="pricing",
        category="Decision",
        time_from="2026-01-01",
        time_to="2026-01-31T12:00:00+02:00",
        min_confidence=0.5,
        actor="Dana Whitlock",
        include_superseded=True,
    )

    assert answer["filters_applied"] == {
        "query": "pricing",
        "category": "Decision",
        "time_from": "2026-01-01T00:00:00Z",
        "time_to": "2026-01-31T10:00:00Z",
        "min_confidence": 0.5,
        "actor": "Dana Whitlock",
        "include_superseded": True,
    }


async def test_evidence_only_when_wanted(searched: ToolClient) -> None:
    with_it = await searched("event_search", query="pricing")
    without = await searched("event_search", query="pricing", include_evidence=False)

    assert all(event["evidence"] for event in with_it["events"])
    assert without["events"]
    assert not [event for event in without["events"] if "evidence" in event]
    assert narratives(with_it) == narratives(without)


async def test_sorted_by_time_the_newest_match_is_first(searched: ToolClient) -> None:
    answer = await searched("event_search", query="pricing or redesign or soup", sort="time")

    assert narratives(answer) == [e.narrative for e in (PRICE_RISK, PRICING, AUTH, LUNCH)]


def when(event: Json) -> str:
    """A commitment stands where it is due."""
    due = event.get("due")
    return (due["time"] if due else event["event_time"]) or ""


@pytest.mark.parametrize(
    "query",
    [
        "pricing",
        "decision about pricing",
        "who looks after sign-in?",
        "client billing complaint",
        "-pricing",
    ],
)
@pytest.mark.parametrize("filters", [{}, {"category": "QualityRisk"}, {"actor": "Alice Chen"}])
async def test_sorting_changes_the_order_alone(
    searched: ToolClient, query: str, filters: Json
) -> None:
    by_relevance = await searched("event_search", query=query, **filters)
    by_time = await searched("event_search", query=query, sort="time", **filters)

    assert by_relevance["total"] == by_time["total"]
    assert set(narratives(by_relevance)) == set(narratives(by_time))
    times = [when(event) for event in by_time["events"]]
    assert times == sorted(times, reverse=True)
