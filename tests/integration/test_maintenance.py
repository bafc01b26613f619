"""Upkeep of our own tables, and the figures that are told of them."""

from pathlib import Path
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from memory_assets import old_runs, partition_retirement
from memory_core.backfill import control
from memory_core.extraction import prompts
from memory_core.extraction.answer_cache import AnswerCache
from memory_core.extraction.model import DocumentContext
from memory_core.kernel.database import Database
from memory_core.kernel.prices import Price
from memory_core.runtime import Runtime
from memory_core.upkeep import cache_sweep, metrics
from memory_core.upkeep.vacuum import vacuum
from tests.backfill_client import Deployment, begin, remember
from tests.pipeline_client import Pipeline, bump, with_openai
from tests.scripted_provider import AuthError, RateLimit, ScriptedProvider

MODEL = "gpt-4o"
CURRENT = prompts.load("extract").version
DAYS = 90


@pytest.fixture
def pipeline(runtime: Runtime) -> Pipeline:
    return Pipeline(runtime)


async def keep(
    pipeline: Pipeline, text: str, *, version: str = CURRENT, model: str = MODEL, days: int = 0
) -> None:
    """An answer about this passage, that old."""
    key = AnswerCache.key(text, DocumentContext("note"), version, model)
    await pipeline.rows(
        "INSERT INTO extraction_cache (chunk_hash, context_hash, prompt_version, model, answer, "
        "created_at) VALUES (%s, %s, %s, %s, %s, now() - make_interval(days => %s))",
        key.chunk_hash,
        key.context_hash,
        version,
        model,
        Jsonb("{}"),
        days,
    )


async def kept(pipeline: Pipeline) -> list[tuple[str, str]]:
    rows = await pipeline.rows("SELECT prompt_version, model FROM extraction_cache ORDER BY 1, 2")
    return [(row["prompt_version"], row["model"]) for row in rows]


async def sweep(pipeline: Pipeline, most: int = 1_000) -> int:
    settings = pipeline.runtime.settings
    assert (settings.cache_days, settings.openai_event_model) == (DAYS, MODEL)
    return await cache_sweep.sweep(pipeline.runtime.database, settings, most=most)


# --- the cache ---------------------------------------------------------------------------------


async def test_an_answer_about_a_passage_that_no_revision_has_is_dropped(
    pipeline: Pipeline,
) -> None:
    await pipeline.remember("Here to stay.")
    await keep(pipeline, "Here to stay.", days=400)
    await keep(pipeline, "Gone with its document.", days=2)
    await keep(pipeline, "Answered after its document was deleted.", days=0)

    assert await sweep(pipeline) == 2
    assert await kept(pipeline) == [(CURRENT, MODEL)]


async def test_answers_out_of_use_are_dropped_when_they_are_old(pipeline: Pipeline) -> None:
    await pipeline.remember("The passage.")
    await keep(pipeline, "The passage.", version="0-old", days=DAYS + 1)
    await keep(pipeline, "The passage.", version="0-young", days=DAYS - 1)
    await keep(pipeline, "The passage.", model="another", days=DAYS + 1)
    await keep(pipeline, "The passage.", days=DAYS + 1)

    assert await sweep(pipeline) == 2
    assert await kept(pipeline) == [("0-young", MODEL), (CURRENT, MODEL)]


async def test_answers_that_stored_events_come_from_stay_with_their_prompt_and_model(
    runtime: Runtime,
) -> None:
    """Another deployment may still work with them."""
    with ScriptedProvider() as provider:
        settings = with_openai(runtime.settings, provider)
        pipeline = Pipeline(runtime, **settings.model_dump())
        await pipeline.remember("Decision: keep the answer.")
        await pipeline.extract()
    await pipeline.rows("UPDATE extraction SET extract_version = '0-other', model = 'theirs'")
    await pipeline.rows("UPDATE extraction_cache SET created_at = now() - interval '400 days'")
    await keep(pipeline, "Decision: keep the answer.", version="0-other", model="theirs", days=400)
    await keep(pipeline, "Decision: keep the answer.", version="0-none", model="theirs", days=400)

    assert await sweep(pipeline) == 1
    assert ("0-other", "theirs") in await kept(pipeline)


async def test_answers_to_prompts_of_our_own_are_in_use_as_well(
    runtime: Runtime, tmp_path: Path
) -> None:
    """As those of a trial, which no event comes from yet."""
    pipeline = Pipeline(runtime, prompts_dir=bump(tmp_path, extract=2))
    ours = prompts.load("extract", tmp_path).version
    await pipeline.remember("The passage.")
    await keep(pipeline, "The passage.", version=ours, days=DAYS + 1)

    assert await sweep(pipeline) == 0
    assert await kept(pipeline) == [(ours, MODEL)]


async def test_merge_answers_go_when_they_are_old_also_those_in_use(pipeline: Pipeline) -> None:
    for days in (DAYS - 1, DAYS + 1):
        await pipeline.rows(
            "INSERT INTO extraction_cache (chunk_hash, context_hash, prompt_version, model, "
            "answer, created_at) "
            "VALUES (%s, 'event_merge', %s, %s, '{}', now() - make_interval(days => %s))",
            f"asked {days} days ago",
            prompts.load("merge").version,
            MODEL,
            days,
        )

    assert await sweep(pipeline) == 1
    [left] = await pipeline.rows("SELECT chunk_hash FROM extraction_cache")
    assert left["chunk_hash"] == f"asked {DAYS - 1} days ago"


