"""How jobs end: the final transaction, asking again, and what a dead run held."""

import asyncio
import random
from collections import Counter
from typing import Any

import pytest

from memory_core.kernel.database import Database
from memory_core.queue import jobs
from memory_core.queue.jobs import Job, LeaseLost
from tests.integration.job_queue import CLAIMERS, MANY, RATE_LIMIT, Queue, claimed, may_write

# --- the final transaction --------------------------------------------------------------------


async def test_the_holder_completes_its_job(stores: Database, queue: Queue) -> None:
    keys = queue.add()
    queue.change("bypass_cache = true, last_error_code = 'X', last_error_message = 'x'")
    job = await claimed(stores, keys)
    async with stores.transaction() as session:
        await jobs.hold(session, job)
        await jobs.complete(session, job)

    row = queue.one()
    assert (row["status"], row["locked_at"], row["bypass_cache"]) == ("DONE", None, False)
    assert (row["last_error_code"], row["last_error_message"]) == (None, None)


@pytest.mark.parametrize(
    "fate",
    [
        pytest.param(lambda queue: queue.force(), id="revoked by force"),
        pytest.param(lambda queue: queue.change("locked_by = 'new'"), id="taken by another run"),
        pytest.param(lambda queue: queue.change("status = 'DONE'"), id="completed already"),
        pytest.param(lambda queue: queue.change("generation = 2"), id="asked for again"),
        pytest.param(lambda queue: queue.run("DELETE FROM event_jobs"), id="artifact deleted"),
    ],
)
async def test_who_lost_the_lease_may_not_write(stores: Database, queue: Queue, fate: Any) -> None:
    job = await claimed(stores, queue.add())
    fate(queue)

    assert not await may_write(stores, job)


async def test_who_was_overtaken_after_expiry_may_not_write_but_the_new_holder_may(
    stores: Database, queue: Queue
) -> None:
    keys = queue.add()
    old = await claimed(stores, keys, "old")
    queue.let_leases_expire()
    new = await claimed(stores, keys, "new")

    assert not await may_write(stores, old)
    assert await may_write(stores, new)


async def test_a_lease_that_expired_but_that_no_run_took_still_counts(
    stores: Database, queue: Queue
) -> None:
    job = await claimed(stores, queue.add())
    queue.let_leases_expire()

    assert await may_write(stores, job)


async def test_no_run_takes_a_job_while_its_holder_is_writing(
    stores: Database, queue: Queue
) -> None:
    keys = queue.add()
    job = await claimed(stores, keys, "old")
    queue.let_leases_expire()
    async with stores.transaction() as session:
        await jobs.hold(session, job)
        assert await jobs.claim(stores, keys, "new") == []
        await jobs.complete(session, job)

    assert queue.one()["status"] == "DONE"


async def test_of_all_runs_that_ever_held_a_job_only_the_last_completes_it(
    crowd: Database, queue: Queue
) -> None:
    keys = queue.add()
    queue.change("max_attempts = 100")
    holders = []
    for number in range(10):
        holders.append(await claimed(crowd, keys, f"run-{number}"))
        queue.let_leases_expire()
    outcomes = await asyncio.gather(*(may_write(crowd, job) for job in holders))

    assert outcomes == [False] * 9 + [True]


# --- redo -------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["DONE", "FAILED", "PENDING"])
async def test_a_user_who_asks_again_makes_a_new_request(
    stores: Database, queue: Queue, status: str
) -> None:
    keys = queue.add()
    queue.change(
        "status = %s, attempts = 5, next_run_at = now() + interval '1 hour', origin = 'x'",
        status,
    )
    [job] = await jobs.claim(stores, keys, "run-1", asked_by="ui")

    assert (job.generation, job.attempts, job.origin) == (2, 1, "ui")
    assert queue.one()["status"] == "PROCESSING"


async def test_a_live_lease_is_never_stolen(stores: Database, queue: Queue) -> None:
    keys = queue.add()
    job = await claimed(stores, keys, "at-work")

    assert await jobs.claim(stores, keys, "run-2", asked_by="ui") == []
    assert (queue.one()["generation"], queue.one()["locked_by"]) == (1, "at-work")
    assert await may_write(stores, job)


