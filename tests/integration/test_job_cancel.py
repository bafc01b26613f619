"""Canceling: at once what waits, at a safe point what is at work, and nothing half-written."""

import asyncio
from uuid import UUID, uuid4

import pytest

from memory_core.kernel.database import Database
from memory_core.kernel.errors import Conflict, NotFound
from memory_core.queue import jobs
from memory_core.queue.cancel import cancel
from memory_core.queue.jobs import JobCanceled
from tests.integration.job_queue import RATE_LIMIT, Queue, claimed
from tests.patience import PATIENCE
from tests.pipeline_client import Pipeline
from tests.scripted_provider import Held, ScriptedProvider, last_user_message


async def test_what_waits_is_canceled_at_once(stores: Database, queue: Queue) -> None:
    keys = queue.add()
    done = await cancel(stores, queue.one()["job_id"])

    assert (done.status, queue.one()["status"]) == ("CANCELED", "CANCELED")
    assert await jobs.claimable(stores, 10) == []
    assert await jobs.claim(stores, keys, "run-1") == []


async def test_to_cancel_twice_changes_nothing(stores: Database, queue: Queue) -> None:
    queue.add()
    first = await cancel(stores, queue.one()["job_id"])
    again = await cancel(stores, queue.one()["job_id"])

    assert again.message == first.message
    assert len(queue.run("SELECT 1 FROM job_event WHERE next_status = 'CANCELED'")) == 1


@pytest.mark.parametrize("status", ["DONE", "FAILED"])
async def test_what_has_ended_cannot_be_canceled(
    stores: Database, queue: Queue, status: str
) -> None:
    queue.add()
    queue.change("status = %s", status)

    with pytest.raises(Conflict, match=status):
        await cancel(stores, queue.one()["job_id"])
    assert queue.one()["status"] == status


async def test_an_unknown_job_is_not_found(stores: Database, queue: Queue) -> None:
    with pytest.raises(NotFound):
        await cancel(stores, uuid4())


async def test_a_canceled_job_can_be_asked_for_again(stores: Database, queue: Queue) -> None:
    keys = queue.add()
    await cancel(stores, queue.one()["job_id"])
    [job] = await jobs.claim(stores, keys, "run-1", asked_by="ui")

    assert (job.generation, queue.one()["status"]) == (2, "PROCESSING")
    assert queue.one()["cancel_requested_at"] is None


# --- at work ------------------------------------------------------------------------------------


async def test_what_is_at_work_may_not_be_stored_any_more(stores: Database, queue: Queue) -> None:
    job = await claimed(stores, queue.add())
    asked = await cancel(stores, job.job_id)
    assert asked.status == "PROCESSING"

    with pytest.raises(JobCanceled):
        async with stores.transaction() as session:
            await jobs.hold(session, job)
    assert await jobs.cancel_held(stores, job)
    assert queue.one()["status"] == "CANCELED"


async def test_a_heartbeat_tells_what_was_canceled(stores: Database, queue: Queue) -> None:
    first, second = await jobs.claim(stores, queue.add(2), "run-1")
    await cancel(stores, first.job_id)
    held = await jobs.heartbeat(stores, "run-1", [first.job_id, second.job_id])

    assert held.jobs == {first.job_id, second.job_id}
    assert held.canceled == {first.job_id}


async def test_an_attempt_that_fails_is_the_last_of_a_canceled_job(
    stores: Database, queue: Queue
) -> None:
    job = await claimed(stores, queue.add())
    await cancel(stores, job.job_id)
    failure = await jobs.fail(stores, job, RATE_LIMIT)

    assert failure is not None
    assert failure.status == queue.one()["status"] == "CANCELED"


async def test_a_canceled_job_whose_run_died_is_not_tried_again(
    stores: Database, queue: Queue
) -> None:
    keys = queue.add(2)
    told, silent = await jobs.claim(stores, keys, "dead")
    await cancel(stores, told.job_id)
    await cancel(stores, silent.job_id)
    queue.run("UPDATE event_jobs SET locked_by = 'gone' WHERE job_id = %s", silent.job_id)
    await jobs.release_run(stores, "dead", "killed")
    queue.run("UPDATE event_jobs SET locked_at = now() - interval '2 minutes' "
              "WHERE status = 'PROCESSING'")  # fmt: skip

    assert await jobs.claim(stores, keys, "new") == []
    assert {row["status"] for row in queue.all()} == {"CANCELED"}


async def test_a_job_of_a_dead_run_is_canceled_at_once(stores: Database, queue: Queue) -> None:
    job = await claimed(stores, queue.add())
    queue.let_leases_expire()

    assert (await cancel(stores, job.job_id)).status == "CANCELED"


# --- in the pipeline ----------------------------------------------------------------------------


async def test_its_run_stops_on_it_and_goes_on_with_the_others(
    patient: Pipeline, provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "HEARTBEAT_SECONDS", 0.02)
    pipeline = patient
    before = await pipeline.remember("Decision: tea is served at four.", "canceled", title="Tea")
    await pipeline.extract("run-0")
    events = await pipeline.events()
    held = Held(only=lambda body: "five" in last_user_message(body))
    provider.enqueue(held)
    stopped = await pipeline.remember("Decision: tea is served at five.", "canceled", title="Tea")
    other = await pipeline.remember("Decision: cake is served too.", "other", title="Cake")
    working = asyncio.create_task(pipeline.extract("run-1"))
    async with asyncio.timeout(PATIENCE):
        while not provider.in_flight:
            await asyncio.sleep(0.01)
    assert stopped.job_id is not None
    await cancel(pipeline.runtime.database, UUID(stopped.job_id))
    async with asyncio.timeout(PATIENCE):
        outcomes = await working
    held.gate.set()

    ended = {str(one.job.job_id): (one.canceled, one.extraction is None) for one in outcomes}
    assert ended == {stopped.job_id: (True, True), other.job_id: (False, False)}
    states = {str(row["job_id"]): row["status"] for row in await pipeline.jobs()}
    assert states == {before.job_id: "DONE", stopped.job_id: "CANCELED", other.job_id: "DONE"}
    mine = [row for row in await pipeline.events() if row["artifact_uid"] == before.artifact_uid]
    assert [(row["event_id"], row["created_at"]) for row in mine] == [
        (row["event_id"], row["created_at"]) for row in events
    ], "the events of the revision before are untouched, and there are no others"
    assert await pipeline.broken_evidence() == []
