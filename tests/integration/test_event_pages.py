"""event_search, page by page: the order of its events, revisions, and what only one store has."""

import asyncio
from typing import Any

import psycopg
import pytest

from memory_core.index.generation import CollectionName
from memory_core.runtime import Runtime
from memory_core.search import event_matching, event_meaning, event_search
from memory_core.search.event_filters import EventFilters
from tests.indexing import ids as indexed_ids
from tests.indexing import plant, remove
from tests.integration.planted_events import Event, Garden, Planted
from tests.integration.searched_events import PRICE_RISK, PRICING, narratives
from tests.tool_client import Json, ToolClient

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
    event_search = [
        Event(
            f"Launch step {number} was taken{', which is risky' if number % 7 == 0 else ''}.",
            category="Change" if number % 2 else "Execution",
            time=f"2026-01-{1 + number % 9:02}" if number % 4 else None,
        )
        for number in range(30)
    ]
    await garden.document(*event_search, source_id="steps")

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
    event_search = [
        Event(
            f"Step {number} was taken{', which is risky' if number % 4 == 0 else ''}.",
            time=f"2026-01-{1 + number % 9:02}" if number % 5 else None,
        )
        for number in range(20)
    ]
    await garden.document(*event_search, source_id="steps")

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
    garden: Garden,
    tools: ToolClient,
    runtime: Runtime,
    ranking: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ranked_so = runtime.settings.model_copy(update={"ranking": ranking})
    monkeypatch.setattr(runtime, "settings", ranked_so)
    both = Event("The beta launch was moved to May.", time="2026-01-01")
    await garden.document(
        Event("The beta was moved.", time="2026-01-03"),
        both,
        Event("The launch was cheerful.", time="2026-01-02"),
        source_id="launch",
    )

    page = await event_search.search_events(runtime, "beta launch", EventFilters(), limit=3)

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
            event_search.search_events(runtime, "pricing", EventFilters(), limit=5)
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
