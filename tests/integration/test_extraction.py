"""From pending jobs to stored events: what is paid for, what is replaced, what a failure leaves."""

import asyncio
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memory_core import jobs, queries
from memory_core.errors import ChromaUnavailable, PostgresUnavailable
from memory_core.events import store
from memory_core.events.reextraction import reextract
from memory_core.extraction.batch import Outcome
from memory_core.ids import sha256
from memory_core.runtime import Runtime
from memory_core.vectors import CollectionName
from tests.integration.asking import until
from tests.pipeline_client import SMALL_CHUNKS, Pipeline, bump, with_openai
from tests.scripted_provider import (
    Answer,
    AuthError,
    Held,
    InvalidJson,
    RateLimit,
    Refusal,
    ScriptedProvider,
    ServerError,
    Timeout,
)

SHORT = "Decision: we launch the beta in May.\nBob Roth will test it."
PARAGRAPHS = [
    f"Paragraph {n}. Carol Diaz will deliver part {n} of the plan for room {n * 7} by Friday, as "
    f"she told everybody in the hall. The lamps of floor {n} were counted and found complete."
    for n in range(12)
]
LONG = "\n\n".join(PARAGRAPHS)
EVERYTHING = {"category": {"$ne": "none"}}
MINUTE = timedelta(minutes=1)
MARCH, APRIL = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC)


@pytest.fixture
def openai(runtime: Runtime, provider: ScriptedProvider) -> Pipeline:
    """A deployment whose documents come in small chunks and go to the scripted provider."""
    settings = with_openai(runtime.settings, provider, **SMALL_CHUNKS)
    return Pipeline(runtime, **settings.model_dump())


@pytest.fixture
def patient(openai: Pipeline) -> Pipeline:
    """One that waits for an answer as long as the test does."""
    return Pipeline(openai.runtime, openai_timeout=600.0)


async def ids(pipeline: Pipeline) -> list[str]:
    return [str(row["event_id"]) for row in await pipeline.events()]


def asked(provider: ScriptedProvider) -> list[str]:
    """The passages that were sent to be extracted."""
    return [
        call.body["messages"][-1]["content"]
        for call in provider.chats
        if "event_merge" not in str(call.body["response_format"])
    ]


def answer_with_one_event(provider: ScriptedProvider) -> None:
    """Where there were more."""
    usual = provider.on_extract
    provider.on_extract = lambda text, body: {
        **usual(text, body),
        "events": usual(text, body)["events"][:1],
    }


# --- what is stored ---------------------------------------------------------------------------


async def test_a_pending_document_becomes_proved_events(openai: Pipeline, runtime: Runtime) -> None:
    stored = await openai.remember(SHORT)
    [outcome] = await openai.extract("run-7")

    events = await openai.events()
    assert [(row["category"], row["quote"], row["start_char"]) for row in events] == [
        ("Decision", "Decision: we launch the beta in May.", 0),
        ("Commitment", "Bob Roth will test it.", 37),
    ]
    assert {row["chunk_id"] for row in events} == {None}, "the document is one piece"
    assert {row["match_kind"] for row in events} == {"exact"}
    assert {str(row["extraction_run_id"]) for row in events} == {stored.job_id}
    assert outcome.failure is None
    [job] = await openai.jobs()
    assert (job["status"], job["locked_at"]) == ("DONE", None)
    assert await runtime.vectors.count(CollectionName.EVENTS) == 2


async def test_a_long_document_keeps_in_which_chunk_a_quote_was_found(openai: Pipeline) -> None:
    await openai.remember(LONG)
    [outcome] = await openai.extract()

    events = await openai.events()
    chunks = {
        row["chunk_id"]: (row["start_char"], row["end_char"])
        for row in await openai.rows("SELECT * FROM revision_chunk")
    }
    assert outcome.extraction is not None
    assert len(outcome.extraction.chunks) == len(chunks) > 5
    assert len(events) == len(PARAGRAPHS), "what overlaps is told once"
    for row in events:
        start, end = chunks[row["chunk_id"]]
        assert start <= row["start_char"] < row["end_char"] <= end
        assert LONG[row["start_char"] : row["end_char"]] == row["quote"]


