"""How Postgres answers at 200,000 events of 40,000 texts: by the intended index, reading few rows.

What is explained is what the product really executes: each statement of a call, with its
parameters, is recorded and explained afterwards.
"""

import asyncio
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg
import pytest

from benchmarks.event_data import person, word
from memory_core.events import commitments
from memory_core.events.commitments import list_commitments
from memory_core.events.diff import diff_revisions
from memory_core.events.reextraction import job_status
from memory_core.events.stakeholders import stakeholders
from memory_core.events.stored_events import get_event, list_for_revision
from memory_core.events.timeline import timeline
from memory_core.queue.listing import RecentJob
from memory_core.runtime import Runtime
from memory_core.search import event_matching, passage_meaning
from memory_core.search.event_filters import EventFilters
from memory_core.search.event_search import search_events
from memory_core.search.passage_filters import Filters
from memory_core.search.passages import hybrid_search
from memory_core.search.query_text import understand
from tests.integration.explained_plans import explain
from tests.integration.many_events import PAGE, SIZE, explain_search

MATCHES = "idx_event_entry_latest"
BY_TIME = "idx_event_entry_time"
LATEST = "idx_event_entry_is_latest"
SINCE = "idx_event_entry_since"
PERIOD = "idx_event_entry_period"
SUPERSEDED = "idx_event_entry_superseded"


# --- searching -------------------------------------------------------------------------------


async def test_a_rare_word(million: Runtime, looking: psycopg.Connection) -> None:
    total, explained = await explain_search(million, looking, "case7")

    assert 1 <= total <= 10
    assert explained.indexes("event_entry", "ranked_with_total") == {MATCHES}
    assert explained.rows("event_entry", "ranked_with_total") == total
    assert explained.rows("event_entry") <= 3 * total
    assert explained.rows("semantic_event") <= 3 * total


async def test_a_common_word(million: Runtime, looking: psycopg.Connection) -> None:
    total, explained = await explain_search(million, looking, word(0))

    assert total > 20_000
    assert explained.indexes("event_entry", "count_events") == {MATCHES}
    assert explained.rows("event_entry", "count_events") == total, "only those that match"
    assert explained.indexes("event_entry", "ranked_of_few") == {MATCHES}
    assert explained.rows("event_entry", "ranked_of_few") == total


