"""How Postgres finds the head of a long queue: by an index in working order, reading few rows."""

from typing import Any
from uuid import UUID

import psycopg
import pytest

from benchmarks.bench_queue import fill
from memory_core.kernel import queries
from memory_core.kernel.settings import Settings
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


@pytest.mark.parametrize("of_a_backfill", [False, True])
def test_looking_at_the_head_of_the_queue_reads_no_more_than_it_shows(
    long_queue: Settings, of_a_backfill: bool
) -> None:
    with psycopg.connect(long_queue.dsn, autocommit=True) as connection:
        if of_a_backfill:
            connection.execute("SET session_replication_role = replica")
            connection.execute("UPDATE event_jobs SET backfill_id = gen_random_uuid()")
            connection.execute("VACUUM ANALYZE event_jobs")
        row = connection.execute(
            b"EXPLAIN (ANALYZE, FORMAT JSON) " + queries.get("claimable_jobs"),
            {
                **{"lease": LEASE_SECONDS, "limit": LIMIT, "share": LIMIT, "now": None},
                **{"tenants": [UUID(int=0)], **reach(None)},
            },
        ).fetchone()
    assert row is not None
    [plan] = row[0]
    for scan in scans(plan["Plan"]):
        assert scan["Node Type"] != "Seq Scan", scan
        assert rows_read(scan) <= 2 * LIMIT, scan