async def test_what_happened_is_recorded_with_who_did_it(
    openai: Pipeline, provider: ScriptedProvider
) -> None:
    bad = {"category": "Gossip"}
    provider.enqueue(Answer({"events": [bad], "entities": []}), Refusal("Rather not."))
    await openai.remember(SHORT, "a")
    await openai.extract("run-a")
    await openai.remember("Bob will do it.", "b")
    await openai.extract("run-b")

    first, second = await openai.rows("SELECT * FROM extraction ORDER BY run_id")
    assert (first["run_id"], first["extractor"], first["model"]) == ("run-a", "openai", "gpt-4o")
    assert (first["chunks"], first["events"], first["cache_hits"]) == (1, 0, 0)
    assert first["requested_by"] == "ingest"
    [rejection] = first["rejections"]
    assert rejection["reason"] == "INVALID_FIELD"
    assert rejection["chunk_index"] == 0
    assert second["refusals"] == ["Rather not."]
    assert {job["status"] for job in await openai.jobs()} == {"DONE"}, "a refusal is a result"


async def test_entities_are_kept_once_with_the_aliases_of_all_chunks(
    openai: Pipeline, provider: ScriptedProvider
) -> None:
    aliases = iter([["CD"], ["Ms Diaz", "Carol Diaz"], ["CD"]])
    provider.on_extract = lambda text, _: {
        "events": [],
        "entities": [
            {"name": "Carol Diaz", "type": "person", "aliases": next(aliases, [])},
            {"name": "Lantern", "type": "starship", "aliases": []},
        ],
    }
    await openai.remember(LONG)
    await openai.extract()

    [entity] = await openai.rows("SELECT * FROM revision_entity")
    assert (entity["name"], entity["type"]) == ("Carol Diaz", "person")
    assert sorted(entity["aliases"]) == ["CD", "Ms Diaz"]


async def test_rules_go_through_the_same_pipeline(
    runtime: Runtime, provider: ScriptedProvider
) -> None:
    rules = Pipeline(runtime, **SMALL_CHUNKS)
    await rules.remember("# Decisions\n\n- We decided to launch the beta in May.\n")
    [outcome] = await rules.extract()

    assert outcome.extraction is not None
    assert {row["category"] for row in await rules.events()} == {"Decision"}
    [record] = await rules.rows("SELECT * FROM extraction")
    assert (record["extractor"], record["merge_version"]) == ("rules", "none")
    assert await rules.calls() == []
    assert provider.calls == []


# --- what is paid for -------------------------------------------------------------------------


async def test_every_call_is_recorded_with_its_job(
    openai: Pipeline, provider: ScriptedProvider
) -> None:
    stored = await openai.remember(LONG)
    await openai.extract()

    calls = await openai.calls()
    assert len(calls) == len(provider.chats)
    assert {str(call["job_id"]) for call in calls} == {stored.job_id}
    assert {call["outcome"] for call in calls} == {"ok"}
    for call in calls:
        assert call["prompt_tokens"] > 0
        assert call["completion_tokens"] > 0
        assert call["latency_ms"] > 0


async def test_calls_of_attempts_that_fail_are_recorded_as_well(
    openai: Pipeline, provider: ScriptedProvider
) -> None:
    await openai.remember(SHORT)
    for faults in ([ServerError()], [InvalidJson(), InvalidJson()], [RateLimit()]):
        provider.enqueue(*faults)
        [outcome] = await openai.extract()
        assert outcome.failure is not None
        await openai.all_due()
    await openai.extract()

    assert [call["outcome"] for call in await openai.calls()] == [
        "OPENAI_CONNECTION_ERROR",
        "invalid_json",
        "invalid_json",
        "OPENAI_RATE_LIMIT",
        "ok",
    ]


async def test_a_second_run_costs_nothing(openai: Pipeline, provider: ScriptedProvider) -> None:
    await openai.remember(LONG)
    await openai.extract()
    first, paid = await openai.events(), len(asked(provider))
    [outcome] = await openai.extract("run-2", redo_as="backfill")

    assert outcome.extraction is not None
    assert outcome.extraction.cache_hits == len(outcome.extraction.chunks) == paid
    assert len(asked(provider)) == paid
    assert [row["event_id"] for row in await openai.events()] == [row["event_id"] for row in first]


