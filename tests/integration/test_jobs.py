"""The queue: claim, heartbeat, complete, fail and release, also when many do so at once."""

import asyncio
import random
from collections import Counter
from datetime import timedelta
from uuid import UUID

import pytest

from memory_core.kernel.database import Database
from memory_core.kernel.errors import ErrorCode, MemoryFault, ProviderFault
from memory_core.queue import jobs
from tests.integration.job_queue import CLAIMERS, MANY, RATE_LIMIT, Queue, claimed, may_write
from tests.patience import PATIENCE

# --- claim ------------------------------------------------------------------------------------


async def test_a_claimed_job_is_leased_to_its_run(stores: Database, queue: Queue) -> None:
    job = await claimed(stores, queue.add())

    row = queue.one()
    assert (row["status"], row["locked_by"], row["attempts"]) == ("PROCESSING", "run-1", 1)
    assert row["locked_at"] is not None
    assert (job.partition_key, job.attempts, job.run_id) == ("key-1", 1, "run-1")
    assert job.dead_run_id is None


async def test_every_job_is_claimed_exactly_once_by_twenty_claimers(
    crowd: Database, queue: Queue
) -> None:
    keys = queue.add(MANY)
    orders = [random.Random(seed).sample(keys, MANY) for seed in range(CLAIMERS)]
    won = await asyncio.gather(
        *(jobs.claim(crowd, order, f"run-{number}") for number, order in enumerate(orders))
    )

    assert Counter(job.partition_key for batch in won for job in batch) == Counter(keys)
    assert {(row["status"], row["attempts"]) for row in queue.all()} == {("PROCESSING", 1)}
    holders = {row["partition_key"]: row["locked_by"] for row in queue.all()}
    assert all(holders[job.partition_key] == job.run_id for batch in won for job in batch)


async def test_claimers_of_overlapping_batches_share_without_waiting_for_each_other(
    crowd: Database, queue: Queue
) -> None:
    keys = queue.add(MANY)
    batches = [keys[start : start + 40] for start in range(0, MANY, 10)]
    won = await asyncio.gather(
        *(jobs.claim(crowd, batch, f"run-{number}") for number, batch in enumerate(batches))
    )

    assert Counter(job.partition_key for batch in won for job in batch) == Counter(keys)


async def test_a_row_that_another_run_is_claiming_is_skipped(
    stores: Database, queue: Queue
) -> None:
    keys = queue.add(3)
    async with stores.transaction() as session:
        await session.connection.execute(
            "SELECT 1 FROM event_jobs WHERE artifact_uid = 'uid_2' FOR UPDATE"
        )
        won = await jobs.claim(stores, keys, "run-1")

    assert sorted(job.partition_key for job in won) == ["key-1", "key-3"]


async def test_only_the_jobs_of_the_named_partitions_are_claimed(
    stores: Database, queue: Queue
) -> None:
    queue.add(3)
    won = await jobs.claim(stores, ["key-2", "unknown:uid:rev"], "run-1")

    assert [job.partition_key for job in won] == ["key-2"]


@pytest.mark.parametrize(
    "state",
    [
        pytest.param("status = 'DONE'", id="done"),
        pytest.param("status = 'FAILED'", id="failed"),
        pytest.param("next_run_at = now() + interval '1 minute'", id="not due yet"),
        pytest.param("status = 'PROCESSING', locked_at = now(), locked_by = 'x'", id="in work"),
        pytest.param("job_type = 'other'", id="of another kind"),
    ],
)
async def test_what_is_not_due_is_neither_shown_nor_claimed(
    stores: Database, queue: Queue, state: str
) -> None:
    keys = queue.add()
    queue.change(state)

    assert await jobs.claimable(stores, 10) == []
    assert await jobs.claim(stores, keys, "run-1") == []


async def test_the_queue_is_shown_oldest_first_and_never_changed_by_looking(
    stores: Database, queue: Queue
) -> None:
    queue.add(3)
    queue.run(
        "UPDATE event_jobs SET next_run_at = now() - interval '1 hour' WHERE artifact_uid='uid_3'"
    )
    before = [{**row, "wait": None} for row in queue.all()]
    shown = await jobs.claimable(stores, 2)

    assert len(shown) == 2
    assert shown[0].partition_key == "key-3"
    assert [{**row, "wait": None} for row in queue.all()] == before


# --- leases -----------------------------------------------------------------------------------


async def test_an_expired_lease_makes_a_job_claimable_and_names_the_dead_run(
    stores: Database, queue: Queue
) -> None:
    keys = queue.add()
    await claimed(stores, keys, "dead")
    queue.let_leases_expire()

    assert [job.partition_key for job in await jobs.claimable(stores, 10)] == keys
    job = await claimed(stores, keys, "alive")
    assert (job.dead_run_id, job.attempts) == ("dead", 2)


async def test_an_expired_lease_goes_to_one_of_many(crowd: Database, queue: Queue) -> None:
    keys = queue.add(MANY)
    await jobs.claim(crowd, keys, "dead")
    queue.let_leases_expire()
    won = await asyncio.gather(
        *(jobs.claim(crowd, keys, f"run-{number}") for number in range(CLAIMERS))
    )

    assert Counter(job.partition_key for batch in won for job in batch) == Counter(keys)


