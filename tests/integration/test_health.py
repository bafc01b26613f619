"""/health: the state of each part, and 503 when one that is needed is down."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import psycopg
import pytest

from mcp_server.server import build_server
from memory_core.kernel.database import Database
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from memory_core.upkeep.health import Health, check_health
from stack.dagster_orchestrator import DAEMON_SILENT_AFTER, DagsterOrchestrator
from stack.ports import free_port

NO_POSTGRES = "postgresql://u:s3cr3t@127.0.0.1:1/db"


async def beating() -> None:
    """A Chroma that answers."""


@pytest.fixture
def connection(settings: Settings) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(settings.dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def heartbeats(connection: psycopg.Connection[Any]) -> Iterator[psycopg.Connection[Any]]:
    """Dagster's table of heartbeats, which Dagster makes at its first start; empty."""
    connection.execute(
        "CREATE TABLE dagster.daemon_heartbeats "
        "(daemon_type text UNIQUE, daemon_id text, timestamp timestamp NOT NULL, body text)"
    )
    yield connection
    connection.execute("DROP TABLE dagster.daemon_heartbeats")


def beat(connection: psycopg.Connection[Any], kind: str, age: timedelta) -> datetime:
    moment = datetime.now(UTC).replace(tzinfo=None) - age
    connection.execute(
        "INSERT INTO dagster.daemon_heartbeats VALUES (%s, 'id', %s, '{}')", [kind, moment]
    )
    return moment.replace(tzinfo=UTC)


@asynccontextmanager
async def served(settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    app = build_server(settings).streamable_http_app()
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(
            transport=httpx.ASGITransport(app, raise_app_exceptions=False),
            base_url="http://127.0.0.1",
        ) as client,
    ):
        yield client


class TestQueue:
    async def test_an_empty_one_counts_nothing(self, database: Database) -> None:
        queue = (await check_health(database, beating, DagsterOrchestrator())).queue
        assert (queue.state, queue.pending, queue.processing, queue.failed, queue.done) == (
            *("up", 0, 0, 0, 0),
        )

    async def test_jobs_are_counted_by_their_status(
        self, database: Database, connection: psycopg.Connection[Any]
    ) -> None:
        jobs = {"PENDING": 4, "PROCESSING": 3, "FAILED": 2, "DONE": 1}
        for status, number in jobs.items():
            for index in range(number):
                connection.execute(
                    "INSERT INTO event_jobs (artifact_uid, revision_id) VALUES (%s, %s)",
                    [f"uid_{index}", f"rev_{status}"],
                )
            connection.execute(
                "UPDATE event_jobs SET status = %s WHERE revision_id = %s",
                [status, f"rev_{status}"],
            )
        queue = (await check_health(database, beating, DagsterOrchestrator())).queue
        assert (queue.pending, queue.processing, queue.failed, queue.done) == (4, 3, 2, 1)


class TestDaemon:
    async def test_unknown_before_dagster_ever_ran(self, database: Database) -> None:
        health = await check_health(database, beating, DagsterOrchestrator())
        assert health.daemon.state == "unknown"
        assert health.daemon.last_heartbeat is None
        assert health.status == "degraded"

    async def test_down_when_it_never_beat(
        self, database: Database, heartbeats: psycopg.Connection[Any]
    ) -> None:
        health = await check_health(database, beating, DagsterOrchestrator())
        assert (health.daemon.state, health.status) == ("down", "degraded")

    async def test_up_when_it_beat_lately(
        self, database: Database, heartbeats: psycopg.Connection[Any]
    ) -> None:
        moment = beat(heartbeats, "SENSOR", timedelta(seconds=10))
        health = await check_health(database, beating, DagsterOrchestrator())
        assert (health.daemon.state, health.status) == ("up", "ok")
        assert health.daemon.last_heartbeat == moment
        assert health.daemon.detail is None

    async def test_down_when_it_has_been_silent(
        self, database: Database, heartbeats: psycopg.Connection[Any]
    ) -> None:
        moment = beat(heartbeats, "SENSOR", DAEMON_SILENT_AFTER + timedelta(seconds=10))
        health = await check_health(database, beating, DagsterOrchestrator())
        assert (health.daemon.state, health.status) == ("down", "degraded")
        assert health.daemon.last_heartbeat == moment
        assert "daemon's log" in str(health.daemon.detail)

    async def test_down_when_only_others_beat(
        self, database: Database, heartbeats: psycopg.Connection[Any]
    ) -> None:
        # Without the sensor daemon nothing is extracted, whatever else runs.
        beat(heartbeats, "SCHEDULER", timedelta(0))
        assert (await check_health(database, beating, DagsterOrchestrator())).daemon.state == "down"


