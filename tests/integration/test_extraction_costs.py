"""What an extraction pays for, and that it pays once."""

import asyncio
import threading
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memory_core.events.reextraction import reextract
from memory_core.kernel import queries
from memory_core.kernel.ids import sha256
from memory_core.queue.answers import Answers
from memory_core.runtime import Runtime
from tests.integration.asking import until
from tests.integration.extracting import LONG, PARAGRAPHS, SHORT, asked
from tests.patience import PATIENCE
from tests.pipeline_client import SMALL_CHUNKS, Pipeline, bump, with_openai
from tests.scripted_provider import (
    AuthError,
    Held,
    InvalidJson,
    RateLimit,
    ScriptedProvider,
    ServerError,
    Timeout,
)

MARCH, APRIL = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC)


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
    [outcome] = await openai.extract("run-2", asked_by="backfill")

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
    cached = {row["chunk_hash"] for row in await pipeline.rows("SELECT * FROM extraction_cache")}
    before = len(asked(provider))
    await pipeline.all_due()
    [second] = await pipeline.extract("run-2")

    again = [sha256(text) for text in asked(provider)[before:]]
    assert second.extraction is not None
    assert cached
    assert cached.isdisjoint(again)
    assert len(cached) + len(again) == len(second.extraction.chunks)


async def test_calls_under_way_when_another_fails_are_not_paid_for_again(
    openai: Pipeline, provider: ScriptedProvider
) -> None:
    """A provider bills what it was sent, whether or not a caller waits for the answer."""

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
async def test_a_user_who_insists_gets_a_new_answer(
    openai: Pipeline, provider: ScriptedProvider, how: str
) -> None:
    ingested = await openai.remember(SHORT)
    await openai.extract()
    provider.on_extract = lambda text, _: {"events": [], "entities": []}
    if how == "tool":
        await reextract(openai.runtime, ingested.artifact_uid, None, answers=Answers.NEW)
        await openai.extract("run-2")
    else:
        await openai.extract("run-2", asked_by="ui", answers=Answers.NEW)

    assert len(asked(provider)) == 2
    assert await openai.events() == []
    [job] = await openai.jobs()
    assert job["bypass_cache"] is False, "for once"


@pytest.mark.parametrize("how", ["ui", "tool"])
async def test_a_user_who_insists_pays_once_however_often_it_fails(
    openai: Pipeline, provider: ScriptedProvider, how: str
) -> None:
    ingested = await openai.remember(LONG)
    await openai.extract()
    chunks = len(asked(provider))
    provider.reset()
    broken = "room 77"
    provider.enqueue(ServerError(only=lambda body: broken in body["messages"][-1]["content"]))
    if how == "tool":
        await reextract(openai.runtime, ingested.artifact_uid, None, answers=Answers.NEW)
        await openai.extract("run-2")
    else:
        await openai.extract("run-2", asked_by="ui", answers=Answers.NEW)
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
    await reextract(openai.runtime, ingested.artifact_uid, None, answers=Answers.NEW)
    await openai.extract("run-2")
    [job] = await openai.jobs()
    assert job["status"] == "FAILED"
    provider.reset()

    await openai.extract("run-3", asked_by="ui", answers=Answers.STORED)

    assert provider.chats == []
    assert [job["status"] for job in await openai.jobs()] == ["DONE"]


async def test_what_follows_by_hand_is_made_of_the_extractions_that_are_there(
    openai: Pipeline, provider: ScriptedProvider, tmp_path: Path
) -> None:
    """Whatever prompt they are from: an operator who wants new ones materialises them."""
    await openai.remember(LONG)
    await openai.extract()
    before = await openai.events()
    [made] = await openai.rows("SELECT extract_version, model FROM extraction")
    provider.reset()
    newer = Pipeline(openai.runtime, prompts_dir=bump(tmp_path, extract=2))

    [outcome] = await newer.extract("run-2", asked_by="ui", answers=Answers.STORED)

    assert outcome.extraction is not None
    assert asked(provider) == []
    assert [made] == await openai.rows("SELECT extract_version, model FROM extraction")
    columns = ("event_id", "narrative", "start_char", "end_char")
    assert [[row[name] for name in columns] for row in await openai.events()] == [
        [row[name] for name in columns] for row in before
    ]

    await openai.rows(
        "DELETE FROM extraction_cache WHERE prompt_version = %s", made["extract_version"]
    )
    await newer.extract("run-3", asked_by="ui", answers=Answers.STORED)
    assert len(asked(provider)) == outcome.extraction.cache_hits, (
        "answers that are gone are asked for"
    )
    [now] = await openai.rows("SELECT extract_number FROM extraction")
    assert now["extract_number"] == int(made["extract_version"].partition("-")[0]) + 1


async def test_calls_are_on_the_books_while_their_document_is_still_in_work(
    patient: Pipeline, provider: ScriptedProvider
) -> None:
    """A run may be killed at any moment; budgets count what it paid for all the same."""
    held = Held(only=lambda body: "room 77" in body["messages"][-1]["content"])
    provider.enqueue(held)
    await patient.remember(LONG)
    working = asyncio.create_task(patient.extract())
    try:
        async with asyncio.timeout(PATIENCE):
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
