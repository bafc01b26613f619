"""The ledger: the database writes down every step of a job, and refuses all that are not drawn."""

from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any
from uuid import UUID

import psycopg
import pytest

from memory_core.kernel import migrations
from memory_core.kernel.database import Database
from memory_core.log.origin import acting
from memory_core.queue import jobs
from memory_core.queue.cancel import cancel
from tests.documented import ROOT
from tests.integration.job_queue import RATE_LIMIT, Queue, claimed

STATES = ("PENDING", "PROCESSING", "DONE", "FAILED", "CANCELED")
ARROWS = {
    (None, "PENDING"), (None, "DONE"),
    ("PENDING", "PENDING"), ("PENDING", "PROCESSING"), ("PENDING", "DONE"), ("PENDING", "FAILED"),
    ("PENDING", "CANCELED"),
    ("PROCESSING", "PROCESSING"), ("PROCESSING", "PENDING"), ("PROCESSING", "DONE"),
    ("PROCESSING", "FAILED"), ("PROCESSING", "CANCELED"),
    ("DONE", "PENDING"), ("FAILED", "PENDING"), ("CANCELED", "PENDING"),
}  # fmt: skip
EVERY_STEP = list(product((None, *STATES), STATES))


def steps(queue: Queue) -> list[tuple[str | None, str]]:
    rows = queue.run("SELECT prev_status, next_status FROM job_event ORDER BY id")
    return [(row["prev_status"], row["next_status"]) for row in rows]


def details(queue: Queue) -> list[dict[str, Any]]:
    return [row["detail"] for row in queue.run("SELECT detail FROM job_event ORDER BY id")]


def stand_at(queue: Queue, state: str) -> None:
    """A job in that state, by legal steps."""
    queue.add()
    if state != "PENDING":
        queue.change("status = %s", state)


def go(queue: Queue, start: str | None, end: str) -> None:
    """One step by hand, with what it takes to be one where the state stays the same."""
    if start is None:
        queue.run(
            "INSERT INTO event_jobs (artifact_uid, revision_id, status) VALUES ('u', 'r', %s)", end
        )
    else:
        queue.change("status = %s, attempts = attempts + 1", end)


# --- the picture --------------------------------------------------------------------------------


def test_the_picture_in_the_docs_is_the_table_of_the_database(queue: Queue) -> None:
    rows = queue.run("SELECT prev_status, next_status, meaning FROM job_transition")
    arrows = [
        f"    {row['prev_status'] or '[*]'} --> {row['next_status']}: "
        + row["meaning"].replace(":", " –")
        for row in rows
    ]

    assert {(row["prev_status"], row["next_status"]) for row in rows} == ARROWS
    diagram = "\n".join(["stateDiagram-v2", *arrows])
    assert diagram in (ROOT / "docs" / "jobs.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("start", "end"), EVERY_STEP)
def test_a_step_is_taken_and_written_down_or_refused(
    queue: Queue, start: str | None, end: str
) -> None:
    if start is not None:
        stand_at(queue, start)
    before = steps(queue)

    if (start, end) in ARROWS:
        go(queue, start, end)
        assert steps(queue) == [*before, (start, end)]
    else:
        with pytest.raises(psycopg.errors.CheckViolation, match="cannot go from"):
            go(queue, start, end)
        assert steps(queue) == before


@pytest.mark.parametrize("state", STATES)
def test_the_end_is_dated_in_final_states_alone(queue: Queue, state: str) -> None:
    stand_at(queue, state)
    final = state in {"DONE", "FAILED", "CANCELED"}

    assert (queue.one()["finished_at"] is not None) == final
    if not final:
        queue.change("finished_at = now()")
        assert queue.one()["finished_at"] is None, "times follow the state"


def test_without_its_trigger_the_check_still_ties_the_end_to_final_states(
    queue: Queue, sql: psycopg.Connection
) -> None:
    queue.add()
    with sql.transaction(force_rollback=True):
        sql.execute("SET LOCAL session_replication_role = replica")
        with pytest.raises(psycopg.errors.CheckViolation, match="finished_at_consistency"):
            sql.execute("UPDATE event_jobs SET status = 'DONE'")


# --- what a row says ----------------------------------------------------------------------------


async def test_a_life_of_a_job_is_told_with_run_attempt_error_and_who(
    stores: Database, queue: Queue
) -> None:
    keys = queue.add()
    await jobs.fail(stores, await claimed(stores, keys, "run-1"), RATE_LIMIT)
    with acting(user_id="alice"):
        await cancel(stores, queue.one()["job_id"])

    assert steps(queue) == [
        (None, "PENDING"),
        ("PENDING", "PROCESSING"),
        ("PROCESSING", "PENDING"),
        ("PENDING", "CANCELED"),
    ]
    asked, begun, failed, ended = details(queue)
    assert (asked["attempt"], asked["generation"], asked["origin"]) == (0, 1, "ingest")
    assert (begun["run"], begun["attempt"]) == ("run-1", 1)
    assert (failed["error"], failed["message"]) == ("OPENAI_RATE_LIMIT", "Slow down.")
    assert failed["due"] > asked["due"]
    assert ended["who"] == "alice"


def test_a_step_by_hand_names_the_role_that_took_it(queue: Queue, sql: psycopg.Connection) -> None:
    stand_at(queue, "FAILED")
    [role] = queue.run("SELECT session_user::text AS name")

    assert details(queue)[-1]["who"] == role["name"]


async def test_a_heartbeat_is_no_step(stores: Database, queue: Queue) -> None:
    job = await claimed(stores, queue.add())
    before = steps(queue)
    await jobs.heartbeat(stores, "run-1", [job.job_id])

    assert steps(queue) == before


async def test_a_request_knows_who_asked_and_in_which_call(stores: Database, queue: Queue) -> None:
    keys = queue.add()
    queue.change("status = 'DONE'")
    with acting(user_id="bob", trace_id="4bf92f3577b34da6a3ce929d0e0e4736"):
        [job] = await jobs.claim(stores, keys, "run-1", asked_by="ui")

    row = queue.one()
    assert (row["origin"], row["requested_by"]) == ("ui", "bob")
    assert row["trace_id"] == job.trace_id == "4bf92f3577b34da6a3ce929d0e0e4736"
    [reopened] = [one for one in details(queue) if one["generation"] == 2 and one["attempt"] == 0]
    assert reopened["who"] == "bob"


# --- kept ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tampering",
    ["UPDATE job_event SET next_status = 'DONE'", "DELETE FROM job_event"],
)
def test_the_ledger_cannot_be_changed(queue: Queue, tampering: str) -> None:
    queue.add()
    with pytest.raises(psycopg.errors.RestrictViolation, match="append-only"):
        queue.run(tampering)


