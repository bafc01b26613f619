"""Dagster's daemon, woken by Postgres instead of polling.

    python -m memory_assets.dagster_internals.daemon run -w workspace.yaml

As shipped, the sensor loop sleeps five seconds after each round, and the run queue is polled every
second: a note waits for seconds, and an idle memory keeps polling. Here both loops sleep until
Postgres notifies them of a pending job, or of a run that was queued or has ended. They also poll at
long intervals, in case a notification was lost.
"""

import sys
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from contextlib import closing, contextmanager, suppress
from typing import Any

from dagster._daemon import cli, controller
from dagster._daemon.daemon import SensorDaemon, SpanMarker
from dagster._daemon.run_coordinator.queued_run_coordinator_daemon import (
    QueuedRunCoordinatorDaemon,
)
from dagster._daemon.sensor import execute_sensor_iteration
from dagster._daemon.utils import DaemonErrorCapture

from memory_assets import postgres_notifications
from memory_assets.dagster_internals import log_level
from memory_assets.postgres_notifications import Notifications
from memory_core.kernel.errors import PostgresUnavailable
from memory_core.kernel.settings import load_settings

# How often to poll without a notification: while jobs are open, and while none is.
BUSY_SECONDS = 5.0
IDLE_SECONDS = 30.0
RECONNECT_SECONDS = 2.0
# Sensors have a minimum interval of one second. A round that starts sooner would skip them.
ROUND_SECONDS = 1.2
_DUE_BY_THEN_SECONDS = 0.05
_SLICE_SECONDS = 1.0
_CANCELLED_OR_FAILED = frozenset({"PIPELINE_FAILURE", "PIPELINE_CANCELED"})


class Bell:
    """An event that the listener rings and one loop waits for. Two rings before the loop wakes
    count as one."""

    def __init__(self) -> None:
        self._rung = threading.Event()

    def ring(self) -> None:
        self._rung.set()

    def wait(self, shutdown: threading.Event, seconds: float) -> Iterator[None]:
        """Wait until the bell rings, at most `seconds`. Yields regularly for Dagster's
        heartbeat."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0 and not shutdown.is_set():
            if self._rung.wait(min(left, _SLICE_SECONDS)):
                break
            yield None
        self._rung.clear()


jobs_bell, runs_bell = Bell(), Bell()


class WokenSensorDaemon(SensorDaemon):
    """Dagster's rounds over all sensors, each started by a ring or a poll."""

    def core_loop(self, workspace_process_context: Any, shutdown_event: threading.Event) -> Any:
        with _listening():
            yield from self._rounds(workspace_process_context, shutdown_event)

    def _rounds(self, workspace_process_context: Any, shutdown_event: threading.Event) -> Any:
        ticks: dict[str, futures.Future[Any]] = {}
        while True:
            begun = time.monotonic()
            yield SpanMarker.START_SPAN
            try:
                yield from execute_sensor_iteration(
                    workspace_process_context,
                    self._logger,
                    threadpool_executor=self._threadpool_executor,
                    submit_threadpool_executor=self._submit_threadpool_executor,
                    sensor_tick_futures=ticks,
                    instrument_elapsed=self.instrument_elapsed,
                )
            except Exception:
                yield _error_info(self._logger)
            yield SpanMarker.END_SPAN
            # The listener rings while jobs are open. This time-out is for a listener that lost its
            # connection.
            yield from jobs_bell.wait(shutdown_event, IDLE_SECONDS)
            shutdown_event.wait(max(0.0, begun + ROUND_SECONDS - time.monotonic()))
            # Dagster skips a sensor whose tick is still running, so the ring would be lost.
            futures.wait(ticks.values(), timeout=BUSY_SECONDS)
            yield None


class WokenQueueDaemon(QueuedRunCoordinatorDaemon):
    """Launches queued runs when a run is queued, and when one has ended and left a free slot."""

    def core_loop(self, workspace_process_context: Any, shutdown_event: threading.Event) -> Any:
        while True:
            yield SpanMarker.START_SPAN
            try:
                yield from self.run_iteration(workspace_process_context)
            except Exception:
                yield _error_info(self._logger)
            yield SpanMarker.END_SPAN
            yield from runs_bell.wait(shutdown_event, self.interval_seconds)
            yield None


def _error_info(logger: Any) -> Any:
    """The exception being handled, for Dagster's list of daemon errors."""
    return DaemonErrorCapture.process_exception(
        sys.exc_info(),
        logger=logger,
        log_message="The round ended early; the next one begins as usual.",
    )


@contextmanager
def _listening() -> Iterator[None]:
    stop = threading.Event()
    arguments = (load_settings().dsn, stop)
    threading.Thread(target=_listen, args=arguments, name="listener", daemon=True).start()
    try:
        yield
    finally:
        stop.set()


def _listen(dsn: str, stop: threading.Event) -> None:
    """Ring the bells for notifications of Postgres. Reconnects when the connection is lost."""
    while not stop.is_set():
        try:
            listener = Notifications(dsn)
        except PostgresUnavailable:
            stop.wait(RECONNECT_SECONDS)
            continue
        with closing(listener), suppress(PostgresUnavailable):
            _ring_for(listener, stop)


def _ring_for(listener: Notifications, stop: threading.Event) -> None:
    # Postgres dropped all notifications that came before this connection.
    jobs_bell.ring()
    runs_bell.ring()
    look = time.monotonic() + BUSY_SECONDS
    while not stop.is_set():
        heard = listener.wait(min(look - time.monotonic(), _SLICE_SECONDS))
        if any(channel == postgres_notifications.RUNS for channel, _ in heard):
            runs_bell.ring()
        if (
            time.monotonic() >= look
            or any(channel == postgres_notifications.JOBS for channel, _ in heard)
            or any(payload in _CANCELLED_OR_FAILED for _, payload in heard)
        ):
            jobs_bell.ring()
            look = time.monotonic() + _pause(listener.seconds_to_next_job())


def _pause(seconds_to_next_job: float | None) -> float:
    """How long the sensors sleep until they poll."""
    if seconds_to_next_job is None:
        return IDLE_SECONDS
    if seconds_to_next_job <= 0:
        return BUSY_SECONDS
    return min(seconds_to_next_job + _DUE_BY_THEN_SECONDS, IDLE_SECONDS)


def install() -> None:
    """Replace the daemon classes under the names that Dagster's controller uses."""
    for name, woken in _WOKEN.items():
        if not hasattr(controller, name):
            raise RuntimeError(f"This Dagster has no {name} in its controller.")
        setattr(controller, name, woken)


_WOKEN = {"SensorDaemon": WokenSensorDaemon, "QueuedRunCoordinatorDaemon": WokenQueueDaemon}


def main() -> None:
    install()
    if "run" in sys.argv:
        log_level.add_to_command_line("--log-level")
    cli.main()


if __name__ == "__main__":
    main()
