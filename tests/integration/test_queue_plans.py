"""How Postgres finds the head of a long queue: by an index in working order, reading few rows."""

from typing import Any
from uuid import UUID

import psycopg
import pytest

from benchmarks.bench_queue import fill
from memory_core.kernel import queries
from memory_core.kernel.settings import Settings
from memory_core.queue.answers import Answers
from memory_core.queue.jobs import LEASE_SECONDS, reach

JOBS = 20_000
LIMIT = 20
LARGE = {"event_jobs", "artifact_revision"}


@pytest.fixture
def long_queue(settings: Settings) -> Settings:
    fill(settings.dsn, 1, JOBS)
    return settings


def scans(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """Every node that reads a large table."""
    inner = [scan for child in plan.get("Plans", []) for scan in scans(child)]
    return [plan, *inner] if plan.get("Relation Name") in LARGE else inner


def rows_read(scan: dict[str, Any]) -> int:
    """Also those that a filter then dropped."""
    dropped = scan.get("Rows Removed by Filter", 0)
    return int((scan["Actual Rows"] + dropped) * scan["Actual Loops"])


def plan_of(connection: psycopg.Connection, query: str, **parameters: Any) -> dict[str, Any]:
    row = connection.execute(
        b"EXPLAIN (ANALYZE, FORMAT JSON) " + queries.get(query), parameters
    ).fetchone()
    assert row is not None
    plan: dict[str, Any] = row[0][0]["Plan"]
    return plan


def assert_reads_few(plan: dict[str, Any], most: int = 2 * LIMIT) -> None:
    for scan in scans(plan):
        assert scan["Node Type"] != "Seq Scan", scan
        assert rows_read(scan) <= most, scan


@pytest.mark.parametrize("of_a_backfill", [False, True])
def test_looking_at_the_head_of_the_queue_reads_no_more_than_it_shows(
    long_queue: Settings, of_a_backfill: bool
) -> None:
    with psycopg.connect(long_queue.dsn, autocommit=True) as connection:
        if of_a_backfill:
            connection.execute("SET session_replication_role = replica")
            connection.execute("UPDATE event_jobs SET backfill_id = gen_random_uuid()")
            connection.execute("VACUUM ANALYZE event_jobs")
        plan = plan_of(connection, "claimable_jobs", **LOOK)
    assert_reads_few(plan)


LOOK = {
    **{"lease": LEASE_SECONDS, "limit": LIMIT, "share": LIMIT, "now": None},
    **{"tenants": [UUID(int=0)], **reach(None)},
}


def test_urgent_jobs_that_wait_for_their_back_off_are_passed_over_inside_the_index(
    long_queue: Settings,
) -> None:
    with psycopg.connect(long_queue.dsn, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(
            "UPDATE event_jobs SET priority = 100, next_run_at = now() + interval '5 minutes' "
            "WHERE status = 'PENDING' AND right(artifact_uid, 2) <> '10'"
        )
        connection.execute("VACUUM ANALYZE event_jobs")
        plan = plan_of(connection, "claimable_jobs", **LOOK)
    assert_reads_few(plan)


@pytest.mark.parametrize("status", [None, "DONE"])
@pytest.mark.parametrize("later", [False, True])
def test_a_page_of_jobs_reads_no_more_than_it_shows(
    long_queue: Settings, status: str | None, later: bool
) -> None:
    place: dict[str, Any] = {"before": None, "before_id": None}
    with psycopg.connect(long_queue.dsn, autocommit=True) as connection:
        if later:
            row = connection.execute(
                "SELECT created_at, job_id FROM event_jobs WHERE artifact_uid = 'uid_9999'"
            ).fetchone()
            assert row is not None
            place = {"before": row[0], "before_id": row[1]}
        plan = plan_of(connection, "page_of_jobs", limit=LIMIT, status=status, **place)
    assert_reads_few(plan)


def test_a_claim_reads_no_more_than_it_takes(long_queue: Settings) -> None:
    keys = [f"note {number}" for number in range(10, 10 * LIMIT + 10, 10)]
    with psycopg.connect(long_queue.dsn, autocommit=True) as connection:
        claim = {"keys": keys, "lease": LEASE_SECONDS, "run_id": "run-1", **reach(None)}
        claim["answers"] = Answers.KNOWN.value
        assert_reads_few(plan_of(connection, "claim_jobs", **claim))