async def test_a_retry_pays_only_for_what_is_missing(
    runtime: Runtime, provider: ScriptedProvider
) -> None:
    settings = with_openai(runtime.settings, provider, extract_concurrency=1, **SMALL_CHUNKS)
    pipeline = Pipeline(runtime, **settings.model_dump())
    provider.enqueue(ServerError(only=lambda body: "Paragraph 5" in str(body)))
    await pipeline.remember(LONG)
    [first] = await pipeline.extract()
    assert first.failure is not None
    known = {row["chunk_hash"] for row in await pipeline.rows("SELECT * FROM extraction_cache")}
    before = len(asked(provider))
    await pipeline.all_due()
    [second] = await pipeline.extract("run-2")

    again = [sha256(text) for text in asked(provider)[before:]]
    assert second.extraction is not None
    assert known
    assert known.isdisjoint(again)
    assert len(known) + len(again) == len(second.extraction.chunks)


async def test_calls_under_way_when_another_fails_are_not_paid_for_again(
    openai: Pipeline, provider: ScriptedProvider
) -> None:
    """A provider bills what it was sent, whether or not anybody waits for the answer."""

    def is_poison(body: Any) -> bool:
        return "Paragraph 0." in body["messages"][-1]["content"]

    slow = [Timeout(0.5, only=lambda body: not is_poison(body)) for _ in PARAGRAPHS]
    provider.enqueue(ServerError(only=is_poison), *slow)
    await openai.remember(LONG)
    await openai.extract()
    await openai.all_due()
    await openai.extract("run-2")

    again = [text for text, times in Counter(asked(provider)).items() if times > 1]
    assert len(again) == 1


@pytest.mark.parametrize("how", ["ui", "tool"])
async def test_somebody_who_insists_is_asked_for_anew(
    openai: Pipeline, provider: ScriptedProvider, how: str
) -> None:
    ingested = await openai.remember(SHORT)
    await openai.extract()
    provider.on_extract = lambda text, _: {"events": [], "entities": []}
    if how == "tool":
        await reextract(openai.runtime, ingested.artifact_uid, None, force=True)
        await openai.extract("run-2")
    else:
        await openai.extract("run-2", redo_as="ui", fresh=True)

    assert len(asked(provider)) == 2
    assert await openai.events() == []
    [job] = await openai.jobs()
    assert job["bypass_cache"] is False, "for once"


@pytest.mark.parametrize("how", ["ui", "tool"])
async def test_somebody_who_insists_pays_once_however_often_it_fails(
    openai: Pipeline, provider: ScriptedProvider, how: str
) -> None:
    ingested = await openai.remember(LONG)
    await openai.extract()
    chunks = len(asked(provider))
    provider.reset()
    broken = "room 77"
    provider.enqueue(ServerError(only=lambda body: broken in body["messages"][-1]["content"]))
    if how == "tool":
        await reextract(openai.runtime, ingested.artifact_uid, None, force=True)
        await openai.extract("run-2")
    else:
        await openai.extract("run-2", redo_as="ui", fresh=True)
    before = len(asked(provider))
    assert 1 < before <= chunks
    await openai.all_due()
    [outcome] = await openai.extract("run-3")

    assert outcome.extraction is not None
    assert len(asked(provider)) == chunks + 1, "each once more, and the failed one again"


async def test_what_follows_by_hand_from_a_failed_insistence_pays_for_no_chunk(
    openai: Pipeline, provider: ScriptedProvider
) -> None:
    ingested = await openai.remember(SHORT)
    await openai.extract()
    provider.enqueue(AuthError())
    await reextract(openai.runtime, ingested.artifact_uid, None, force=True)
    await openai.extract("run-2")
    [job] = await openai.jobs()
    assert job["status"] == "FAILED"
    provider.reset()

    await openai.extract("run-3", redo_as="ui", reuse=True)

    assert provider.chats == []
    assert [job["status"] for job in await openai.jobs()] == ["DONE"]


