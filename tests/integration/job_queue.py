"""The queue as tests see it: the table, and the hand of fate in it."""

from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from memory_core.kernel.database import Database
from memory_core.kernel.errors import ErrorCode, ProviderFault
from memory_core.kernel.settings import Settings
from memory_core.queue import jobs
from memory_core.queue.jobs import Job, LeaseLost
from tests.patience import PATIENCE

CLAIMERS = 20
MANY = 200
RATE_LIMIT = ProviderFault("Slow down.", code=ErrorCode.OPENAI_RATE_LIMIT)


@pytest.fixture(scope="module")
async def crowd(services: Settings) -> AsyncIterator[Database]:
    """As many real connections as there are claimers."""
    database = Database(
        services.dsn,
        max_connections=CLAIMERS,
        connect_seconds=PATIENCE,  # a crowd waits for its turn
        unasked="a test looks at what is stored",
    )
    await database.open()
    yield database
    await database.close()


class Queue:
    """A look at the table, and the hand of fate in it."""

    def __init__(self, sql: psycopg.Connection) -> None:
        self._sql = sql

    def add(self, count: int = 1) -> list[str]:
        """Pending jobs of as many revisions; returns their partition keys."""
        self.run(
            "INSERT INTO artifact_revision (artifact_uid, revision_id, artifact_id, artifact_type,"
            " source_system, source_id, content_hash, token_count, is_chunked, chunk_count,"
            " partition_key) SELECT 'uid_' || n, 'rev', 'art', 'note', 'notes', '', '', 1, false,"
            " 0, 'key-' || n FROM generate_series(1, %s) AS n",
            count,
        )
        self.run(
            "INSERT INTO event_jobs (artifact_uid, revision_id)"
            " SELECT artifact_uid, revision_id FROM artifact_revision"
        )
        return [f"key-{number}" for number in range(1, count + 1)]

    def run(self, query: str, *parameters: object) -> list[dict[str, Any]]:
        cursor = self._sql.cursor(row_factory=dict_row).execute(query, parameters)  # type: ignore[arg-type]
        return cursor.fetchall() if cursor.description else []

    def all(self) -> list[dict[str, Any]]:
        return self.run(
            "SELECT j.*, r.partition_key, j.next_run_at - j.updated_at AS wait FROM event_jobs j"
            " JOIN artifact_revision r USING (artifact_uid, revision_id) ORDER BY r.partition_key"
        )

    def one(self) -> dict[str, Any]:
        [row] = self.all()
        return row

    def change(self, assignments: str, *parameters: object) -> None:
        self.run(f"UPDATE event_jobs SET {assignments}", *parameters)

    def let_leases_expire(self) -> None:
        self.change("locked_at = now() - make_interval(secs => %s)", jobs.LEASE_SECONDS + 1)

    def force(self) -> None:
        """As a forced re-extraction does."""
        self.change(
            "status = 'PENDING', attempts = 0, generation = generation + 1, next_run_at = now(),"
            " locked_at = NULL, locked_by = NULL"
        )


@pytest.fixture
def queue(sql: psycopg.Connection) -> Queue:
    """Empty. These tests know no more than two tables, so only those are emptied."""
    sql.execute("DELETE FROM event_jobs")
    sql.execute("DELETE FROM artifact_revision")
    return Queue(sql)


async def claimed(database: Database, keys: list[str], run: str = "run-1") -> Job:
    [job] = await jobs.claim(database, keys, run)
    return job


async def may_write(database: Database, job: Job) -> bool:
    try:
        async with database.transaction() as session:
            await jobs.hold(session, job)
    except LeaseLost:
        return False
    return True
