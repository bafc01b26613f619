"""event_search: what people type finds what they mean, and never an error of the database."""

import asyncio
from typing import Any

import psycopg
import pytest

from memory_core.index.generation import CollectionName
from memory_core.runtime import Runtime
from memory_core.search import event_matching, event_meaning, events
from memory_core.search.event_filters import EventFilters
from tests.indexing import ids as indexed_ids
from tests.indexing import plant, remove
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


# --- pages -----------------------------------------------------------------------------------


async def pages(tools: ToolClient, size: int, **arguments: Any) -> tuple[list[str], set[int]]:
    """All event ids page by page, and the totals that were given."""
    seen: list[str] = []
    totals = set()
    while True:
        answer = await tools("event_search", limit=size, offset=len(seen), **arguments)
        totals.add(answer["total"])
        seen += [event["event_id"] for event in answer["events"]]
        if len(answer["events"]) < size:
            return seen, totals


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"query": "launch"},
        {"query": "launch", "sort": "time"},
        {"query": "-risky", "sort": "time"},
        {"query": "-risky"},
        {"query": "launch", "category": "Change"},
        {"query": "launch -risky"},
        {"category": "Change"},
    ],
)
async def test_pages_are_disjoint_and_together_everything(
    garden: Garden,
    tools: ToolClient,
    sql: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    arguments: Json,
) -> None:
    """Also past the matches that are ranked: those follow in the order of time."""
    monkeypatch.setattr(event_matching, "RANKED_MATCHES", 8)
    monkeypatch.setattr(event_meaning, "DENSE_HITS", 5)
    events = [
        Event(
            f"Launch step {number} was taken{', which is risky' if number % 7 == 0 else ''}.",
            category="Change" if number % 2 else "Execution",
            time=f"2026-01-{1 + number % 9:02}" if number % 4 else None,
        )
        for number in range(30)
    ]
    await garden.document(*events, source_id="steps")

    seen, totals = await pages(tools, 7, **arguments)

    whole = await tools("event_search", limit=100, **arguments)
    assert seen == [event["event_id"] for event in whole["events"]]
    assert len(seen) == len(set(seen))
    assert totals == {len(seen)}
    condition = "true"
    if "category" in arguments:
        condition = "category = 'Change'"
    elif "-risky" in arguments.get("query", ""):
        condition = "narrative NOT LIKE '%risky%'"
    expected = sql.execute(f"SELECT event_id::text FROM semantic_event WHERE {condition}")
    assert set(seen) == {row[0] for row in expected}


