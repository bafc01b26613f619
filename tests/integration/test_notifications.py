"""What Postgres tells of jobs: the daemon sleeps until then."""

from collections.abc import Iterator

import psycopg
import pytest

from memory_assets import postgres_notifications
from memory_assets.postgres_notifications import Notifications
from memory_core.kernel.errors import PostgresUnavailable
from memory_core.kernel.settings import Settings
from tests.integration.job_queue import Queue

PENDING = {(postgres_notifications.JOBS, "")}


@pytest.fixture
def listener(settings: Settings) -> Iterator[Notifications]:
    listener = Notifications(settings.dsn)
    yield listener
    listener.close()


def heard(listener: Notifications) -> set[tuple[str, str]]:
    """What was told by now. Postgres delivers it with the answer to any statement."""
    listener.seconds_to_next_job()
    return listener.wait(0.0)


def test_new_jobs_are_told_once_for_all(listener: Notifications, queue: Queue) -> None:
    queue.add(100)

    assert listener.wait(5.0) == PENDING


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("status = 'PENDING', next_run_at = now()", True),
        ("next_run_at = now() + interval '1 hour'", True),
        ("status = 'PROCESSING', locked_at = now()", False),
        ("status = 'DONE'", False),
        ("status = 'FAILED'", False),
        ("last_error_message = 'slow'", False),
    ],
)
def test_a_change_is_told_when_the_job_waits_for_a_run_after_it(
    listener: Notifications, queue: Queue, change: str, told: bool
) -> None:
    queue.add()
    assert listener.wait(5.0) == PENDING

    queue.change(change)

    assert heard(listener) == (PENDING if told else set())


def test_without_jobs_there_is_nothing_to_look_after(listener: Notifications) -> None:
    assert listener.seconds_to_next_job() is None


@pytest.mark.parametrize(
    ("state", "least", "most"),
    [
        ("next_run_at = now() - interval '1 minute'", -3600, -60),
        ("next_run_at = now() + interval '1 hour'", 3000, 3600),
        # A run may die: the sensor has to look.
        ("status = 'PROCESSING', locked_at = now()", 0, 0),
        ("status = 'DONE'", None, None),
        ("status = 'FAILED'", None, None),
    ],
)
def test_it_knows_when_the_next_job_is_due(
    listener: Notifications, queue: Queue, state: str, least: float | None, most: float | None
) -> None:
    queue.add(3)
    queue.change(state)

    seconds = listener.seconds_to_next_job()

    if least is None or most is None:
        assert seconds is None
    else:
        assert seconds is not None
        assert least <= seconds <= most


def test_a_lost_connection_is_our_own_fault(
    listener: Notifications, sql: psycopg.Connection
) -> None:
    sql.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE query LIKE 'LISTEN%' AND pid <> pg_backend_pid()"
    )

    with pytest.raises(PostgresUnavailable):
        listener.wait(5.0)
