"""The sensor that requests runs, tick by tick, on Dagster's own storage."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import dagster as dg
import psycopg
import pytest
from dagster_shared.serdes import serialize_value

from memory_assets import postgres_notifications
from memory_assets.definitions import defs
from memory_assets.memory_resource import MemoryResource
from memory_assets.postgres_notifications import Notifications
from memory_assets.run_requests import REVISIONS_PER_RUN
from memory_assets.sensors import JOBS_PER_TICK, pending_jobs
from memory_core.kernel.database import Database
from memory_core.kernel.settings import Settings
from memory_core.queue import jobs
from tests.integration.dagster_database import dagster_instance, own_database
from tests.integration.job_queue import Queue

BACKLOG = 4 * JOBS_PER_TICK
BYTES_PER_DOCUMENT = 20


@pytest.fixture(scope="module")
def dsn(services: Settings) -> Iterator[str]:
    with own_database(services, "pending_jobs") as dsn:
        yield dsn


class Sensor:
    """The sensor as the daemon evaluates it: each tick with the cursor that the last one left."""

    def __init__(self, instance: dg.DagsterInstance, dsn: str, cursor: str | None = None) -> None:
        self._instance = instance
        self._dsn = dsn
        self.cursor = cursor
        self.bytes_of_ticks = 0

    def tick(self) -> list[list[str]]:
        """The keys of each requested run."""
        context = dg.build_sensor_context(
            instance=self._instance,
            cursor=self.cursor,
            resources={"memory": MemoryResource()},
            repository_def=defs.get_repository_def(),
        )
        with dg.partition_loading_context(dynamic_partitions_store=self._instance):
            data = pending_jobs.evaluate_tick(context)
        self.cursor = data.cursor
        requests = list(data.run_requests or [])
        self.bytes_of_ticks += len(serialize_value(requests)) + len(data.cursor or "")
        listed = self._instance.get_dynamic_partitions("revisions")
        return [_keys(request, listed) for request in requests]

    def claim(self, keys: list[str]) -> None:
        """As the run does."""

        async def claim() -> None:
            database = Database(
                self._dsn, max_connections=1, unasked="a test looks at what is stored"
            )
            await database.open()
            assert len(await jobs.claim(database, keys, "run")) == len(keys)
            await database.close()

        asyncio.run(claim())


def _keys(request: dg.RunRequest, listed: list[str]) -> list[str]:
    if request.partition_key:
        return [request.partition_key]
    first = listed.index(request.tags["dagster/asset_partition_range_start"])
    last = listed.index(request.tags["dagster/asset_partition_range_end"])
    return listed[first : last + 1]


@pytest.fixture
def queue(dsn: str) -> Iterator[Queue]:
    with psycopg.connect(dsn, autocommit=True) as sql:
        yield Queue(sql)
        sql.execute("TRUNCATE artifact_revision, event_jobs CASCADE")
        sql.execute("TRUNCATE dagster.dynamic_partitions")


@pytest.fixture
def sensor(
    services: Settings,
    dsn: str,
    queue: Queue,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Sensor]:
    own = services.model_copy(update={"events_db_dsn": type(services.events_db_dsn)(dsn)})
    monkeypatch.setattr(MemoryResource, "settings", property(lambda _: own))
    with dagster_instance(dsn, tmp_path, monkeypatch) as instance:
        yield Sensor(instance, dsn)


def test_the_ticks_of_a_long_backlog_write_little_of_each_document(
    sensor: Sensor, queue: Queue
) -> None:
    queue.add(BACKLOG)

    done: list[str] = []
    waiting = sensor.tick()
    while waiting:
        # The oldest run is launched: there is room for the next.
        first, *waiting = waiting
        sensor.claim(first)
        done += first
        waiting += sensor.tick()

    assert sorted(done) == sorted(row["partition_key"] for row in queue.all())
    assert sensor.bytes_of_ticks / BACKLOG < BYTES_PER_DOCUMENT
    assert queue.run("SELECT * FROM job_request") == [], "a claimed job needs no request"


def test_a_request_is_made_once_also_by_a_daemon_that_starts_again(
    sensor: Sensor, queue: Queue
) -> None:
    keys = queue.add(3)

    assert sorted(sensor.tick()[0]) == keys
    assert sensor.tick() == []
    sensor.cursor = None
    assert sensor.tick() == []


def test_a_request_that_came_to_nothing_is_repeated(sensor: Sensor, queue: Queue) -> None:
    keys = queue.add(2)
    sensor.tick()
    # Its run never came to be: the daemon died before it was made.
    queue.run("UPDATE job_request SET requested_at = now() - interval '1 minute'")

    assert sorted(sensor.tick()[0]) == keys
    assert sensor.tick() == []


@pytest.mark.parametrize("again", ["attempts = 1", "generation = generation + 1"])
def test_the_next_attempt_and_a_new_request_of_a_person_are_requests_of_their_own(
    sensor: Sensor, queue: Queue, again: str
) -> None:
    keys = queue.add()
    sensor.tick()

    queue.change(again)

    assert sensor.tick() == [keys]
    assert len(queue.run("SELECT * FROM job_request")) == 1


def test_a_job_that_is_deleted_takes_its_request_along(sensor: Sensor, queue: Queue) -> None:
    queue.add(2)
    sensor.tick()

    queue.run("DELETE FROM event_jobs")

    assert queue.run("SELECT * FROM job_request") == []
    assert sensor.tick() == []


def test_jobs_that_wait_for_a_run_to_begin_are_told_of_when_it_has(
    sensor: Sensor, queue: Queue, dsn: str
) -> None:
    first, second = queue.add(2)
    queue.run("UPDATE event_jobs SET next_run_at = 'infinity' WHERE artifact_uid = 'uid_2'")
    assert sensor.tick() == [[first]]
    queue.run("UPDATE event_jobs SET next_run_at = now() WHERE artifact_uid = 'uid_2'")
    assert sensor.tick() == [], "more may come until the run of the first begins"
    listener = Notifications(dsn)

    sensor.claim([first])

    assert listener.wait(5.0) == {(postgres_notifications.JOBS, "")}
    listener.close()
    assert sensor.tick() == [[second]]


def test_a_cursor_of_an_earlier_version_is_dropped(sensor: Sensor, queue: Queue) -> None:
    sensor.cursor = '{"3fa85f64:1:0": ["run", 1700000000.0]}'

    assert sensor.tick() == []

    assert not sensor.cursor


def test_a_tick_requests_the_front_of_the_queue(sensor: Sensor, queue: Queue) -> None:
    queue.add(JOBS_PER_TICK + 1)

    runs = sensor.tick()

    assert sum(map(len, runs)) == JOBS_PER_TICK
    assert max(map(len, runs)) == REVISIONS_PER_RUN
    assert sensor.tick() == [], "until one of them is claimed"


def test_ten_thousand_jobs_of_one_tenant_do_not_starve_another(
    sensor: Sensor, queue: Queue
) -> None:
    queue.add(10_000)
    asked = sensor.tick()
    assert sum(len(keys) for keys in asked) == JOBS_PER_TICK

    # All jobs are equally old, so which of them a tick takes is up to their ids.
    requested = {key for keys in asked for key in keys}
    waiting = next(n for n in range(1, 10_001) if f"key-{n}" not in requested)
    other = uuid4()
    queue.run("INSERT INTO tenant (tenant_id, name) VALUES (%s, 'other')", other)
    queue.run(
        "UPDATE event_jobs SET tenant_id = %s WHERE artifact_uid = %s", other, f"uid_{waiting}"
    )
    try:
        assert sensor.tick() == [[f"key-{waiting}"]]
    finally:
        queue.run("DELETE FROM tenant WHERE tenant_id = %s", other)