@pytest.mark.parametrize("size", [1, 3, 7])
async def test_pages_by_time_have_matches_by_meaning_between_those_by_words(
    garden: Garden, tools: ToolClient, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """Five by their words; all others count as near."""
    monkeypatch.setattr(event_meaning, "NEAR", 2.0)
    monkeypatch.setattr(event_meaning, "FARTHEST", 2.0)
    events = [
        Event(
            f"Step {number} was taken{', which is risky' if number % 4 == 0 else ''}.",
            time=f"2026-01-{1 + number % 9:02}" if number % 5 else None,
        )
        for number in range(20)
    ]
    await garden.document(*events, source_id="steps")

    seen, totals = await pages(tools, size, query="risky", sort="time")

    listed = await tools("event_search", limit=100)
    assert seen == [event["event_id"] for event in listed["events"]]
    assert totals == {20}


async def test_a_page_beyond_the_end_is_empty_and_knows_the_total(
    planted: Planted, tools: ToolClient
) -> None:
    answer = await tools("event_search", query="pricing", offset=90_000)

    assert answer["events"] == []
    assert answer["total"] == (await tools("event_search", query="pricing"))["total"]


@pytest.mark.parametrize("few", [0, 1_000_000])
async def test_many_matches_and_few_are_ranked_alike(
    garden: Garden, tools: ToolClient, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(event_matching, "FEW_MATCHES", few)
    await garden.document(
        Event("The beta was moved.", time="2026-01-03"),
        Event("The beta launch was moved to May.", time="2026-01-01"),
        Event("The launch was cheerful.", time="2026-01-02"),
        source_id="launch",
    )

    answer = await tools("event_search", query="beta launch")

    assert narratives(answer)[0] == "The beta launch was moved to May."
    assert answer["total"] == 3


async def test_a_rare_word_leads_to_an_event_of_any_age(
    garden: Garden, tools: ToolClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if there were more matches than can be looked at: the newest are not enough."""
    monkeypatch.setattr(event_matching, "LOOKED_AT", 2)
    monkeypatch.setattr(event_matching, "RANKED_MATCHES", 2)
    monkeypatch.setattr(event_matching, "RARE", 1)
    newer = [Event(f"The launch was moved, time {n}.", time="2026-01-03") for n in range(9)]
    for number, event in enumerate(newer):
        await garden.document(event, source_id=f"newer-{number}")
    old = Event("The kiwano launch was cancelled.", time="2019-01-01")
    await garden.document(old, source_id="old")

    answer = await tools("event_search", query="launch kiwano", limit=3)

    assert narratives(answer)[0] == old.narrative
    assert answer["total"] == 10


@pytest.mark.parametrize("ranking", ["scores", "rrf"])
async def test_what_has_more_of_the_words_comes_first(
    garden: Garden, tools: ToolClient, runtime: Runtime, ranking: str
) -> None:
    runtime.settings = runtime.settings.model_copy(update={"ranking": ranking})
    both = Event("The beta launch was moved to May.", time="2026-01-01")
    await garden.document(
        Event("The beta was moved.", time="2026-01-03"),
        both,
        Event("The launch was cheerful.", time="2026-01-02"),
        source_id="launch",
    )

    page = await events.search_events(runtime, "beta launch", EventFilters(), limit=3)

    assert page.events[0].narrative == both.narrative
    # Both words are as rare as each other: one of them alone is not most of what was asked for.
    assert (page.total, page.answering) == (3, 1)


# --- revisions -------------------------------------------------------------------------------


async def test_searches_at_once_do_not_wait_for_each_other_s_connections(
    planted: Planted, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice as many as there are connections, each counting while it finds the newest."""
    monkeypatch.setattr(event_matching, "LOOKED_AT", 0)
    size = runtime.database.pool_stats["pool_max"]

    pages = await asyncio.gather(
        *(
            events.search_events(runtime, "pricing", EventFilters(), limit=5)
            for _ in range(2 * size)
        )
    )

    assert {page.total for page in pages} == {2}


async def test_old_events_are_hidden_unless_asked_for(garden: Garden, tools: ToolClient) -> None:
    await garden.document(PRICING, source_id="plan")
    await garden.document(PRICE_RISK, source_id="plan")

    latest = await tools("event_search", query="pricing or charge")
    listed = await tools("event_search")
    both = await tools("event_search", query="pricing or charge", include_superseded=True)
    all_listed = await tools("event_search", include_superseded=True)

    assert narratives(latest) == narratives(listed) == [PRICE_RISK.narrative]
    assert latest["total"] == listed["total"] == 1
    for answer in (both, all_listed):
        assert set(narratives(answer)) == {PRICING.narrative, PRICE_RISK.narrative}
        assert answer["total"] == 2


async def test_what_comes_back_shows_its_events_again(garden: Garden, tools: ToolClient) -> None:
    """A, B, A: the events of A, which were not extracted again."""
    first = await garden.document(PRICING, source_id="plan")
    await garden.document(PRICE_RISK, source_id="plan")
    restored = await tools(
        "artifact_ingest",
        artifact_type="note",
        source_system="test",
        source_id="plan",
        content=PRICING.words,
    )
    assert restored["status"] == "restored"

    answer = await tools("event_search")

    assert [event["event_id"] for event in answer["events"]] == first.ids
    for query in ("charge per location", "pricing"):
        listed = await tools("event_search", query=query)
        assert PRICE_RISK.narrative not in narratives(listed)


# --- Postgres has the last word --------------------------------------------------------------


async def test_an_event_that_only_chroma_has_is_never_returned(
    planted: Planted, tools: ToolClient, runtime: Runtime, sql: psycopg.Connection
) -> None:
    gone = planted.ids[0]
    sql.execute("DELETE FROM semantic_event WHERE event_id = %s", [gone])
    ghost, no_uuid = "00000000-0000-4000-8000-000000000001", "of another product"
    for id_ in (ghost, no_uuid):
        await plant(runtime, CollectionName.EVENTS, id_, PRICING.narrative)

    for arguments in ({}, {"category": "Decision"}, {"artifact_uid": planted.uid}):
        answer = await tools("event_search", query=PRICING.narrative, limit=100, **arguments)
        ids = {event["event_id"] for event in answer["events"]}
        assert not ids & {gone, ghost, no_uuid}
        assert answer["total"] == len(ids)


async def test_what_has_no_vector_is_found_by_its_words(
    planted: Planted, tools: ToolClient, runtime: Runtime
) -> None:
    entries = await indexed_ids(runtime, CollectionName.EVENTS)
    await remove(runtime, CollectionName.EVENTS, list(entries))

    answer = await tools("event_search", query="charge per location")

    assert narratives(answer)[0] == PRICING.narrative
