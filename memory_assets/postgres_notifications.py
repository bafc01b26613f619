"""Notifications of Postgres: a job waits for a run, or one of Dagster's runs was queued or has
ended.

Polling would cost more than all the work of a quiet day.
"""

import psycopg
from psycopg.rows import scalar_row

from memory_core.kernel import queries
from memory_core.kernel.database import postgres_faults

JOBS = "event_jobs"  # a job is pending; no payload
RUNS = "dagster_runs"  # the payload is the type of Dagster's event
_CONNECT_SECONDS = 5


class Notifications:
    """A listening connection of its own, for one thread."""

    def __init__(self, dsn: str) -> None:
        with postgres_faults():
            self._connection: psycopg.Connection = psycopg.connect(
                dsn, autocommit=True, connect_timeout=_CONNECT_SECONDS
            )
            for listen in ("listen_for_jobs", "listen_for_runs"):
                self._connection.execute(queries.get(listen))

    def wait(self, seconds: float) -> set[tuple[str, str]]:
        """The (channel, payload) pairs that arrived. Returns as soon as there is one."""
        with postgres_faults():
            heard = self._connection.notifies(timeout=max(seconds, 0.0), stop_after=1)
            return {(notification.channel, notification.payload) for notification in heard}

    def seconds_to_next_job(self) -> float | None:
        """Seconds until a job is due: 0 or less while one is due now, None when no job is open."""
        with postgres_faults():
            cursor = self._connection.cursor(row_factory=scalar_row)
            seconds: float | None = cursor.execute(queries.get("next_look_at_jobs")).fetchone()
        return seconds

    def close(self) -> None:
        self._connection.close()