async def test_what_follows_by_hand_is_made_of_the_extractions_that_are_there(
    openai: Pipeline, provider: ScriptedProvider, tmp_path: Path
) -> None:
    """Whatever prompt they are from: who wants them anew materialises them."""
    await openai.remember(LONG)
    await openai.extract()
    before = await openai.events()
    [made] = await openai.rows("SELECT extract_version, model FROM extraction")
    provider.reset()
    newer = Pipeline(openai.runtime, prompts_dir=bump(tmp_path, extract=2))

    [outcome] = await newer.extract("run-2", redo_as="ui", reuse=True)

    assert outcome.extraction is not None
    assert asked(provider) == []
    assert [made] == await openai.rows("SELECT extract_version, model FROM extraction")
    told = ("event_id", "narrative", "start_char", "end_char")
    assert [[row[name] for name in told] for row in await openai.events()] == [
        [row[name] for name in told] for row in before
    ]

    await openai.rows(
        "DELETE FROM extraction_cache WHERE prompt_version = %s", made["extract_version"]
    )
    await newer.extract("run-3", redo_as="ui", reuse=True)
    assert len(asked(provider)) == outcome.extraction.cache_hits, (
        "answers that are gone are asked for"
    )
    [now] = await openai.rows("SELECT extract_number FROM extraction")
    assert now["extract_number"] == 2


async def test_calls_are_on_the_books_while_their_document_is_still_in_work(
    patient: Pipeline, provider: ScriptedProvider
) -> None:
    """A run may be killed at any moment; budgets count what it paid for all the same."""
    held = Held(only=lambda body: "room 77" in body["messages"][-1]["content"])
    provider.enqueue(held)
    await patient.remember(LONG)
    working = asyncio.create_task(patient.extract())
    try:
        async with asyncio.timeout(60):
            while not (written := await patient.calls()):
                await asyncio.sleep(0.01)
    finally:
        held.gate.set()
        await working

    assert {call["outcome"] for call in written} == {"ok"}
    assert len(await patient.calls()) == len(provider.chats), "and each is written once"


async def test_a_document_of_thousands_of_chunks_is_opened_before_statistics_are_known(
    runtime: Runtime,
) -> None:
    pipeline, many = Pipeline(runtime), 2000
    ingested = await pipeline.remember(SHORT)
    await pipeline.rows("ANALYZE revision_chunk")  # which will be out of date in a moment
    await pipeline.rows(
        "INSERT INTO revision_chunk (artifact_uid, revision_id, chunk_index, chunk_id, start_char, "
        "end_char, token_count, content_hash, words) SELECT %s, %s, n, n::text, 0, 1, 1, "
        "md5(n::text), '' FROM generate_series(1, %s) AS n",
        ingested.artifact_uid,
        ingested.revision_id,
        many,
    )
    async with runtime.database.session() as session:
        cursor = await session.connection.execute(
            b"EXPLAIN (ANALYZE, FORMAT JSON) " + queries.get("first_contexts"),
            {"uid": ingested.artifact_uid, "revision": ingested.revision_id},
        )
        [row] = await cursor.fetchall()

    assert _rows_read(row["QUERY PLAN"][0]["Plan"]) < 20 * many, "not all with all"


def _rows_read(plan: dict[str, Any]) -> int:
    removed = sum(plan.get(f"Rows Removed by {by}", 0) for by in ("Filter", "Join Filter"))
    below: int = sum(map(_rows_read, plan.get("Plans", [])))
    return int((plan["Actual Rows"] + removed) * plan["Actual Loops"]) + below


# --- leases -----------------------------------------------------------------------------------


async def test_a_document_that_takes_long_keeps_its_lease(
    patient: Pipeline, provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "HEARTBEAT_SECONDS", 0.02)
    held, working = await in_the_calls(patient, provider)
    try:
        await patient.rows("UPDATE event_jobs SET locked_at = locked_at - interval '1 hour'")
        async with asyncio.timeout(60):
            while (await patient.jobs())[0]["locked_at"] < await database_time(patient) - MINUTE:
                await asyncio.sleep(0.01)
    finally:
        held.gate.set()

    [outcome] = await working
    assert outcome.extraction is not None


async def test_who_has_lost_the_lease_stops_asking(
    patient: Pipeline, provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "HEARTBEAT_SECONDS", 0.02)
    held, working = await in_the_calls(patient, provider)
    await patient.rows("UPDATE event_jobs SET locked_by = 'run-2'")

    async with asyncio.timeout(60):
        [outcome] = await working  # though nobody has answered

    held.gate.set()
    assert (outcome.extraction, outcome.failure) == (None, None)
    assert await patient.events() == []