class TestStores:
    async def test_latencies_are_told_of_what_is_up(self, runtime: Runtime) -> None:
        health = await check_health(
            runtime.database, runtime.vectors.heartbeat, runtime.orchestrator
        )
        for check in (health.postgres, health.chroma, health.queue):
            assert check.state == "up"
            assert check.latency_ms is not None
            assert check.latency_ms > 0

    async def test_without_postgres_all_that_depends_on_it_is_down(self) -> None:
        database = Database(NO_POSTGRES, unasked="a test looks at what is stored")
        await database.open()
        try:
            health = await check_health(database, beating, DagsterOrchestrator())
        finally:
            await database.close()
        assert health.status == "down"
        assert (health.postgres.state, health.queue.state, health.daemon.state) == (
            *("down", "down", "down"),
        )
        assert health.chroma.state == "up"
        assert "s3cr3t" not in health.model_dump_json()

    async def test_an_unforeseen_fault_is_an_answer_too(self, database: Database) -> None:
        async def broken() -> None:
            raise RuntimeError("never seen before\nand more of it")

        health = await check_health(database, broken, DagsterOrchestrator())
        assert (health.status, health.chroma.state) == ("degraded", "down")
        assert health.chroma.detail == "RuntimeError: never seen before"


class TestRoute:
    async def test_200_with_every_part(
        self, settings: Settings, heartbeats: psycopg.Connection[Any]
    ) -> None:
        beat(heartbeats, "SENSOR", timedelta(0))
        async with served(settings) as client:
            answer = await client.get("/health")
        assert answer.status_code == 200
        health = Health.model_validate(answer.json())
        assert health.status == "ok"
        assert answer.json().keys() == {"status", "postgres", "chroma", "queue", "daemon", "log"}
        assert answer.json()["queue"].keys() >= {"pending", "processing", "failed"}
        assert answer.json()["daemon"]["last_heartbeat"].endswith(("Z", "+00:00"))

    async def test_200_although_extraction_stands_still(self, settings: Settings) -> None:
        async with served(settings) as client:
            answer = await client.get("/health")
        assert (answer.status_code, answer.json()["status"]) == (200, "degraded")

    async def test_without_chroma_it_is_degraded(self, settings: Settings) -> None:
        away = settings.model_copy(update={"chroma_port": free_port()})
        async with served(away) as client:
            answer = await client.get("/health")
        assert answer.status_code == 200
        health = Health.model_validate(answer.json())
        assert (health.status, health.chroma.state, health.postgres.state) == (
            *("degraded", "down", "up"),
        )
        assert "CHROMA_HOST" in str(health.chroma.detail)

    async def test_503_without_postgres(self, settings: Settings) -> None:
        away = Settings(
            _env_file=None,
            data_dir=settings.data_dir,
            events_db_dsn=NO_POSTGRES,
            chroma_host=settings.chroma_host,
            chroma_port=settings.chroma_port,
            embedder="local",
        )
        async with served(away) as client:
            answer = await client.get("/health")
        assert answer.status_code == 503
        assert answer.json()["status"] == "down"
        assert "EVENTS_DB_DSN" in answer.text
        assert "s3cr3t" not in answer.text

    async def test_it_recovers_by_itself(
        self, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Given a Chroma that was away at the first question
        async with served(settings) as client:
            with monkeypatch.context() as away:
                away.setattr("memory_core.index.store.VectorStore.heartbeat", _no_answer)
                away_answer = await client.get("/health")
            back = await client.get("/health")
        assert (away_answer.json()["status"], away_answer.json()["chroma"]["state"]) == (
            "degraded",
            "down",
        )
        assert back.json()["chroma"]["state"] == "up"


async def _no_answer(_: object) -> None:
    raise ConnectionError
