"""From pending jobs to stored events: what is stored, and who may do it."""

import asyncio
from datetime import datetime, timedelta

import pytest

from memory_core.index.generation import CollectionName
from memory_core.processing.batch import JobOutcome
from memory_core.queue import jobs
from memory_core.runtime import Runtime
from tests.integration.asking import until
from tests.integration.extracting import LONG, PARAGRAPHS, SHORT
from tests.patience import PATIENCE
from tests.pipeline_client import SMALL_CHUNKS, Pipeline
from tests.scripted_provider import (
    Answer,
    Held,
    Refusal,
    ScriptedProvider,
)

MINUTE = timedelta(minutes=1)


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
    await openai.remember(LONG.replace("Carol Diaz", "Carol Diaz (CD) or Ms Diaz"))
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


# --- leases -----------------------------------------------------------------------------------


async def test_a_document_that_takes_long_keeps_its_lease(
    patient: Pipeline, provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "HEARTBEAT_SECONDS", 0.02)
    held, working = await in_the_calls(patient, provider)
    try:
        await patient.rows("UPDATE event_jobs SET locked_at = locked_at - interval '1 hour'")
        async with asyncio.timeout(PATIENCE):
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

    async with asyncio.timeout(PATIENCE):
        [outcome] = await working  # though no answer has come

    held.gate.set()
    assert (outcome.extraction, outcome.failure) == (None, None)
    assert await patient.events() == []


async def in_the_calls(
    pipeline: Pipeline, provider: ScriptedProvider
) -> tuple[Held, "asyncio.Task[list[JobOutcome]]"]:
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