async def test_an_expired_lease_may_be_asked_for_again(stores: Database, queue: Queue) -> None:
    keys = queue.add()
    old = await claimed(stores, keys, "dead")
    queue.let_leases_expire()
    [new] = await jobs.claim(stores, keys, "run-2", asked_by="backfill")

    assert (new.generation, new.attempts) == (2, 1)
    assert not await may_write(stores, old)


async def test_a_revision_without_a_job_gets_one_when_asked_for(
    stores: Database, queue: Queue
) -> None:
    keys = queue.add()
    queue.run("DELETE FROM event_jobs")
    [job] = await jobs.claim(stores, keys, "run-1", asked_by="ui")

    assert (job.origin, job.attempts) == ("ui", 1)


async def test_when_many_ask_again_at_once_each_job_is_redone_once(
    crowd: Database, queue: Queue
) -> None:
    keys = queue.add(MANY)
    queue.change("status = 'DONE', attempts = 1")
    orders = [random.Random(seed).sample(keys, MANY) for seed in range(CLAIMERS)]
    won = await asyncio.gather(
        *(
            jobs.claim(crowd, order, f"run-{number}", asked_by="ui")
            for number, order in enumerate(orders)
        )
    )

    assert Counter(job.partition_key for batch in won for job in batch) == Counter(keys)
    assert {row["generation"] for row in queue.all()} == {2}


# --- release ----------------------------------------------------------------------------------


async def test_what_a_dead_run_held_is_due_again_at_once(stores: Database, queue: Queue) -> None:
    keys = queue.add()
    job = await claimed(stores, keys, "dead")
    released = await jobs.release_run(stores, "dead", "killed")

    assert [job.job_id for job in released] == [job.job_id]
    row = queue.one()
    assert (row["status"], row["locked_at"]) == ("PENDING", None)
    assert (row["last_error_code"], row["last_error_message"]) == (jobs.RUN_DIED, "killed")
    assert not await may_write(stores, job)
    assert (await claimed(stores, keys, "new")).attempts == 2


async def test_only_what_that_run_is_working_on_is_released(stores: Database, queue: Queue) -> None:
    keys = queue.add(5)
    await jobs.claim(stores, keys[:4], "dead")
    await jobs.claim(stores, keys[4:], "alive")
    for uid, status in (("uid_1", "DONE"), ("uid_2", "FAILED"), ("uid_3", "PENDING")):
        queue.run("UPDATE event_jobs SET status = %s WHERE artifact_uid = %s", status, uid)
    before = {row["partition_key"]: row for row in queue.all()}
    released = await jobs.release_run(stores, "dead", "killed")

    assert [job.artifact_uid for job in released] == ["uid_4"]
    for row in queue.all():
        if row["partition_key"] != "key-4":
            assert row["updated_at"] == before[row["partition_key"]]["updated_at"]


async def test_release_fail_and_complete_settle_each_job_once(
    crowd: Database, queue: Queue
) -> None:
    won = await jobs.claim(crowd, queue.add(MANY), "run-1")

    async def complete(job: Job) -> bool:
        try:
            async with crowd.transaction() as session:
                await jobs.hold(session, job)
                await jobs.complete(session, job)
        except LeaseLost:
            return False
        return True

    completing = [complete(job) for job in won]
    failing = [jobs.fail(crowd, job, RATE_LIMIT) for job in won]
    releasing = [jobs.release_run(crowd, "run-1", "killed") for _ in range(3)]
    work = [*completing, *failing, *releasing]
    order = random.Random(1).sample(range(len(work)), len(work))
    results = dict(zip(order, await asyncio.gather(*(work[n] for n in order)), strict=True))

    completed = sum(bool(results[n]) for n in range(MANY))
    failed = sum(results[n] is not None for n in range(MANY, 2 * MANY))
    released = sum(len(results[n]) for n in range(2 * MANY, len(work)))  # type: ignore[arg-type]
    assert completed + failed + released == MANY
    states = Counter((row["status"], row["last_error_code"]) for row in queue.all())
    assert states[("DONE", None)] == completed
    assert states[("PENDING", "OPENAI_RATE_LIMIT")] == failed
    assert states[("PENDING", jobs.RUN_DIED)] == released


@pytest.mark.parametrize("reason", ["a\x00b", "a\ud800b", "x" * 100_000])
async def test_whatever_the_reason_was_a_run_is_released(
    stores: Database, queue: Queue, reason: str
) -> None:
    await claimed(stores, queue.add(), "dead")

    assert len(await jobs.release_run(stores, "dead", reason)) == 1
