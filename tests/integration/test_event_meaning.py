"""event_search by meaning: what is near is found, whatever the filters leave and else is nearer."""

from typing import Any

import psycopg
import pytest

from memory_core.index.chroma import Collection
from memory_core.search import event_meaning
from memory_core.search.similarity import NO_EVENT_HAS_THE_WORDS
from tests.integration.planted_events import Event, Garden
from tests.integration.searched_events import LUNCH, PRICING, narratives
from tests.tool_client import Json, ToolClient

COMPLAINT = Event(
    "Customers complained about the invoice.",
    category="Feedback",
    time="2026-01-10T09:00:00Z",
    actors=("Bob Ray",),
    subject="paperwork",
    confidence=0.8,
)
# Near the complaint in meaning; a word of it stands in no event.
MEANING = "client billing complaint"


@pytest.mark.parametrize(
    ("fitting", "other"),
    [
        ({"category": "Feedback"}, {"category": "Decision"}),
        ({"actor": "Bob Ray"}, {"actor": "Zoe Yu"}),
        ({"subject": "paperwork"}, {"subject": "canteen"}),
        ({"artifact_type": "note"}, {"artifact_type": "email"}),
        ({"source_system": "test"}, {"source_system": "gmail"}),
        ({"time_from": "2026-01-10"}, {"time_from": "2026-01-11"}),
        ({"time_to": "2026-01-10"}, {"time_to": "2026-01-09"}),
        ({"min_confidence": 0.8}, {"min_confidence": 0.9}),
    ],
)
@pytest.mark.parametrize("sort", ["relevance", "time"])
async def test_filters_hold_for_meaning(
    garden: Garden,
    tools: ToolClient,
    sql: psycopg.Connection,
    fitting: Json,
    other: Json,
    sort: str,
) -> None:
    planted = await garden.document(COMPLAINT, source_id="one")
    await garden.document(LUNCH, source_id="two", artifact_type="email", source_system="gmail")
    [by_words] = sql.execute(
        "SELECT count(*) FROM semantic_event WHERE words @@ websearch_to_tsquery('english', %s)",
        [MEANING.replace(" ", " or ")],
    ).fetchall()
    assert by_words == (0,)

    answer = await tools("event_search", query=MEANING, sort=sort, **fitting)
    without = await tools("event_search", query=MEANING, sort=sort, **other)

    assert [event["event_id"] for event in answer["events"]] == planted.ids
    assert (without["events"], without["total"]) == ([], 0)


@pytest.mark.parametrize(
    "filters",
    [
        {"actor": "Bob Ray"},
        {"subject": "paperwork"},
        {"time_to": "2026-01-10"},
        {"category": "Feedback"},
    ],
)
async def test_what_the_filters_leave_is_compared_however_much_is_nearer(
    garden: Garden, tools: ToolClient, monkeypatch: pytest.MonkeyPatch, filters: Json
) -> None:
    """Chroma is not asked to filter: it would look at every entry."""
    monkeypatch.setattr(event_meaning, "DENSE_HITS", 5)
    monkeypatch.setattr(event_meaning, "MORE_HITS", 5)
    wheres = watched_filters(monkeypatch)
    planted = await garden.document(COMPLAINT, source_id="one")
    nearer = [Event(f"{MEANING.capitalize()} {number}.", time="2026-02-01") for number in range(12)]
    await garden.document(*nearer, source_id="two")

    answer = await tools("event_search", query=MEANING, **filters)
    in_document = await tools("event_search", query=MEANING, artifact_uid=planted.uid)

    for found in (answer, in_document):
        assert [event["event_id"] for event in found["events"]] == planted.ids
    assert set(wheres) <= {None}


