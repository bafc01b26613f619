"""Who goes first: priority and age, tenants in turn, a share for backfills; by our own clock."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import psycopg
import pytest

from memory_core.kernel.database import Database
from memory_core.queue import jobs
from tests.integration.job_queue import Queue

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
DEFAULT = UUID(int=0)


def minutes(number: float) -> datetime:
    return NOON + timedelta(minutes=number)


class Clocked(Queue):
    """Jobs that are asked for at moments of our choice."""

    def ask(
        self, name: str, at: datetime, *, priority: int = 0, tenant: UUID = DEFAULT,
        backfill: UUID | None = None,
    ) -> None:  # fmt: skip
        self.run(
            "INSERT INTO artifact_revision (artifact_uid, revision_id, artifact_id, artifact_type,"
            " source_system, source_id, content_hash, token_count, is_chunked, chunk_count,"
            " partition_key, tenant_id) VALUES (%s, 'rev', 'art', 'note', 'notes', '', '', 1,"
            " false, 0, %s, %s)",
            *(name, name, tenant),
        )
        self.run(
            "INSERT INTO event_jobs (artifact_uid, revision_id, created_at, next_run_at, priority,"
            " tenant_id, backfill_id) VALUES (%s, 'rev', %s, %s, %s, %s, %s)",
            *(name, at, at, priority, tenant, backfill),
        )

    def finish(self, name: str) -> None:
        self.run("UPDATE event_jobs SET status = 'DONE' WHERE artifact_uid = %s", name)


@pytest.fixture
def clocked(queue: Queue, sql: psycopg.Connection) -> Clocked:
    return Clocked(sql)


async def order(database: Database, at: datetime, limit: int = 100) -> list[str]:
    return [job.partition_key for job in await jobs.claimable(database, limit, now=at)]


async def test_a_point_of_priority_is_worth_a_minute_of_waiting(
    stores: Database, clocked: Clocked
) -> None:
    clocked.ask("old", minutes(0))
    clocked.ask("urgent enough", minutes(10), priority=11)
    clocked.ask("not urgent enough", minutes(10), priority=9)
    clocked.ask("unhurried", minutes(0), priority=-30)

    assert await order(stores, minutes(20)) == [
        *("urgent enough", "old", "not urgent enough", "unhurried"),
    ]


async def test_what_waits_for_its_back_off_is_not_due_however_urgent(
    stores: Database, clocked: Clocked
) -> None:
    clocked.ask("waits", minutes(30), priority=100)
    clocked.ask("due", minutes(0))

    assert await order(stores, minutes(20)) == ["due"]
    assert await order(stores, minutes(30)) == ["waits", "due"]


async def test_age_counts_so_that_nothing_starves(stores: Database, clocked: Clocked) -> None:
    """Each minute a most urgent job arrives and one job is worked on."""
    clocked.ask("patient", minutes(0))
    served: list[str] = []
    for minute in range(1, 120):
        clocked.ask(f"urgent {minute}", minutes(minute), priority=100)
        [head, *_] = await order(stores, minutes(minute), limit=1)
        clocked.finish(head)
        served.append(head)

    assert "patient" in served
    assert served.index("patient") in range(98, 102), "after a hundred minutes, and not much before"


async def test_tenants_take_turns(stores: Database, clocked: Clocked) -> None:
    other = uuid4()
    clocked.run("INSERT INTO tenant (tenant_id, name) VALUES (%s, 'other')", other)
    for number in range(30):
        clocked.ask(f"many {number}", minutes(number / 10))
    for number in range(3):
        clocked.ask(f"few {number}", minutes(10 + number), tenant=other)

    first = await order(stores, minutes(20), limit=8)
    assert first == [
        *("many 0", "few 0", "many 1", "few 1", "many 2", "few 2", "many 3", "many 4"),
    ]
    assert len(await order(stores, minutes(20))) == 33, "places that one leaves go to the other"
    clocked.run("DELETE FROM tenant WHERE tenant_id = %s", other)


async def test_of_ten_places_one_is_a_backfills(stores: Database, clocked: Clocked) -> None:
    backfill = uuid4()
    for number in range(40):
        clocked.ask(f"fresh {number}", minutes(number))
        clocked.ask(f"again {number}", minutes(-100 + number), backfill=backfill)

    head = await order(stores, minutes(60), limit=20)
    assert [place for place, key in enumerate(head, 1) if key.startswith("again")] == [11]
    everything = await order(stores, minutes(60))
    assert len(everything) == 80, "places that fresh work leaves go to the backfill"
    ours = [key for key in everything if key.startswith("again")]
    assert ours == [f"again {number}" for number in range(40)]


async def test_fresh_work_that_never_ends_does_not_starve_a_backfill(
    stores: Database, clocked: Clocked
) -> None:
    backfill = uuid4()
    for number in range(3):
        clocked.ask(f"again {number}", minutes(0), backfill=backfill)
    served: list[str] = []
    for minute in range(30):
        for number in range(20):
            clocked.ask(f"fresh {minute} {number}", minutes(minute))
        for key in await order(stores, minutes(minute), limit=12):
            clocked.finish(key)
            served.append(key)

    places = [place for place, key in enumerate(served) if key.startswith("again")]
    assert len(places) == 3
    assert max(places) < 3 * 12
