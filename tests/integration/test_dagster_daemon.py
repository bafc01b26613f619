"""Canary: the daemon's loops are ours, sleep while nothing is told and wake when something is."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import dagster as dg
import psycopg
import pytest
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import EmptyWorkspaceTarget
from dagster._daemon import controller
from dagster._daemon.daemon import SpanMarker

from memory_assets.dagster_internals import daemon
from memory_core.kernel.settings import Settings
from tests.integration.dagster_database import dagster_instance, own_database
from tests.integration.job_queue import Queue
from tests.patience import PATIENCE


@pytest.fixture(scope="module")
def dsn(services: Settings) -> Iterator[str]:
    with own_database(services, "dagster_daemon") as dsn:
        yield dsn


@pytest.fixture
def instance(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dg.DagsterInstance]:
    monkeypatch.setenv("EVENTS_DB_DSN", dsn)
    for name in ("SensorDaemon", "QueuedRunCoordinatorDaemon"):
        monkeypatch.setattr(controller, name, getattr(controller, name))  # put back afterwards
    # No loop looks by itself: what begins a round is a notification.
    monkeypatch.setattr(daemon, "BUSY_SECONDS", 3600.0)
    monkeypatch.setattr(daemon, "IDLE_SECONDS", 3600.0)
    daemon.install()
    with dagster_instance(dsn, tmp_path, monkeypatch) as instance:
        yield instance


@contextmanager
def rounds_of(instance: dg.DagsterInstance, kind: str) -> Iterator["SimpleQueue[Any]"]:
    """One entry for each round that the daemon of this kind begins."""
    begun: SimpleQueue[Any] = SimpleQueue()
    shutdown = threading.Event()
    loop = controller.create_daemon_of_type(kind, instance)
    if kind == "QUEUED_RUN_COORDINATOR":
        loop.interval_seconds = 600.0  # type: ignore[attr-defined]

    def work(context: Any) -> None:
        rounds = loop.core_loop(context, shutdown)
        while not shutdown.is_set():
            if (said := next(rounds)) is SpanMarker.START_SPAN:
                begun.put(said)
            assert said is None or isinstance(said, SpanMarker), said
        rounds.close()

    with loop, WorkspaceProcessContext(instance, EmptyWorkspaceTarget()) as context:
        thread = threading.Thread(target=work, args=(context,))
        thread.start()
        try:
            yield begun
        finally:
            shutdown.set()
            thread.join()


def test_the_sensors_look_as_soon_as_a_job_is_pending(
    instance: dg.DagsterInstance, dsn: str
) -> None:
    with (
        psycopg.connect(dsn, autocommit=True) as sql,
        rounds_of(instance, "SENSOR") as rounds,
    ):
        rounds.get(timeout=PATIENCE)
        rounds.get(timeout=PATIENCE)  # the listener is there
        Queue(sql).add()

        assert rounds.get(timeout=PATIENCE)


def test_the_queue_is_looked_at_as_soon_as_a_run_ends(instance: dg.DagsterInstance) -> None:
    run_id = "4d2f7d5a-6c55-4a43-8f0e-5a0a9d8f4c11"
    instance.add_run(dg.DagsterRun(job_name="job", run_id=run_id))
    with (
        rounds_of(instance, "SENSOR") as sensors,  # which has the listener
        rounds_of(instance, "QUEUED_RUN_COORDINATOR") as rounds,
    ):
        rounds.get(timeout=PATIENCE)
        for _ in range(2):
            sensors.get(timeout=PATIENCE)
        while not rounds.empty():
            rounds.get()
        event = dg.DagsterEvent(
            event_type_value=dg.DagsterEventType.PIPELINE_SUCCESS.value, job_name="job"
        )
        instance.report_dagster_event(event, run_id)

        assert rounds.get(timeout=PATIENCE)