def test_the_ledger_of_a_job_goes_with_it(queue: Queue) -> None:
    queue.add(2)
    queue.run("DELETE FROM event_jobs WHERE artifact_uid = 'uid_1'")

    assert len(steps(queue)) == 1
    assert queue.run("SELECT 1 FROM job_event e LEFT JOIN event_jobs j USING (job_id) "
                     "WHERE j.job_id IS NULL") == []  # fmt: skip


# --- the queue in other words -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "error", "word"),
    [
        ("PENDING", None, "queued"),
        ("PROCESSING", None, "running"),
        ("DONE", None, "succeeded"),
        ("CANCELED", None, "canceled"),
        ("FAILED", "OPENAI_AUTH_ERROR", "failed"),
        ("FAILED", "MAX_ATTEMPTS_EXCEEDED", "dead_letter"),
    ],
)
def test_the_view_has_the_words_of_other_systems(
    queue: Queue, state: str, error: str | None, word: str
) -> None:
    stand_at(queue, state)
    queue.change("last_error_code = %s, priority = 3", error)

    [row] = queue.run("SELECT * FROM job")
    assert (row["status"], row["type"], row["priority"]) == (word, "extract_events", 3)
    assert row["org_id"] == UUID(int=0)
    assert row.keys() >= {"id", "attempt", "backoff_policy", "idempotency_key", "requested_by"}


async def test_the_start_is_that_of_the_first_attempt_of_a_request(
    stores: Database, queue: Queue
) -> None:
    keys = queue.add()
    await jobs.fail(stores, await claimed(stores, keys), RATE_LIMIT)
    first = queue.one()["started_at"]
    queue.change("next_run_at = now()")
    await claimed(stores, keys, "run-2")

    assert queue.one()["started_at"] == first
    assert datetime.now(UTC) - first < timedelta(minutes=5)
    queue.force()
    assert queue.one()["started_at"] is None


# --- jobs from before ---------------------------------------------------------------------------


def test_jobs_from_before_the_ledger_are_kept_and_begin_it(own_database: str) -> None:
    shipped = migrations.shipped()
    [ledger] = [one.number for one in shipped if one.name.endswith("_job_ledger.sql")]
    migrations.apply(own_database, [one for one in shipped if one.number < ledger])
    with psycopg.connect(own_database, autocommit=True) as old:
        old.execute(
            "INSERT INTO event_jobs (artifact_uid, revision_id, status, requested_by, attempts)"
            " VALUES ('a', 'r', 'DONE', 'ui', 1), ('b', 'r', 'PENDING', 'ingest', 0),"
            " ('c', 'r', 'FAILED', 'backfill', 5)"
        )
        before = old.execute("SELECT job_id, status, requested_by FROM event_jobs").fetchall()
    migrations.apply(own_database)

    with psycopg.connect(own_database, autocommit=True) as new:
        after = new.execute("SELECT job_id, status, origin FROM event_jobs").fetchall()
        assert sorted(after) == sorted(before)
        dated = new.execute("SELECT status, finished_at = updated_at FROM event_jobs").fetchall()
        assert set(dated) == {("DONE", True), ("PENDING", None), ("FAILED", True)}
        begun = new.execute("SELECT job_id, prev_status, next_status FROM job_event").fetchall()
        assert sorted(begun) == sorted((id_, None, status) for id_, status, _ in before)
        new.execute("UPDATE event_jobs SET status = 'PENDING' WHERE status = 'FAILED'")
        [last] = new.execute("SELECT prev_status FROM job_event ORDER BY id DESC LIMIT 1")
        assert last == ("FAILED",)
