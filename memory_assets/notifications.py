"""What Postgres tells: that a job waits for a run, and how Dagster's runs fare.

To ask again and again would cost more than all the work of a quiet day.
"""

import psycopg
from psycopg.rows import scalar_row

from memory_core.kernel import queries
from memory_core.kernel.database import postgres_faults

JOBS = "event_jobs"  # a job is pending; without a payload
RUNS = "dagster_runs"  # with the type of Dagster's event
_CONNECT_SECONDS = 5


class Notifications:
    """A connection of its own, for one thread."""

    def __init__(self, dsn: str) -> None:
        with postgres_faults():
            self._connection: psycopg.Connection = psycopg.connect(
                dsn, autocommit=True, connect_timeout=_CONNECT_SECONDS
            )
            for listen in ("listen_for_jobs", "listen_for_runs"):
                self._connection.execute(queries.get(listen))

    def wait(self, seconds: float) -> set[tuple[str, str]]:
        """(channel, payload) of what was told meanwhile; returns as soon as something is."""
        with postgres_faults():
            heard = self._connection.notifies(timeout=max(seconds, 0.0), stop_after=1)
            return {(notification.channel, notification.payload) for notification in heard}

    def seconds_to_next_job(self) -> float | None:
        """Until a job is due: 0 or less while one is to be looked after, None when none is open."""
        with postgres_faults():
            cursor = self._connection.cursor(row_factory=scalar_row)
            seconds: float | None = cursor.execute(queries.get("next_look_at_jobs")).fetchone()
        return seconds

    def close(self) -> None:
        self._connection.close()