async def in_the_calls(
    pipeline: Pipeline, provider: ScriptedProvider
) -> tuple[Held, "asyncio.Task[list[Outcome]]"]:
    """A run whose only call is answered when the gate opens."""
    held = Held()
    provider.enqueue(held)
    await pipeline.remember(SHORT)
    working = asyncio.create_task(pipeline.extract())
    await until(lambda: provider.in_flight == 1)
    return held, working


async def database_time(pipeline: Pipeline) -> datetime:
    [row] = await pipeline.rows("SELECT now() AS at")
    at: datetime = row["at"]
    return at


async def test_the_same_passage_in_two_documents_is_asked_for_once(
    openai: Pipeline, provider: ScriptedProvider
) -> None:
    for source in ("a", "b", "c"):
        await openai.remember(SHORT, source)
    outcomes = await openai.extract()

    assert len(asked(provider)) == 1
    hits = sorted(item.extraction.cache_hits for item in outcomes if item.extraction)
    assert hits == [0, 1, 1]
    assert len(await openai.events()) == 6


async def test_another_context_is_another_question(
    openai: Pipeline, provider: ScriptedProvider
) -> None:
    await openai.remember(SHORT, "a", ts=MARCH)
    await openai.remember(SHORT, "b", ts=APRIL)
    await openai.extract()

    assert len(asked(provider)) == 2


async def test_a_new_revision_pays_only_for_what_is_new(
    openai: Pipeline, provider: ScriptedProvider
) -> None:
    """Also though its date has changed: an old passage keeps the date it was written under."""
    await openai.remember(LONG, ts=MARCH)
    await openai.extract()
    before = set(asked(provider))
    edited = "\n\n".join([*PARAGRAPHS[:6], "Dora Ek decided to paint room 5.", *PARAGRAPHS[6:]])
    await openai.remember(edited, ts=APRIL, title="Minutes, second edition")
    await openai.extract("run-2")

    new = asked(provider)[len(before) :]
    assert before.isdisjoint(new)
    assert 1 <= len(new) <= 4
    assert any("Dora Ek" in text for text in new)
    changed = [call for call in provider.chats if "second edition" in str(call.body["messages"][1])]
    assert len(changed) == len(new), "new passages are read in their own context"


async def test_a_one_chunk_document_is_never_sent_to_be_grouped(
    openai: Pipeline, provider: ScriptedProvider
) -> None:
    await openai.remember("Bob will do it today. Bob will do it, today.")
    await openai.extract()

    assert len(provider.chats) == 1


async def test_plausible_duplicates_are_grouped_by_one_question(
    openai: Pipeline, provider: ScriptedProvider
) -> None:
    provider.on_merge = lambda events, _: {
        "groups": [{"members": [event["id"] for event in events], "narrative": None}]
    }
    await openai.remember(LONG)
    [outcome] = await openai.extract()

    assert len(provider.chats) - len(asked(provider)) == 1
    events = await openai.events()
    assert len({row["event_id"] for row in events}) == 1
    assert len(events) == len(PARAGRAPHS), "every quote is evidence of it"
    assert outcome.extraction is not None
    assert len(outcome.extraction.events) == 1


async def test_calls_in_flight_are_limited_over_all_documents_of_a_run(
    runtime: Runtime, provider: ScriptedProvider
) -> None:
    settings = with_openai(runtime.settings, provider, extract_concurrency=5, **SMALL_CHUNKS)
    pipeline = Pipeline(runtime, **settings.model_dump())
    for number in range(4):
        await pipeline.remember(LONG.replace("Carol", f"Carol{number}"), f"doc-{number}")
    await until(lambda: provider.in_flight == 0)
    provider.peak_in_flight = 0
    gate = threading.Event()
    provider.enqueue(*[Held(gate)] * 5)
    extracting = asyncio.create_task(pipeline.extract())
    await until(lambda: provider.in_flight == 5)
    gate.set()
    await extracting

    assert provider.peak_in_flight == 5
    assert {job["status"] for job in await pipeline.jobs()} == {"DONE"}


# --- replace on success -----------------------------------------------------------------------