async def test_no_more_is_dropped_at_once_than_was_said(pipeline: Pipeline) -> None:
    for number in range(5):
        await keep(pipeline, f"gone {number}", days=2)

    assert [await sweep(pipeline, most=3), await sweep(pipeline, most=3)] == [3, 2]


# --- what needs Dagster's tables ---------------------------------------------------------------


async def test_without_dagster_there_is_nothing_to_retire_or_prune(database: Database) -> None:
    assert await partition_retirement.retire(database, 1) == partition_retirement.RetirementResult(
        0, 0
    )
    assert await old_runs.prunable_runs(database, 1, 10, []) == []
    assert await old_runs.prune_check_results(database, 1, 10) == 0


# --- vacuum ------------------------------------------------------------------------------------


async def test_tables_with_many_dead_rows_are_vacuumed(pipeline: Pipeline) -> None:
    database = pipeline.runtime.database
    async with database.session() as session:
        # Postgres tidies by itself too, sooner or later.
        await session.connection.execute(
            "ALTER TABLE extraction_cache SET (autovacuum_enabled = false)"
        )
    for number in range(50):
        await keep(pipeline, f"dead {number}")
    async with database.session() as session:
        await session.connection.execute("DELETE FROM extraction_cache")
        # What a connection counts is told to the others only now and then.
        await session.connection.execute("SELECT pg_stat_force_next_flush()")

    assert "public.extraction_cache" not in await vacuum(database, schemas=["log"], dead_rows=40)
    assert "public.extraction_cache" in await vacuum(database, dead_rows=40)
    assert "public.extraction_cache" not in await vacuum(database, dead_rows=1_000_000)


# --- figures -----------------------------------------------------------------------------------


async def read(pipeline: Pipeline, **prices: Price) -> dict[str, Any]:
    read_out = await metrics.read_metrics(pipeline.runtime.database, prices)
    return {name: getattr(read_out, name) for name in read_out.__slots__}


async def test_an_empty_memory_has_figures_and_claims_nothing(pipeline: Pipeline) -> None:
    figures = await read(pipeline)

    assert figures["p95_seconds_to_events"] is figures["p95_call_seconds"] is None
    assert figures["cost_per_day"] is None
    assert {figures[name] for name in ("events_per_day", "tokens_per_day", "failure_rate")} == {0}
    assert figures["oldest_pending_seconds"] == 0


async def test_figures_count_what_was_done_and_what_failed(runtime: Runtime) -> None:
    with ScriptedProvider() as provider:
        settings = with_openai(runtime.settings, provider)
        pipeline = Pipeline(runtime, **settings.model_dump())
        provider.enqueue(AuthError())
        for number in range(4):
            await pipeline.remember(f"Decision: number {number}.", f"doc-{number}")
        await pipeline.extract()
    figures = await read(pipeline, **{MODEL: Price(1e6, 0)})

    assert (figures["revisions_per_day"], figures["events_per_day"]) == (3, 3)
    assert figures["calls_per_day"] == 4
    assert figures["failure_rate"] == figures["call_failure_rate"] == 0.25
    [tokens] = await pipeline.rows("SELECT sum(prompt_tokens) AS prompt FROM model_call")
    assert figures["cost_per_day"] == tokens["prompt"]
    assert (await read(pipeline, other=Price(1, 1)))["cost_per_day"] is None, "it would be too low"


async def test_a_document_waits_from_its_ingest_also_while_it_is_retried(runtime: Runtime) -> None:
    with ScriptedProvider() as provider:
        settings = with_openai(runtime.settings, provider)
        pipeline = Pipeline(runtime, **settings.model_dump())
        provider.enqueue(RateLimit(retry_after=400))
        await pipeline.remember("Decision: be patient.")
        await pipeline.extract()
    await pipeline.rows("UPDATE event_jobs SET created_at = now() - interval '1 hour'")
    database = pipeline.runtime.database

    assert await metrics.oldest_pending_seconds(database) >= 3600
    # Once it has events, a new request waits from when it is due; a backfill's is in no hurry.
    await pipeline.rows("UPDATE event_jobs SET generation = 2")
    assert await metrics.oldest_pending_seconds(database) == 0
    await pipeline.rows("UPDATE event_jobs SET next_run_at = now() - interval '10 minutes'")
    assert 600 <= await metrics.oldest_pending_seconds(database) < 3600
    await pipeline.rows("UPDATE event_jobs SET backfill_id = gen_random_uuid()")
    assert await metrics.oldest_pending_seconds(database) == 0


async def test_what_a_backfill_takes_back_did_not_end_today(
    deployment: Deployment,
) -> None:
    old, new = deployment(), deployment(extract=2)
    await remember(old, 3)
    await old.rows("UPDATE extraction SET finished_at = now() - interval '2 days'")
    failed = await new.remember("Decision: it fails.", "fails")
    await new.rows(
        "UPDATE event_jobs SET status = 'FAILED' WHERE artifact_uid = %s", failed.artifact_uid
    )
    await begin(new)

    await control.cancel(new.runtime)

    assert (await read(new))["failure_rate"] == 1.0