async def test_a_heartbeat_keeps_a_lease_alive(stores: Database, queue: Queue) -> None:
    keys = queue.add()
    job = await claimed(stores, keys)
    queue.let_leases_expire()

    assert (await jobs.heartbeat(stores, "run-1", [job.job_id])).jobs == {job.job_id}
    assert await jobs.claim(stores, keys, "run-2") == []


async def test_a_heartbeat_tells_which_leases_are_gone(stores: Database, queue: Queue) -> None:
    won = await jobs.claim(stores, queue.add(4), "run-1")
    lost, done, gone, kept = (job.job_id for job in won)
    queue.run("UPDATE event_jobs SET locked_by = 'run-2' WHERE job_id = %s", lost)
    queue.run("UPDATE event_jobs SET status = 'DONE' WHERE job_id = %s", done)
    queue.run("DELETE FROM event_jobs WHERE job_id = %s", gone)

    assert (await jobs.heartbeat(stores, "run-1", [lost, done, gone, kept])).jobs == {kept}


async def test_a_heartbeat_does_not_wait_for_a_job_that_is_being_stored(
    stores: Database, queue: Queue
) -> None:
    stored, other = await jobs.claim(stores, queue.add(2), "run-1")
    queue.let_leases_expire()
    async with stores.transaction() as session, asyncio.timeout(PATIENCE):
        await jobs.hold(session, stored)
        held = await jobs.heartbeat(stores, "run-1", [stored.job_id, other.job_id])

    assert held.jobs == {stored.job_id, other.job_id}, "no run can take what is locked"
    assert [job.job_id for job in await jobs.claim(stores, ["key-1", "key-2"], "run-2")] == [
        stored.job_id
    ], "the other lease was refreshed"


async def test_heartbeat_and_claim_never_both_win_an_expired_job(
    crowd: Database, queue: Queue
) -> None:
    """Whichever comes first: either the old run still holds it, or a new one does."""
    keys = queue.add(MANY)
    old = {job.job_id for job in await jobs.claim(crowd, keys, "old")}
    queue.let_leases_expire()
    results = await asyncio.gather(
        *(jobs.heartbeat(crowd, "old", [id_]) for id_ in old),
        *(jobs.claim(crowd, keys, f"run-{number}") for number in range(4)),
    )
    kept: set[UUID] = set().union(*(held.jobs for held in results[:MANY]))  # type: ignore[union-attr]
    taken = [job.job_id for batch in results[MANY:] for job in batch]  # type: ignore[union-attr]

    holders = {row["job_id"]: row["locked_by"] for row in queue.all()}

    assert len(taken) == len(set(taken))
    still_old = {id_ for id_, holder in holders.items() if holder == "old"}
    assert still_old == old - set(taken) <= kept


# --- an outage --------------------------------------------------------------------------------


# --- attempts ---------------------------------------------------------------------------------


async def test_a_limit_that_was_raised_counts_for_jobs_from_before(
    stores: Database, queue: Queue
) -> None:
    keys = queue.add(2)
    queue.change("attempts = 5, max_attempts = 5")

    claimed = await jobs.claim(stores, keys, "run-1", max_attempts=9)

    assert [(job.attempts, job.max_attempts) for job in claimed] == [(6, 9), (6, 9)]
    assert {row["max_attempts"] for row in queue.all()} == {9}


async def test_a_limit_that_was_lowered_counts_for_jobs_from_before(
    stores: Database, queue: Queue
) -> None:
    keys = queue.add()
    queue.change("attempts = 3, max_attempts = 5")

    assert await jobs.claim(stores, keys, "run-1", max_attempts=2) == []

    [row] = queue.all()
    assert (row["status"], row["last_error_code"]) == ("FAILED", "MAX_ATTEMPTS_EXCEEDED")


async def test_a_live_run_keeps_the_limit_it_claimed_with(stores: Database, queue: Queue) -> None:
    keys = queue.add()
    await jobs.claim(stores, keys, "run-1", max_attempts=5)

    assert await jobs.claim(stores, keys, "run-2", max_attempts=1, asked_by="ui") == []
    assert {row["max_attempts"] for row in queue.all()} == {5}


async def test_a_revision_without_a_job_gets_one_with_todays_limit(
    stores: Database, queue: Queue
) -> None:
    keys = queue.add()
    queue.run("DELETE FROM event_jobs")

    [job] = await jobs.claim(stores, keys, "run-1", asked_by="ui", max_attempts=9)

    assert job.max_attempts == 9


async def test_attempts_are_counted_at_the_claim_and_end_there(
    stores: Database, queue: Queue
) -> None:
    """A document that kills its run every time never gets to say that it failed."""
    keys = queue.add()
    queue.change("max_attempts = 2")
    for run in ("run-1", "run-2"):
        await claimed(stores, keys, run)
        await jobs.release_run(stores, run, "killed by signal 9")

    assert await jobs.claim(stores, keys, "run-3") == []
    row = queue.one()
    assert (row["status"], row["attempts"]) == ("FAILED", 2)
    assert row["last_error_code"] == "MAX_ATTEMPTS_EXCEEDED"
    assert row["last_error_message"] == "Gave up after 2 attempts. Last cause: killed by signal 9"
    assert row["locked_at"] is None