async def test_an_event_that_is_no_longer_found_is_gone_everywhere(
    openai: Pipeline, runtime: Runtime, provider: ScriptedProvider
) -> None:
    await openai.remember(SHORT)
    await openai.extract()
    kept = {str(row["event_id"]) for row in await openai.events() if row["category"] == "Decision"}
    answer_with_one_event(provider)
    await openai.extract("run-2", redo_as="ui", fresh=True)

    assert set(await ids(openai)) == kept, "what is found again keeps its id"
    vectors = await runtime.vectors.ids_where(CollectionName.EVENTS, {"category": "Decision"})
    assert set(vectors) == kept
    assert await runtime.vectors.count(CollectionName.EVENTS) == 1


async def test_replaced_events_are_dropped_from_the_index_by_their_ids(
    openai: Pipeline, provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chroma looks at every entry when it is asked by metadata: too much for each of a backfill."""
    await openai.remember(SHORT)
    await openai.extract()
    answer_with_one_event(provider)
    await openai.rows("DELETE FROM extraction_cache")

    with monkeypatch.context() as patched:
        patched.setattr(openai.runtime.vectors, "ids_where", never)
        [outcome] = await openai.extract("run-2", redo_as="backfill")

    assert outcome.failure is None
    [kept] = await ids(openai)
    assert await openai.runtime.vectors.ids_where(CollectionName.EVENTS, EVERYTHING) == [kept]


async def test_where_no_event_was_replaced_nothing_is_asked_of_the_index(
    openai: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    await openai.remember(SHORT)
    await openai.extract()
    for call in ("ids_where", "delete", "set_latest"):
        monkeypatch.setattr(openai.runtime.vectors, call, never)

    [outcome] = await openai.extract("run-2", redo_as="backfill")

    assert outcome.failure is None
    assert len(await openai.events()) == 2


@pytest.mark.parametrize("forced", [False, True], ids=["the next attempt", "a forced request"])
async def test_vectors_of_events_that_were_never_stored_go_with_what_follows(
    openai: Pipeline, provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch, forced: bool
) -> None:
    async def fails(*_: Any) -> None:
        raise jobs.LeaseLost("taken") if forced else PostgresUnavailable("gone")

    stored = await openai.remember(SHORT)
    with monkeypatch.context() as patched:
        patched.setattr(store, "replace_events", fails)
        await openai.extract()
    assert await openai.runtime.vectors.count(CollectionName.EVENTS) == 2
    answer_with_one_event(provider)
    if forced:
        await reextract(openai.runtime, stored.artifact_uid, None, force=True)
    else:
        await openai.rows("DELETE FROM extraction_cache")
        await openai.all_due()
    await openai.extract("run-2")

    [kept] = await ids(openai)
    assert await openai.runtime.vectors.ids_where(CollectionName.EVENTS, EVERYTHING) == [kept]


async def never(*_: Any, **__: Any) -> None:
    raise AssertionError("asked for nothing")


@pytest.mark.parametrize("fault", [ServerError(), AuthError(), RateLimit(retry_after=600)])
async def test_a_failed_attempt_leaves_the_old_events_as_they_were(
    openai: Pipeline, provider: ScriptedProvider, fault: Any
) -> None:
    await openai.remember(SHORT)
    await openai.extract()
    before = await openai.events()
    provider.enqueue(fault)
    [outcome] = await openai.extract("run-2", redo_as="ui", fresh=True)

    assert outcome.failure is not None
    assert await openai.events() == before
    [record] = await openai.rows("SELECT run_id FROM extraction")
    assert record["run_id"] == "run-1"


async def test_a_provider_that_asks_for_patience_gets_it_from_the_queue(
    openai: Pipeline, provider: ScriptedProvider
) -> None:
    provider.enqueue(RateLimit(retry_after=3000))
    await openai.remember(SHORT)
    await openai.extract()

    [job] = await openai.jobs()
    assert (job["status"], job["last_error_code"]) == ("PENDING", "OPENAI_RATE_LIMIT")
    assert (job["next_run_at"] - job["updated_at"]).total_seconds() == 3000


async def test_one_failing_document_neither_fails_nor_delays_the_others(
    openai: Pipeline, provider: ScriptedProvider
) -> None:
    provider.enqueue(AuthError(only=lambda body: "number 2" in str(body)))
    for number in range(5):
        await openai.remember(f"Bob Roth will do number {number}.", f"doc-{number}")
    outcomes = await openai.extract()

    failed = [item.failure.code for item in outcomes if item.failure]
    assert failed == ["OPENAI_AUTH_ERROR"]
    assert Counter(job["status"] for job in await openai.jobs()) == {"DONE": 4, "FAILED": 1}


async def test_a_document_that_fails_takes_no_shared_answer_with_it(
    openai: Pipeline, provider: ScriptedProvider
) -> None:
    """Both have the first chunk in common; the one that asked for it fails by another chunk."""
    provider.latency = 0.2
    for source, last in (("good", "All is well in the end."), ("bad", "This is poison.")):
        await openai.remember(f"{LONG}\n\n{last} {'Nothing else was said that day. ' * 9}", source)

    async def poison() -> None:
        while not any("poison" in text for text in asked(provider)):
            await asyncio.sleep(0.005)

    for _ in range(3):
        provider.enqueue(ServerError(only=lambda body: "poison" in str(body["messages"][-1])))
    outcomes, _ = await asyncio.gather(openai.extract(), poison())

    by_source = {item.job.artifact_uid: item for item in outcomes}
    assert sum(item.failure is not None for item in by_source.values()) == 1
    assert sum(item.extraction is not None for item in by_source.values()) == 1
    assert Counter(job["status"] for job in await openai.jobs()) == {"DONE": 1, "PENDING": 1}


async def test_a_run_that_lost_its_lease_writes_nothing(
    openai: Pipeline, provider: ScriptedProvider
) -> None:
    await openai.remember(SHORT)
    usual = provider.on_extract

    def revoked_meanwhile(text: str, body: Any) -> Any:
        asyncio.run_coroutine_threadsafe(revoke(), loop).result(timeout=10)
        return usual(text, body)

    async def revoke() -> None:
        await openai.rows(
            "UPDATE event_jobs SET status = 'PENDING', generation = generation + 1, attempts = 0,"
            " locked_at = NULL, locked_by = NULL"
        )

    loop = asyncio.get_running_loop()
    provider.on_extract = revoked_meanwhile
    [outcome] = await openai.extract()

    assert (outcome.extraction, outcome.failure) == (None, None)
    assert await openai.events() == []
    [job] = await openai.jobs()
    assert (job["status"], job["generation"], job["attempts"]) == ("PENDING", 2, 0)
    assert len(await openai.calls()) == 1, "paid for all the same"


async def test_an_index_that_is_down_fails_the_attempt_and_costs_no_second_call(
    openai: Pipeline, provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def down(*_: Any) -> None:
        raise ChromaUnavailable("Chroma does not answer.")

    await openai.remember(SHORT)
    with monkeypatch.context() as broken:
        broken.setattr(openai.runtime.vectors, "upsert", down)
        [outcome] = await openai.extract()
    assert outcome.failure is not None
    assert outcome.failure.code == "CHROMA_CONNECTION_ERROR"
    assert await openai.events() == []
    assert len(await openai.calls()) == 1, "recorded although nothing was stored"
    await openai.all_due()
    await openai.extract("run-2")

    assert len(await openai.events()) == 2
    assert len(provider.chats) == 1


async def test_a_deleted_document_fails_for_good(openai: Pipeline) -> None:
    await openai.remember(SHORT)
    [key] = await openai.keys()
    await openai.rows("DELETE FROM revision_text")
    [outcome] = await openai.extract(keys=[key])

    assert outcome.failure is not None
    assert (outcome.failure.status, outcome.failure.code) == ("FAILED", "ARTIFACT_NOT_FOUND")


async def test_two_runs_at_once_do_the_work_once(
    openai: Pipeline, provider: ScriptedProvider
) -> None:
    for number in range(6):
        await openai.remember(f"Bob Roth will do number {number}.", f"doc-{number}")
    await asyncio.gather(*(openai.extract(f"run-{number}") for number in range(4)))

    assert len(asked(provider)) == 6
    assert len(await openai.events()) == 6
    assert {job["attempts"] for job in await openai.jobs()} == {1}
    assert await jobs.claimable(openai.runtime.database, 10) == []
