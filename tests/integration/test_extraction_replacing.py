"""Replace on success: what a new extraction leaves of the one before, and a failed one."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from memory_core.index.generation import CollectionName
from memory_core.queue import jobs
from memory_core.queue.answers import Answers
from memory_core.runtime import Runtime
from tests.conftest import IndexHost
from tests.indexing import caught_up
from tests.indexing import ids as indexed_ids
from tests.integration.extracting import LONG, SHORT, asked, ids
from tests.patience import PATIENCE
from tests.pipeline_client import Pipeline
from tests.scripted_provider import (
    AuthError,
    RateLimit,
    ScriptedProvider,
    ServerError,
)


def answer_with_one_event(provider: ScriptedProvider) -> None:
    """Where there were more."""
    usual = provider.on_extract
    provider.on_extract = lambda text, body: {
        **usual(text, body),
        "events": usual(text, body)["events"][:1],
    }


async def test_an_event_that_is_no_longer_found_is_gone_everywhere(
    openai: Pipeline, runtime: Runtime, provider: ScriptedProvider
) -> None:
    await openai.remember(SHORT)
    await openai.extract()
    kept = {str(row["event_id"]) for row in await openai.events() if row["category"] == "Decision"}
    answer_with_one_event(provider)
    await openai.extract("run-2", asked_by="ui", answers=Answers.NEW)

    assert set(await ids(openai)) == kept, "what is found again keeps its id"
    await caught_up(runtime)
    assert await indexed_ids(runtime, CollectionName.EVENTS) == kept


@pytest.mark.parametrize("fault", [ServerError(), AuthError(), RateLimit(retry_after=600)])
async def test_a_failed_attempt_leaves_the_old_events_as_they_were(
    openai: Pipeline, provider: ScriptedProvider, fault: Any
) -> None:
    await openai.remember(SHORT)
    await openai.extract()
    before = await openai.events()
    provider.enqueue(fault)
    [outcome] = await openai.extract("run-2", asked_by="ui", answers=Answers.NEW)

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
        asyncio.run_coroutine_threadsafe(revoke(), loop).result(timeout=PATIENCE)
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


async def test_an_index_that_is_down_does_not_keep_a_job_from_being_done(
    openai: Pipeline, index_host: IndexHost, runtime: Runtime
) -> None:
    await openai.remember(SHORT)
    await index_host.stop()
    openai.runtime.settings = openai.runtime.settings.model_copy(update={"index_wait_ms": 0})

    [outcome] = await openai.extract()

    assert outcome.extraction is not None
    assert outcome.extraction.indexed is False
    assert [job["status"] for job in await openai.jobs()] == ["DONE"]
    await index_host.host(runtime)
    await caught_up(runtime)
    assert await indexed_ids(runtime, CollectionName.EVENTS) == set(await ids(openai))


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