async def test_of_many_that_the_filters_leave_the_nearest_are_looked_for(
    garden: Garden, tools: ToolClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory_core.index.store.COMPARED", 3)
    monkeypatch.setattr(event_meaning, "DENSE_HITS", 5)
    wheres = watched_filters(monkeypatch)
    near = [Event(f"{MEANING.capitalize()} {n}.", category="Feedback") for n in range(4)]
    nearer = [Event(f"{MEANING.capitalize()}.", category="Change") for _ in range(8)]
    planted = await garden.document(*near, source_id="one")
    await garden.document(*nearer, source_id="two", content="\n".join([MEANING.capitalize() + "."]))

    answer = await tools("event_search", query="client invoicing grievance", category="Feedback")

    assert {event["event_id"] for event in answer["events"]} == set(planted.ids)
    assert wheres
    assert set(wheres) == {None}


@pytest.mark.parametrize("filters", [{"category": "Feedback"}, {"time_to": "2026-01-10"}])
async def test_what_some_thousands_leave_is_named(
    garden: Garden, tools: ToolClient, monkeypatch: pytest.MonkeyPatch, filters: Json
) -> None:
    """Too many to be compared one by one, and others are nearer than any that is looked at."""
    monkeypatch.setattr("memory_core.index.store.COMPARED", 3)
    for name in ("DENSE_HITS", "MORE_HITS", "MOST_HITS"):
        monkeypatch.setattr(event_meaning, name, 5)
    far = [
        Event(f"Customers complained about invoice {n}.", "Feedback", "2026-01-05")
        for n in range(5)
    ]
    nearer = [Event(f"{MEANING.capitalize()} {n}.", time="2026-02-01") for n in range(12)]
    planted = await garden.document(*far, source_id="one")
    await garden.document(*nearer, source_id="two")

    answer = await tools("event_search", query=MEANING, **filters)

    assert {event["event_id"] for event in answer["events"]} == set(planted.ids)


def watched_filters(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What Chroma is asked to filter by."""
    wheres: list[object] = []
    really = Collection.call

    async def watched(self: Collection, action: str, **body: Any) -> Any:
        if action == "query":
            wheres.append(body["where"])
        return await really(self, action, **body)

    monkeypatch.setattr(Collection, "call", watched)
    return wheres


async def test_superseded_events_do_not_stand_before_what_is_meant(
    garden: Garden, tools: ToolClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are more nearer ones than Chroma is asked for at first."""
    monkeypatch.setattr(event_meaning, "DENSE_HITS", 5)
    monkeypatch.setattr(event_meaning, "MORE_HITS", 5)
    planted = await garden.document(COMPLAINT, source_id="one")
    nearer = [Event(f"{MEANING.capitalize()} {number}.") for number in range(12)]
    await garden.document(*nearer, source_id="two")
    await garden.document(LUNCH, source_id="two")

    answer = await tools("event_search", query=MEANING)
    everything = await tools("event_search", query=MEANING, include_superseded=True)

    assert [event["event_id"] for event in answer["events"]] == planted.ids
    assert everything["total"] > 5


async def test_vectors_follow_when_an_old_revision_comes_back(
    garden: Garden, tools: ToolClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_meaning, "DENSE_HITS", 5)
    monkeypatch.setattr(event_meaning, "MORE_HITS", 5)
    planted = await garden.document(COMPLAINT, source_id="one")
    await garden.document(LUNCH, source_id="one")
    nearer = [Event(f"{MEANING.capitalize()} {number}.") for number in range(12)]
    await garden.document(*nearer, source_id="two")
    await garden.document(PRICING, source_id="two")
    await tools(
        "artifact_ingest",
        artifact_type="note",
        source_system="test",
        source_id="one",
        content=COMPLAINT.words,
    )

    answer = await tools("event_search", query=MEANING)

    assert [event["event_id"] for event in answer["events"]] == planted.ids


async def test_what_has_nothing_to_do_with_the_query_is_not_found_by_narrowing(
    searched: ToolClient,
) -> None:
    for category in ("Decision", "QualityRisk", "Commitment", "Stakeholder", "Execution"):
        answer = await searched(
            "event_search", query="quantum chromodynamics lecture", category=category
        )
        assert (answer["events"], answer["total"]) == ([], 0)


async def test_an_answer_says_when_no_event_has_the_words(
    garden: Garden, tools: ToolClient
) -> None:
    await garden.document(COMPLAINT, LUNCH, source_id="one")

    by_meaning = await tools("event_search", query=MEANING)
    by_words = await tools("event_search", query="soup in the canteen")

    assert narratives(by_meaning) == [COMPLAINT.narrative]
    assert by_meaning["note"] == NO_EVENT_HAS_THE_WORDS
    assert (narratives(by_words), by_words["note"]) == ([LUNCH.narrative], "")


async def test_few_matches_are_not_filled_up_with_what_is_far(
    garden: Garden, tools: ToolClient
) -> None:
    """And what is found without a filter is found with one that it passes."""
    others = [Event(f"The canteen served soup number {number}.") for number in range(5)]
    await garden.document(COMPLAINT, *others, source_id="one")

    answer = await tools("event_search", query="invoice")
    narrowed = await tools("event_search", query="invoice", category=COMPLAINT.category)

    assert narratives(answer) == narratives(narrowed) == [COMPLAINT.narrative]
    assert answer["total"] == narrowed["total"] == 1


async def test_what_is_found_by_its_words_is_not_mixed_with_what_is_far(
    garden: Garden, tools: ToolClient
) -> None:
    tickets = [Event(f"Step {number} of ticket qx77 was taken.") for number in range(12)]
    others = [Event(f"The canteen served soup number {number}.") for number in range(12)]
    await garden.document(*tickets, *others, source_id="one")

    for sort in ("relevance", "time"):
        answer = await tools("event_search", query="qx77", sort=sort)
        assert set(narratives(answer)) == {event.narrative for event in tickets}
        assert answer["total"] == 12