async def test_the_newest_of_a_very_common_word(
    million: Runtime, looking: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if it had millions of matches: back in time until there are enough."""
    monkeypatch.setattr(event_matching, "FEW_MATCHES", 100)

    total, explained = await explain_search(million, looking, word(0))

    assert explained.indexes("event_entry", "ranked_of_last") == {BY_TIME}
    share = total / SIZE.events
    assert (
        explained.rows("event_entry", "ranked_of_last") <= 3 * event_matching.RANKED_MATCHES / share
    )


async def test_words_that_never_stand_together(
    million: Runtime, looking: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many are expected and none is there: the way back in time has an end."""
    monkeypatch.setattr(event_matching, "FEW_MATCHES", 100)
    monkeypatch.setattr(event_matching, "LOOKED_BACK", 500)
    query = f"{word(0)} -{word(0)}"

    total, explained = await explain_search(million, looking, query)

    assert total == 0
    # Those of superseded revisions are passed over on the way.
    assert explained.rows("event_entry", "ranked_of_last") <= 3 * 500
    assert explained.indexes("event_entry", "ranked_of_few") == {MATCHES}
    assert "ranked_of_many" not in {scan.query for scan in explained}


async def test_a_phrase_of_common_words(million: Runtime, looking: psycopg.Connection) -> None:
    """The index finds the events that have both words; each of them is looked at once, in the same
    pass that counts."""
    both = " ".join(word(rank) for rank in range(2))

    async with million.database.session() as session:
        parameters = await EventFilters().for_sql(session, None)
        having = await event_matching.count(session, {**parameters, "words": "'price' & 'custom'"})
    total = 0

    async def work() -> None:
        nonlocal total
        total = (await search_events(million, f'"{both}"', EventFilters(), limit=PAGE)).total

    explained = await explain(looking, work)

    assert 0 < total < having / 5
    assert explained.indexes("event_entry", "ranked_with_total") == {MATCHES}
    assert explained.rows("event_entry", "ranked_with_total") == having
    assert explained.rows("semantic_event", "ranked_with_total") <= having + total
    assert "count_events" not in {scan.query for scan in explained}


async def test_a_rare_word_together_with_a_common_one(
    million: Runtime, looking: psycopg.Connection
) -> None:
    """The rare word leads to its events, however old; going back in time adds the newest."""
    total, explained = await explain_search(million, looking, f"{word(0)} case7")

    assert total > 20_000
    assert explained.indexes("event_entry", "ranked_of_few") == {MATCHES}
    assert explained.indexes("event_entry", "ranked_of_last") <= {BY_TIME}


LONG_QUERIES = {
    "three common words": " ".join(word(rank) for rank in range(3)),
    "eight common words": " ".join(word(rank) for rank in range(8)),
    "eight words": " ".join(word(rank) for rank in (0, 3, 70, 700, 1_700, 7_000, 9_000, 17_000)),
    "twenty words": " ".join(word(rank) for rank in range(0, 20_000, 1_000)),
    "500 characters": " ".join(word(rank) for rank in range(30, 6_000, 70))[:500],
    "500 characters, all common": " ".join(word(rank) for rank in range(64))[:500],
    "500 characters that say nothing": " ".join(f"{n:02x}q" for n in range(125)),
}


@pytest.mark.parametrize("query", LONG_QUERIES.values(), ids=LONG_QUERIES)
async def test_a_long_query(million: Runtime, looking: psycopg.Connection, query: str) -> None:
    """However long: few words are looked for, and only matches are read."""
    asked: list[str] = []

    async def work() -> None:
        async with million.database.session() as session:
            understood = await understand(
                session, query, counting="count_words_of_events", include_superseded=False
            )
        asked.append(understood.words)

    await explain(looking, work)
    total, explained = await explain_search(million, looking, query)

    assert asked[0].count("'") / 2 <= 24, "eight words, each for three binary digits"
    if total:
        assert explained.indexes("event_entry", explained.counting) == {MATCHES}
        assert explained.rows("event_entry", explained.counting) == total
        assert total < 0.2 * SIZE.events
    assert explained.rows("event_entry", "count_words_of_events") <= 100 * len(query.split())


async def test_everything_without_a_word(million: Runtime, looking: psycopg.Connection) -> None:
    """Counted by what it leaves out: no index leads to what a text does not have."""
    total, explained = await explain_search(million, looking, f"-{word(0)}")

    every = (await search_events(million, None, EventFilters(), limit=1)).total
    with_it = (await search_events(million, word(0), EventFilters(), limit=1)).total
    assert total == every - with_it
    assert explained.indexes("event_entry", "count_events") == {LATEST, MATCHES}
    assert explained.rows("event_entry", "count_events") == every + with_it
    assert explained.rows("event_entry", "ranked_of_last") <= 3 * event_matching.RANKED_MATCHES


@pytest.mark.parametrize(
    "filters",
    [
        {"category": "Decision"},
        {"actor": person(0)},
        {"actor": person(2_000)},
        {"artifact_uid": "uid_0000000000000005"},
        {"artifact_type": "email", "source_system": "gmail"},
        {"category": "Decision", "actor": person(1), "artifact_type": "email"},
    ],
)
async def test_filters_come_from_the_same_index(
    million: Runtime, looking: psycopg.Connection, filters: dict[str, str]
) -> None:
    total, explained = await explain_search(million, looking, word(0), **filters)

    assert explained.indexes("event_entry", explained.counting) == {MATCHES}
    assert explained.rows("event_entry", explained.counting) == total, "only those that match"


async def test_a_subject(million: Runtime, looking: psycopg.Connection) -> None:
    subject = f"{word(1_500)} project"
    total, explained = await explain_search(million, looking, None, subject=subject)

    assert total
    assert explained.indexes("event_entry", "count_events") == {MATCHES}


async def test_a_time_range(million: Runtime, looking: psycopg.Connection) -> None:
    """Of the matches only those in the range are visited."""
    times = {
        "time_from": datetime(2020, 1, 1, tzinfo=UTC),
        "time_to": datetime(2020, 4, 1, tzinfo=UTC),
    }
    total, explained = await explain_search(million, looking, word(0), **times)

    assert explained.indexes("event_entry", explained.counting) == {MATCHES, BY_TIME}
    assert explained.rows("event_entry", explained.counting) == total


async def test_superseded_events_too(million: Runtime, looking: psycopg.Connection) -> None:
    _, explained = await explain_search(million, looking, "case7", include_superseded=True)

    both = {MATCHES, "idx_event_entry_superseded"}
    assert explained.indexes("event_entry", explained.counting) == both


# --- as of a moment --------------------------------------------------------------------------


THEN = datetime(2021, 1, 1, tzinfo=UTC)


async def test_a_common_word_as_of_a_day(million: Runtime, looking: psycopg.Connection) -> None:
    """Indexes know the periods of revisions too: of the events only those of then are visited."""
    total, explained = await explain_search(million, looking, word(0), as_of=THEN)

    assert total > 10_000
    assert "count_events" not in {scan.query for scan in explained}
    for query in ("count_events_as_of", "ranked_of_few_as_of"):
        assert explained.indexes("event_entry", query) >= {MATCHES, SINCE, PERIOD}
        # The few that were superseded since may be read to see whether they have the word.
        assert total <= explained.rows("event_entry", query) <= total + 200
        assert "revision_period" not in {s.table for s in explained if s.query == query}


async def test_a_rare_word_as_of_a_day(million: Runtime, looking: psycopg.Connection) -> None:
    total, explained = await explain_search(million, looking, "case7", as_of=THEN)

    assert explained.indexes("event_entry", "ranked_with_total") == {MATCHES, SUPERSEDED}
    assert total <= explained.rows("event_entry", "ranked_with_total") <= 20
    assert explained.rows("event_entry") <= 100
    assert explained.rows("semantic_event") <= 100


@pytest.mark.parametrize(
    "filters",
    [
        {"category": "Decision"},
        {"actor": person(0)},
        {
            "time_from": datetime(2020, 6, 1, tzinfo=UTC),
            "time_to": datetime(2020, 9, 1, tzinfo=UTC),
        },
    ],
    ids=["category", "actor", "time"],
)
async def test_other_filters_as_of_a_day(
    million: Runtime, looking: psycopg.Connection, filters: dict[str, Any]
) -> None:
    total, explained = await explain_search(million, looking, word(0), as_of=THEN, **filters)

    assert total
    counts = {"count_events_as_of", "ranked_with_total_as_of", "ranked_with_total"}
    [counting] = {s.query for s in explained} & counts
    assert explained.indexes("event_entry", counting) & {MATCHES, BY_TIME}
    assert explained.rows("event_entry", counting) <= 3 * total


async def test_the_newest_as_of_a_day(million: Runtime, looking: psycopg.Connection) -> None:
    """From now back in time, half of all events would be passed over."""
    total, explained = await explain_search(million, looking, None, as_of=THEN)

    assert total > 50_000
    assert explained.indexes("event_entry", "newest_of_few_as_of") >= {SINCE, PERIOD}
    assert explained.rows("event_entry", "newest_of_few_as_of") == total
    assert "newest_of_many" not in {scan.query for scan in explained}


async def test_everything_without_a_word_as_of_a_day(
    million: Runtime, looking: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The events of then are sorted, and only the newest of them are checked."""
    monkeypatch.setattr(event_matching, "LOOKED_BACK", 500)

    total, explained = await explain_search(million, looking, f"-{word(0)}", as_of=THEN)

    assert total > 50_000
    assert explained.indexes("event_entry", "newest_of_past") >= {SINCE, PERIOD}
    assert explained.rows("semantic_event", "newest_of_past") <= 3 * PAGE
    assert "newest_of_many" not in {scan.query for scan in explained}


async def test_the_newest_of_a_moment_ago(million: Runtime, looking: psycopg.Connection) -> None:
    """Going back in time soon finds what was the latest then."""
    moment = datetime(2026, 1, 10, tzinfo=UTC)
    total, explained = await explain_search(million, looking, None, as_of=moment)

    assert total > 150_000
    assert explained.rows("event_entry", "is_recent") < event_matching.RECENT
    assert explained.indexes("event_entry", "newest_of_many") == {BY_TIME}
    assert explained.rows("event_entry", "newest_of_many") <= 5 * event_matching.RECENT


# --- searching text --------------------------------------------------------------------------


TEXT_QUERIES = {
    "a rare word": "case7",
    "a common word": word(0),
    "two common words": f"{word(0)} {word(1)}",
    "a common word, without another": f"{word(0)} -{word(1)}",
    "a phrase": f'"{word(0)} {word(1)}"',
    "everything without a word": f"-{word(0)}",
    **LONG_QUERIES,
}
# What a search of texts may cost, whatever it asks for: chunks of a word, chunks scored, texts.
CANDIDATES = {"chunk_candidates", "chunks_to_the_letter", "chunks_of_document"}
MOST_FOLLOWED, MOST_SCORED, MOST_READ = 16_000, 1_201, 300
TEXT_FILTERS: dict[str, dict[str, Any]] = {
    "all": {},
    "of a type": {"artifact_type": "transcript"},
    "of a source": {"source_system": "drive"},
    "of a source that is not there": {"source_system": "fax"},
    "of a document": {"artifact_uid": "uid_0000000000000005"},
    "of a time": {
        "time_from": datetime(2020, 1, 1, tzinfo=UTC),
        "time_to": datetime(2020, 4, 1, tzinfo=UTC),
    },
}


@pytest.mark.parametrize(
    ("query", "filters"),
    [
        pytest.param(query, wanted, id=f"{name}, {which}")
        for name, query in TEXT_QUERIES.items()
        for which, wanted in TEXT_FILTERS.items()
        if which == "all" or name in ("a rare word", "a common word", "eight words")
    ],
)
async def test_text(
    million: Runtime, looking: psycopg.Connection, query: str, filters: dict[str, Any]
) -> None:
    """An index leads to what matches; few of these are scored, and fewer are read. Of what merely
    passes the filters there is an end."""

    async def work() -> None:
        await hybrid_search(million, query, Filters(**filters), limit=PAGE, include_memory=True)

    explained = await explain(looking, work)

    for scan in explained:
        if scan.table == "chunk_entry" and scan.query in CANDIDATES:
            # What was chosen is fetched by its place, which needs no index.
            assert scan.indexes or scan.node == "Tid Scan", scan
            assert scan.rows <= MOST_FOLLOWED, scan
    assert explained.rows("revision_chunk", "score_chunks") <= MOST_SCORED
    assert explained.rows("revision_text", "passages_by_id") <= MOST_READ
    assert explained.rows("chunk_entry", "count_words_of_chunks") <= 1_000 * len(query.split())
    for name in ("some_chunks", "some_documents"):
        assert explained.rows("chunk_entry", name) <= SIZE.revisions
        assert explained.rows("artifact_revision", name) <= passage_meaning.NAMED + 1


async def test_the_nearest_texts_that_pass(million: Runtime, looking: psycopg.Connection) -> None:
    """Thousands of chunks that are near in meaning: the revision of each is looked up."""
    ids = [
        row[0]
        for row in looking.execute(
            "SELECT chunk_id FROM revision_chunk ORDER BY md5(chunk_id) LIMIT %s",
            [passage_meaning.MOST_NEAREST],
        )
    ]
    filters = Filters(
        time_from=datetime(2023, 1, 1, tzinfo=UTC), time_to=datetime(2023, 2, 1, tzinfo=UTC)
    )
    passing: list[str] = []

    async def work() -> None:
        async with million.database.session() as session:
            passing.extend(
                await session.values(str, "chunks_passing", ids=ids, **filters.for_sql())
            )

    explained = await explain(looking, work)

    assert 0 < len(passing) < len(ids) / 20
    # A few revisions have the same document.
    assert explained.rows("artifact_revision") <= 2 * len(ids)
    assert explained.rows("revision_chunk") == len(ids)


# --- listing ---------------------------------------------------------------------------------


async def test_the_newest(million: Runtime, looking: psycopg.Connection) -> None:
    total, explained = await explain_search(million, looking, None)

    assert total > 150_000
    assert explained.indexes("event_entry", "count_events") == {LATEST}
    assert explained.indexes("event_entry", "newest_of_many") == {BY_TIME}
    assert explained.rows("event_entry", "newest_of_many") <= 5 * PAGE


async def test_the_newest_of_a_category(million: Runtime, looking: psycopg.Connection) -> None:
    total, explained = await explain_search(million, looking, None, category="Execution")

    assert explained.indexes("event_entry", "count_events") == {MATCHES}
    assert explained.rows("event_entry", "count_events") == total
    assert explained.indexes("event_entry", "newest_of_many") == {BY_TIME}
    assert explained.rows("event_entry", "newest_of_many") <= 20 * PAGE


async def test_the_newest_of_a_few_days(million: Runtime, looking: psycopg.Connection) -> None:
    total, explained = await explain_search(
        million, looking, None, time_from=datetime(2023, 10, 1, tzinfo=UTC)
    )

    assert total
    assert explained.indexes("event_entry") == {BY_TIME}
    assert explained.rows("event_entry", "count_events") <= 2 * total


# --- one event, one revision, one job --------------------------------------------------------


@pytest.fixture(scope="module")
def some_event(looking: psycopg.Connection) -> dict[str, Any]:
    cursor = looking.execute(
        "SELECT event_id, artifact_uid, revision_id, extraction_run_id FROM semantic_event "
        "WHERE is_latest ORDER BY event_id LIMIT 1"
    )
    assert cursor.description is not None
    row = cursor.fetchone()
    assert row is not None
    return dict(zip([column.name for column in cursor.description], row, strict=True))


async def test_one_event(
    million: Runtime, looking: psycopg.Connection, some_event: dict[str, Any]
) -> None:
    explained = await explain(looking, lambda: get_event(million, some_event["event_id"], 200))

    assert explained.indexes("semantic_event") == {"semantic_event_pkey"}
    assert explained.indexes("event_evidence") == {"idx_event_evidence_event"}
    assert sum(scan.rows for scan in explained) <= 10


async def test_the_events_of_a_revision(
    million: Runtime, looking: psycopg.Connection, some_event: dict[str, Any]
) -> None:
    explained = await explain(
        looking,
        lambda: list_for_revision(million, some_event["artifact_uid"], None, include_evidence=True),
    )

    assert explained.indexes("semantic_event") == {"idx_semantic_event_revision"}
    assert explained.indexes("event_evidence") == {"idx_event_evidence_event"}
    assert explained.rows("semantic_event") <= 120


@pytest.mark.parametrize("by", ["artifact_uid", "job_id"])
async def test_one_job(
    million: Runtime, looking: psycopg.Connection, some_event: dict[str, Any], by: str
) -> None:
    value = some_event["artifact_uid"] if by == "artifact_uid" else some_event["extraction_run_id"]
    explained = await explain(
        looking,
        lambda: job_status(million, **{by: UUID(str(value)) if by == "job_id" else value}),
    )

    assert all(scan.indexes for scan in explained)
    assert sum(scan.rows for scan in explained) <= 6


async def test_the_jobs_that_failed(million: Runtime, looking: psycopg.Connection) -> None:
    async def work() -> None:
        async with million.database.session() as session:
            await session.rows(RecentJob, "list_jobs", status="FAILED", limit=PAGE)

    explained = await explain(looking, work)

    assert explained.indexes("event_jobs") == {"idx_event_jobs_status"}
    # One in a hundred failed.
    assert explained.rows("event_jobs") <= 0.02 * SIZE.revisions
    assert explained.rows("artifact_revision") <= PAGE


async def test_what_changed_between_two_revisions(
    million: Runtime, looking: psycopg.Connection
) -> None:
    explained = await explain(
        looking, lambda: diff_revisions(million, "uid_0000000000000003", None, None)
    )

    assert explained.indexes("semantic_event") == {"idx_semantic_event_revision"}
    assert explained.indexes("event_evidence") == {"idx_event_evidence_event"}
    # Two revisions, each read and counted.
    assert explained.rows("semantic_event") <= 4 * 120


@pytest.mark.parametrize("query", [None, word(0), "case7"])
async def test_a_timeline(million: Runtime, looking: psycopg.Connection, query: str | None) -> None:
    explained = await explain(
        looking,
        lambda: timeline(million, query, EventFilters(), limit=PAGE),
    )

    assert explained.indexes("semantic_event") == {"semantic_event_pkey"}
    # Every sixth has the word: on the way back the others are passed over.
    assert explained.rows("semantic_event") <= 10 * PAGE
    assert explained.indexes("event_evidence") == {"idx_event_evidence_event"}
    assert explained.rows("event_evidence") <= 5 * PAGE


# --- questions -------------------------------------------------------------------------------


async def test_who_was_involved(million: Runtime, looking: psycopg.Connection) -> None:
    explained = await explain(
        looking, lambda: stakeholders(million, f"{word(900)} {word(901)}", EventFilters(), limit=20)
    )

    assert explained.indexes("event_actor") <= {"event_actor_pkey", "idx_event_actor_name"}
    assert explained.rows("event_actor") <= 2_000
    assert explained.rows("event_entry", "stakeholders") <= 400


@pytest.mark.parametrize("category", [None, "Decision"])
async def test_who_is_involved_in_anything(
    million: Runtime, looking: psycopg.Connection, category: str | None
) -> None:
    """Over the newest events only: the whole memory would take seconds."""
    explained = await explain(
        looking,
        lambda: stakeholders(million, None, EventFilters(category=category), limit=20),
    )

    most = 5_000
    for query in ("names_involved", "stakeholders"):
        assert explained.rows("event_entry", query) <= 8 * most
        assert explained.rows("event_actor", query) <= 4 * most


@pytest.mark.parametrize(
    "asked",
    [
        {"actor": person(50)},
        {"actor": person(0)},
        {"limit": 100},
        *({"status": status} for status in ("open", "done", "overdue", "unknown")),
    ],
)
async def test_commitments(
    million: Runtime, looking: psycopg.Connection, asked: dict[str, Any]
) -> None:
    """Whatever is asked for, a bounded number of promises is judged, each by few reports."""
    values: dict[str, Any] = {
        "actor": None, "due_from": None, "due_to": None, "status": None, "limit": 20,
        "now": datetime(2025, 6, 1, tzinfo=UTC),
    }  # fmt: skip
    explained = await explain(looking, lambda: list_commitments(million, **{**values, **asked}))

    read = commitments._READ_AT_MOST
    for query in ("list_promises", "possible_reports", "rival_promises"):
        assert explained.indexes("event_entry", query) <= {MATCHES, BY_TIME}
    assert explained.indexes("event_entry", "list_promises")
    assert explained.rows("event_entry", "possible_reports") <= 20 * read
    assert explained.rows("event_entry", "rival_promises") <= 20 * read
    assert explained.rows("semantic_event") <= 10 * read
    assert explained.indexes("event_evidence") <= {"idx_event_evidence_event"}


async def test_an_ambiguous_name(million: Runtime, looking: psycopg.Connection) -> None:
    """Everybody called Alice, without reading all actors."""
    explained = await explain(
        looking, lambda: search_events(million, None, EventFilters(actor="Alice"), limit=PAGE)
    )

    assert explained.indexes("actor_name") == {"idx_actor_name_words"}
    assert explained.rows("actor_name") <= 300
    assert explained.indexes("event_entry", "people_by_key") == {MATCHES}


async def test_searches_at_once_do_not_wait_for_each_other(million: Runtime) -> None:
    pages = await asyncio.gather(
        *(search_events(million, word(rank), EventFilters(), limit=5) for rank in range(8))
    )

    assert all(page.total for page in pages)