async def test_an_exhausted_job_whose_run_died_without_a_word_fails_as_well(
    stores: Database, queue: Queue
) -> None:
    keys = queue.add()
    queue.change("max_attempts = 1")
    await claimed(stores, keys)
    queue.let_leases_expire()

    assert await jobs.claim(stores, keys, "run-2") == []
    row = queue.one()
    assert (row["status"], row["last_error_code"]) == ("FAILED", "MAX_ATTEMPTS_EXCEEDED")
    assert "the run died without a word" in row["last_error_message"]


async def test_a_last_attempt_that_is_still_in_work_is_left_alone(
    stores: Database, queue: Queue
) -> None:
    keys = queue.add()
    queue.change("max_attempts = 1")
    job = await claimed(stores, keys)
    await jobs.claim(stores, keys, "run-2")

    assert queue.one()["status"] == "PROCESSING"
    assert await may_write(stores, job)


# --- fail -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attempts", "seconds"), [(0, 30), (1, 60), (2, 120), (3, 240), (4, 480), (5, 600), (6, 600)]
)
async def test_a_failed_attempt_waits_longer_each_time(
    stores: Database, queue: Queue, attempts: int, seconds: int
) -> None:
    keys = queue.add()
    queue.change("attempts = %s, max_attempts = 10", attempts)
    failure = await jobs.fail(stores, await claimed(stores, keys), RATE_LIMIT)

    row = queue.one()
    assert failure is not None
    assert (row["status"], row["last_error_code"]) == ("PENDING", "OPENAI_RATE_LIMIT")
    assert row["last_error_message"] == "Slow down."
    assert row["wait"] == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("retry_after", "seconds"), [(3600.0, 3600), (float("inf"), 86_400), (1e300, 86_400)]
)
async def test_a_provider_that_asks_for_more_patience_gets_it(
    stores: Database, queue: Queue, retry_after: float, seconds: int
) -> None:
    job = await claimed(stores, queue.add())
    fault = ProviderFault("Later.", code=ErrorCode.OPENAI_RATE_LIMIT, retry_after=retry_after)
    await jobs.fail(stores, job, fault)

    row = queue.one()
    assert row["status"] == "PENDING"
    assert row["wait"] == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.OPENAI_INVALID_MODEL,
        ErrorCode.OPENAI_AUTH_ERROR,
        ErrorCode.ARTIFACT_NOT_FOUND,
        ErrorCode.CONFIGURATION_ERROR,
    ],
)
async def test_what_waiting_cannot_cure_fails_at_once_under_its_own_code(
    stores: Database, queue: Queue, code: ErrorCode
) -> None:
    job = await claimed(stores, queue.add())
    failure = await jobs.fail(stores, job, MemoryFault("No.", code=code))

    assert failure is not None
    assert (failure.status, failure.code) == ("FAILED", code)
    row = queue.one()
    assert (row["status"], row["last_error_code"]) == ("FAILED", code)
    assert row["locked_at"] is None


async def test_the_last_attempt_fails_for_good_and_says_what_the_cause_was(
    stores: Database, queue: Queue
) -> None:
    keys = queue.add()
    queue.change("max_attempts = 1")
    await jobs.fail(stores, await claimed(stores, keys), RATE_LIMIT)

    row = queue.one()
    assert (row["status"], row["last_error_code"]) == ("FAILED", "MAX_ATTEMPTS_EXCEEDED")
    assert row["last_error_message"] == (
        "Gave up after 1 attempts. Last cause: OPENAI_RATE_LIMIT: Slow down."
    )


@pytest.mark.parametrize("message", ["a\x00b", "a\ud800b", "x" * 100_000])
async def test_whatever_a_provider_says_can_be_recorded(
    stores: Database, queue: Queue, message: str
) -> None:
    job = await claimed(stores, queue.add())
    await jobs.fail(stores, job, ProviderFault(message, code=ErrorCode.OPENAI_TIMEOUT))

    row = queue.one()
    assert row["status"] == "PENDING"
    assert 0 < len(row["last_error_message"]) <= 2_000


async def test_of_many_that_report_the_same_failure_one_is_recorded(
    crowd: Database, queue: Queue
) -> None:
    job = await claimed(crowd, queue.add())
    recorded = await asyncio.gather(*(jobs.fail(crowd, job, RATE_LIMIT) for _ in range(CLAIMERS)))

    assert sum(failure is not None for failure in recorded) == 1


async def test_a_failure_is_not_recorded_by_who_lost_the_lease(
    stores: Database, queue: Queue
) -> None:
    keys = queue.add()
    job = await claimed(stores, keys, "old")
    queue.let_leases_expire()
    await claimed(stores, keys, "new")

    assert await jobs.fail(stores, job, RATE_LIMIT) is None
    assert (queue.one()["status"], queue.one()["locked_by"]) == ("PROCESSING", "new")
