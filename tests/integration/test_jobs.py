"""The queue: claim, heartbeat, complete, fail and release, also when many do so at once."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import dict_row

from memory_core import jobs
from memory_core.database import Database
from memory_core.errors import ErrorCode, MemoryFault, ProviderFault
from memory_core.jobs import Job, LeaseLost
from memory_core.settings import Settings

CLAIMERS = 20
MANY = 200
RATE_LIMIT = ProviderFault("Slow down.", code=ErrorCode.OPENAI_RATE_LIMIT)


@pytest.fixture(scope="module")
async def database(services: Settings) -> AsyncIterator[Database]:
    database = Database(services.dsn)
    await database.open()
    yield database
    await database.close()


@pytest.fixture(scope="module")
async def crowd(services: Settings) -> AsyncIterator[Database]:
    """As many real connections as there are claimers."""
    database = Database(services.dsn, max_connections=CLAIMERS)
    await database.open()
    yield database
    await database.close()


class Queue:
    """A look at the table, and the hand of fate in it."""

    def __init__(self, sql: psycopg.Connection) -> None:
        self._sql = sql

    def add(self, count: int = 1) -> list[str]:
        """Pending jobs of as many revisions; returns their partition keys."""
        self.run(
            "INSERT INTO artifact_revision (artifact_uid, revision_id, artifact_id, artifact_type,"
            " source_system, source_id, content_hash, token_count, is_chunked, chunk_count,"
            " partition_key) SELECT 'uid_' || n, 'rev', 'art', 'note', 'notes', '', '', 1, false,"
            " 0, 'key-' || n FROM generate_series(1, %s) AS n",
            count,
        )
        self.run(
            "INSERT INTO event_jobs (artifact_uid, revision_id)"
            " SELECT artifact_uid, revision_id FROM artifact_revision"
        )
        return [f"key-{number}" for number in range(1, count + 1)]

    def run(self, query: str, *parameters: object) -> list[dict[str, Any]]:
        cursor = self._sql.cursor(row_factory=dict_row).execute(query, parameters)  # type: ignore[arg-type]
        return cursor.fetchall() if cursor.description else []

    def all(self) -> list[dict[str, Any]]:
        return self.run(
            "SELECT j.*, r.partition_key, j.next_run_at - j.updated_at AS wait FROM event_jobs j"
            " JOIN artifact_revision r USING (artifact_uid, revision_id) ORDER BY r.partition_key"
        )

    def one(self) -> dict[str, Any]:
        [row] = self.all()
        return row

    def change(self, assignments: str, *parameters: object) -> None:
        self.run(f"UPDATE event_jobs SET {assignments}", *parameters)

    def let_leases_expire(self) -> None:
        self.change("locked_at = now() - make_interval(secs => %s)", jobs.LEASE_SECONDS + 1)

    def force(self) -> None:
        """As a forced re-extraction does."""
        self.change(
            "status = 'PENDING', attempts = 0, generation = generation + 1, next_run_at = now(),"
            " locked_at = NULL, locked_by = NULL"
        )


@pytest.fixture
def queue(sql: psycopg.Connection) -> Queue:
    """Empty. These tests know no more than two tables, so only those are emptied."""
    sql.execute("DELETE FROM event_jobs")
    sql.execute("DELETE FROM artifact_revision")
    return Queue(sql)


async def claimed(database: Database, keys: list[str], run: str = "run-1") -> Job:
    [job] = await jobs.claim(database, keys, run)
    return job


async def may_write(database: Database, job: Job) -> bool:
    try:
        async with database.transaction() as session:
            await jobs.hold(session, job)
    except LeaseLost:
        return False
    return True


# --- claim ------------------------------------------------------------------------------------


async def test_a_claimed_job_is_leased_to_its_run(database: Database, queue: Queue) -> None:
    job = await claimed(database, queue.add())

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


async def test_a_row_that_somebody_else_is_claiming_is_skipped(
    database: Database, queue: Queue
) -> None:
    keys = queue.add(3)
    async with database.transaction() as session:
        await session.connection.execute(
            "SELECT 1 FROM event_jobs WHERE artifact_uid = 'uid_2' FOR UPDATE"
        )
        won = await jobs.claim(database, keys, "run-1")

    assert sorted(job.partition_key for job in won) == ["key-1", "key-3"]


async def test_only_the_jobs_of_the_named_partitions_are_claimed(
    database: Database, queue: Queue
) -> None:
    queue.add(3)
    won = await jobs.claim(database, ["key-2", "nobody:uid:rev"], "run-1")

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
    database: Database, queue: Queue, state: str
) -> None:
    keys = queue.add()
    queue.change(state)

    assert await jobs.claimable(database, 10) == []
    assert await jobs.claim(database, keys, "run-1") == []


async def test_the_queue_is_shown_oldest_first_and_never_changed_by_looking(
    database: Database, queue: Queue
) -> None:
    queue.add(3)
    queue.run(
        "UPDATE event_jobs SET next_run_at = now() - interval '1 hour' WHERE artifact_uid='uid_3'"
    )
    before = [{**row, "wait": None} for row in queue.all()]
    shown = await jobs.claimable(database, 2)

    assert len(shown) == 2
    assert shown[0]["partition_key"] == "key-3"
    assert [{**row, "wait": None} for row in queue.all()] == before


# --- leases -----------------------------------------------------------------------------------


async def test_an_expired_lease_makes_a_job_claimable_and_names_the_dead_run(
    database: Database, queue: Queue
) -> None:
    keys = queue.add()
    await claimed(database, keys, "dead")
    queue.let_leases_expire()

    assert [row["partition_key"] for row in await jobs.claimable(database, 10)] == keys
    job = await claimed(database, keys, "alive")
    assert (job.dead_run_id, job.attempts) == ("dead", 2)


async def test_an_expired_lease_goes_to_one_of_many(crowd: Database, queue: Queue) -> None:
    keys = queue.add(MANY)
    await jobs.claim(crowd, keys, "dead")
    queue.let_leases_expire()
    won = await asyncio.gather(
        *(jobs.claim(crowd, keys, f"run-{number}") for number in range(CLAIMERS))
    )

    assert Counter(job.partition_key for batch in won for job in batch) == Counter(keys)


async def test_a_heartbeat_keeps_a_lease_alive(database: Database, queue: Queue) -> None:
    keys = queue.add()
    job = await claimed(database, keys)
    queue.let_leases_expire()

    assert await jobs.heartbeat(database, "run-1", [job.job_id]) == {job.job_id}
    assert await jobs.claim(database, keys, "run-2") == []


async def test_a_heartbeat_tells_which_leases_are_gone(database: Database, queue: Queue) -> None:
    won = await jobs.claim(database, queue.add(4), "run-1")
    lost, done, gone, kept = (job.job_id for job in won)
    queue.run("UPDATE event_jobs SET locked_by = 'run-2' WHERE job_id = %s", lost)
    queue.run("UPDATE event_jobs SET status = 'DONE' WHERE job_id = %s", done)
    queue.run("DELETE FROM event_jobs WHERE job_id = %s", gone)

    assert await jobs.heartbeat(database, "run-1", [lost, done, gone, kept]) == {kept}


async def test_heartbeat_and_claim_never_both_win_an_expired_job(
    crowd: Database, queue: Queue
) -> None:
    """Whoever comes first: either the old run still holds it, or a new one does."""
    keys = queue.add(MANY)
    old = {job.job_id for job in await jobs.claim(crowd, keys, "old")}
    queue.let_leases_expire()
    results = await asyncio.gather(
        *(jobs.heartbeat(crowd, "old", [id_]) for id_ in old),
        *(jobs.claim(crowd, keys, f"run-{number}") for number in range(4)),
    )
    kept: set[UUID] = set().union(*results[:MANY])  # type: ignore[arg-type]
    taken = [job.job_id for batch in results[MANY:] for job in batch]  # type: ignore[union-attr]

    assert len(taken) == len(set(taken))
    assert kept.isdisjoint(taken)
    assert kept | set(taken) == old


# --- attempts ---------------------------------------------------------------------------------


async def test_attempts_are_counted_at_the_claim_and_end_there(
    database: Database, queue: Queue
) -> None:
    """A document that kills its run every time never gets to say that it failed."""
    keys = queue.add()
    queue.change("max_attempts = 2")
    for run in ("run-1", "run-2"):
        await claimed(database, keys, run)
        await jobs.release_run(database, run, "killed by signal 9")

    assert await jobs.claim(database, keys, "run-3") == []
    row = queue.one()
    assert (row["status"], row["attempts"]) == ("FAILED", 2)
    assert row["last_error_code"] == "MAX_ATTEMPTS_EXCEEDED"
    assert row["last_error_message"] == "Gave up after 2 attempts. Last cause: killed by signal 9"
    assert row["locked_at"] is None


async def test_an_exhausted_job_whose_run_died_without_a_word_fails_as_well(
    database: Database, queue: Queue
) -> None:
    keys = queue.add()
    queue.change("max_attempts = 1")
    await claimed(database, keys)
    queue.let_leases_expire()

    assert await jobs.claim(database, keys, "run-2") == []
    row = queue.one()
    assert (row["status"], row["last_error_code"]) == ("FAILED", "MAX_ATTEMPTS_EXCEEDED")
    assert "the run died without a word" in row["last_error_message"]


async def test_a_last_attempt_that_is_still_in_work_is_left_alone(
    database: Database, queue: Queue
) -> None:
    keys = queue.add()
    queue.change("max_attempts = 1")
    job = await claimed(database, keys)
    await jobs.claim(database, keys, "run-2")

    assert queue.one()["status"] == "PROCESSING"
    assert await may_write(database, job)


# --- fail -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attempts", "seconds"), [(0, 30), (1, 60), (2, 120), (3, 240), (4, 480), (5, 600), (6, 600)]
)
async def test_a_failed_attempt_waits_longer_each_time(
    database: Database, queue: Queue, attempts: int, seconds: int
) -> None:
    keys = queue.add()
    queue.change("attempts = %s, max_attempts = 10", attempts)
    failure = await jobs.fail(database, await claimed(database, keys), RATE_LIMIT)

    row = queue.one()
    assert failure is not None
    assert (row["status"], row["last_error_code"]) == ("PENDING", "OPENAI_RATE_LIMIT")
    assert row["last_error_message"] == "Slow down."
    assert row["wait"] == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("retry_after", "seconds"), [(3600.0, 3600), (float("inf"), 86_400), (1e300, 86_400)]
)
async def test_a_provider_that_asks_for_more_patience_gets_it(
    database: Database, queue: Queue, retry_after: float, seconds: int
) -> None:
    job = await claimed(database, queue.add())
    fault = ProviderFault("Later.", code=ErrorCode.OPENAI_RATE_LIMIT, retry_after=retry_after)
    await jobs.fail(database, job, fault)

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
    database: Database, queue: Queue, code: ErrorCode
) -> None:
    job = await claimed(database, queue.add())
    failure = await jobs.fail(database, job, MemoryFault("No.", code=code))

    assert failure is not None
    assert (failure.status, failure.code) == ("FAILED", code)
    row = queue.one()
    assert (row["status"], row["last_error_code"]) == ("FAILED", code)
    assert row["locked_at"] is None


async def test_the_last_attempt_fails_for_good_and_says_what_the_cause_was(
    database: Database, queue: Queue
) -> None:
    keys = queue.add()
    queue.change("max_attempts = 1")
    await jobs.fail(database, await claimed(database, keys), RATE_LIMIT)

    row = queue.one()
    assert (row["status"], row["last_error_code"]) == ("FAILED", "MAX_ATTEMPTS_EXCEEDED")
    assert row["last_error_message"] == (
        "Gave up after 1 attempts. Last cause: OPENAI_RATE_LIMIT: Slow down."
    )


@pytest.mark.parametrize("message", ["a\x00b", "a\ud800b", "x" * 100_000])
async def test_whatever_a_provider_says_can_be_recorded(
    database: Database, queue: Queue, message: str
) -> None:
    job = await claimed(database, queue.add())
    await jobs.fail(database, job, ProviderFault(message, code=ErrorCode.OPENAI_TIMEOUT))

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
    database: Database, queue: Queue
) -> None:
    keys = queue.add()
    job = await claimed(database, keys, "old")
    queue.let_leases_expire()
    await claimed(database, keys, "new")

    assert await jobs.fail(database, job, RATE_LIMIT) is None
    assert (queue.one()["status"], queue.one()["locked_by"]) == ("PROCESSING", "new")


# --- the final transaction --------------------------------------------------------------------


async def test_the_holder_completes_its_job(database: Database, queue: Queue) -> None:
    keys = queue.add()
    queue.change("bypass_cache = true, last_error_code = 'X', last_error_message = 'x'")
    job = await claimed(database, keys)
    async with database.transaction() as session:
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
        pytest.param(lambda queue: queue.change("generation = 2"), id="asked for anew"),
        pytest.param(lambda queue: queue.run("DELETE FROM event_jobs"), id="artifact deleted"),
    ],
)
async def test_who_lost_the_lease_may_not_write(
    database: Database, queue: Queue, fate: Any
) -> None:
    job = await claimed(database, queue.add())
    fate(queue)

    assert not await may_write(database, job)


async def test_who_was_overtaken_after_expiry_may_not_write_but_the_new_holder_may(
    database: Database, queue: Queue
) -> None:
    keys = queue.add()
    old = await claimed(database, keys, "old")
    queue.let_leases_expire()
    new = await claimed(database, keys, "new")

    assert not await may_write(database, old)
    assert await may_write(database, new)


async def test_a_lease_that_expired_but_that_nobody_took_still_counts(
    database: Database, queue: Queue
) -> None:
    job = await claimed(database, queue.add())
    queue.let_leases_expire()

    assert await may_write(database, job)


async def test_nobody_takes_a_job_while_its_holder_is_writing(
    database: Database, queue: Queue
) -> None:
    keys = queue.add()
    job = await claimed(database, keys, "old")
    queue.let_leases_expire()
    async with database.transaction() as session:
        await jobs.hold(session, job)
        assert await jobs.claim(database, keys, "new") == []
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
async def test_somebody_who_asks_again_gets_a_new_request(
    database: Database, queue: Queue, status: str
) -> None:
    keys = queue.add()
    queue.change(
        "status = %s, attempts = 5, next_run_at = now() + interval '1 hour', requested_by = 'x'",
        status,
    )
    [job] = await jobs.claim(database, keys, "run-1", redo_as="ui")

    assert (job.generation, job.attempts, job.requested_by) == (2, 1, "ui")
    assert queue.one()["status"] == "PROCESSING"


async def test_a_live_lease_is_never_stolen(database: Database, queue: Queue) -> None:
    keys = queue.add()
    job = await claimed(database, keys, "at-work")

    assert await jobs.claim(database, keys, "run-2", redo_as="ui") == []
    assert (queue.one()["generation"], queue.one()["locked_by"]) == (1, "at-work")
    assert await may_write(database, job)


async def test_an_expired_lease_may_be_asked_for_again(database: Database, queue: Queue) -> None:
    keys = queue.add()
    old = await claimed(database, keys, "dead")
    queue.let_leases_expire()
    [new] = await jobs.claim(database, keys, "run-2", redo_as="backfill")

    assert (new.generation, new.attempts) == (2, 1)
    assert not await may_write(database, old)


async def test_a_revision_without_a_job_gets_one_when_asked_for(
    database: Database, queue: Queue
) -> None:
    keys = queue.add()
    queue.run("DELETE FROM event_jobs")
    [job] = await jobs.claim(database, keys, "run-1", redo_as="ui")

    assert (job.requested_by, job.attempts) == ("ui", 1)


async def test_when_many_ask_again_at_once_each_job_is_redone_once(
    crowd: Database, queue: Queue
) -> None:
    keys = queue.add(MANY)
    queue.change("status = 'DONE', attempts = 1")
    orders = [random.Random(seed).sample(keys, MANY) for seed in range(CLAIMERS)]
    won = await asyncio.gather(
        *(
            jobs.claim(crowd, order, f"run-{number}", redo_as="ui")
            for number, order in enumerate(orders)
        )
    )

    assert Counter(job.partition_key for batch in won for job in batch) == Counter(keys)
    assert {row["generation"] for row in queue.all()} == {2}


# --- release ----------------------------------------------------------------------------------


async def test_what_a_dead_run_held_is_due_again_at_once(database: Database, queue: Queue) -> None:
    keys = queue.add()
    job = await claimed(database, keys, "dead")
    released = await jobs.release_run(database, "dead", "killed")

    assert [row["job_id"] for row in released] == [job.job_id]
    row = queue.one()
    assert (row["status"], row["locked_at"]) == ("PENDING", None)
    assert (row["last_error_code"], row["last_error_message"]) == (jobs.RUN_DIED, "killed")
    assert not await may_write(database, job)
    assert (await claimed(database, keys, "new")).attempts == 2


async def test_only_what_that_run_is_working_on_is_released(
    database: Database, queue: Queue
) -> None:
    keys = queue.add(5)
    await jobs.claim(database, keys[:4], "dead")
    await jobs.claim(database, keys[4:], "alive")
    for uid, status in (("uid_1", "DONE"), ("uid_2", "FAILED"), ("uid_3", "PENDING")):
        queue.run("UPDATE event_jobs SET status = %s WHERE artifact_uid = %s", status, uid)
    before = {row["partition_key"]: row for row in queue.all()}
    released = await jobs.release_run(database, "dead", "killed")

    assert [row["artifact_uid"] for row in released] == ["uid_4"]
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
    database: Database, queue: Queue, reason: str
) -> None:
    await claimed(database, queue.add(), "dead")

    assert len(await jobs.release_run(database, "dead", reason)) == 1
