"""Real parts for every test: an embedded Postgres 16 and a Chroma server of the test session."""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import hypothesis
import psycopg
import pytest

from memory_core.index.generation import CollectionName, Generation, first, live
from memory_core.index.writer import holding_index
from memory_core.kernel.database import Database
from memory_core.kernel.file_locks import holding
from memory_core.kernel.principal import DEFAULT_TENANT
from memory_core.kernel.settings import Settings, variable_names
from memory_core.log.worker import Worker
from memory_core.projections import projections
from memory_core.runtime import Runtime
from stack import ports
from stack.connection import connected, joined_runtime
from stack.layout import Layout

# What a developer has in the environment must not change what the tests see.
for name in list(os.environ):
    ours = name.upper() in variable_names() | {"FORCE_COLOR", "TTY_COMPATIBLE", "COLUMNS"}
    if ours or name.startswith(("PG", "DAGSTER_")):
        del os.environ[name]
# Nor may a proxy come between the tests and the servers that they start.
os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1,localhost"

# How long an example takes says nothing of the code where machines are shared.
hypothesis.settings.register_profile(
    "unhurried", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("unhurried")


@pytest.fixture(scope="session")
def services() -> Iterator[Settings]:
    """Settings that point at servers started for this test session."""
    # Not in pytest's own folder: a second pytest, starting, would close it to the account that
    # runs Postgres when we are root.
    with tempfile.TemporaryDirectory(prefix="memory-tests-") as folder:
        # On a port: tests lead it astray, and ask it past our own client.
        settings = offline_settings(Path(folder), chroma_port=ports.free_port())
        with connected(settings) as resolved:
            _write_without_waiting_for_the_disk(resolved)
            _learn_only_when_asked(resolved)
            yield resolved
        # The servers end by themselves after their last user; until then they write.
        with holding(Layout(Path(folder)).supervisor_lock, timeout=60) as ended:
            assert ended


@pytest.fixture
def settings(services: Settings) -> Settings:
    """The services, with empty tables."""
    empty_tables(services)
    return services


def _write_without_waiting_for_the_disk(services: Settings) -> None:
    """No test pulls the plug, and each commit would take milliseconds."""
    _configure_postgres(services, fsync="off", full_page_writes="off")


def _learn_only_when_asked(services: Settings) -> None:
    """The planner's statistics come from the ANALYZE of a test, never from a moment that another
    process chose."""
    _configure_postgres(services, autovacuum_analyze_threshold="2147483647")


def _configure_postgres(services: Settings, **parameters: str) -> None:
    with psycopg.connect(services.dsn, autocommit=True) as connection:
        for name, value in parameters.items():
            connection.execute(f"ALTER SYSTEM SET {name} = {value}".encode())
        connection.execute("SELECT pg_reload_conf()")


def empty_tables(services: Settings) -> None:
    connection = _EMPTYING.get(services.dsn)
    if connection is None or connection.closed:
        connection = _EMPTYING[services.dsn] = psycopg.connect(services.dsn, autocommit=True)
        connection.execute("SET session_replication_role = replica")
    try:
        _empty_tables(connection)
    except psycopg.OperationalError:
        # A test has ended all connections, or the server.
        connection.close()
        empty_tables(services)


# Kept from test to test: a new connection would load its knowledge of forty tables each time.
_EMPTYING: dict[str, psycopg.Connection] = {}


def _empty_tables(connection: psycopg.Connection) -> None:
    deletes = connection.execute(
        "SELECT string_agg(format('DELETE FROM %I.%I', schemaname, tablename), '; ') "
        "FROM pg_tables WHERE schemaname IN ('public', 'log') "
        "AND tablename NOT IN ('schema_migration', 'cluster', 'projection_checkpoints', "
        "'index_generation', 'index_collections', 'index_entry', "
        "'tenant', 'audience', 'audience_member') "
        "AND tablename NOT LIKE 'events\\_%'"
    ).fetchone()
    # Row by row, past all triggers: on small tables that is far quicker than TRUNCATE.
    connection.execute(
        f"{deletes[0]}; DELETE FROM tenant WHERE name <> 'default'; "
        # The worker that keeps the index goes on from test to test.
        "DELETE FROM log.projection_checkpoints WHERE projection_name <> 'index'; "
        # What an earlier test has had analyzed is not there any more.
        "DELETE FROM pg_statistic WHERE starelid IN (SELECT oid FROM pg_class WHERE "
        "relnamespace IN ('public'::regnamespace, 'log'::regnamespace))"
    )


@pytest.fixture
async def database(settings: Settings) -> AsyncIterator[Database]:
    database = Database(settings.dsn, system="a test looks at what is stored")
    await database.open()
    yield database
    await database.close()


class IndexHost:
    """Hosts the worker of one runtime at a time: tests bring Chromas and embedders of their own."""

    def __init__(self) -> None:
        self._runtime: Runtime | None = None
        self._task: asyncio.Task[None] | None = None

    async def serve(self, runtime: Runtime) -> None:
        """From now on this runtime's index follows the log, from an empty one."""
        if runtime is not self._runtime:
            await self.stop()
        await empty_index(runtime)
        if self._task is None:
            await self.host(runtime)

    async def host(self, runtime: Runtime) -> None:
        """A worker over this runtime, with the index as it is."""
        await self.stop()
        self._runtime = runtime
        worker = Worker(runtime.database, projections(runtime))
        self._task = asyncio.create_task(worker.run())

    def serves(self, runtime: Runtime) -> bool:
        return runtime is self._runtime

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._task = self._runtime = None


async def empty_index(runtime: Runtime) -> None:
    """A new generation, unless the one that serves is this runtime's and empty."""
    async with holding_index(runtime) as session:
        connection = session.connection
        retired = await session.rows(Generation, "retired_generations")
        every = [*await live(session), *retired]
        there = await runtime.vectors.labels()
        cursor = await connection.execute("SELECT 1 FROM index_entry LIMIT 1")
        is_empty = await cursor.fetchone() is None
        for one in every:
            made = one.name_in_chroma(CollectionName.EVENTS) in there
            is_ready = one.state == "serving" and one.filled_at is not None
            if is_empty and made and is_ready and one.fits(runtime.embedder):
                return
        await connection.execute("DELETE FROM index_generation")
        begun = await first(session, runtime.embedder)
        await connection.execute("UPDATE index_generation SET filled_at = now(), adopts = false")
        await runtime.vectors.make(begun.names_of(DEFAULT_TENANT), begun.label)
        number = begun.generation
        await session.run("collections_are_made", generation=number, tenant_id=DEFAULT_TENANT)
    await runtime.vectors.drop([name for one in every for name in filter(one.has_named, there)])


@pytest.fixture(scope="session")
async def index_host() -> AsyncIterator[IndexHost]:
    host = IndexHost()
    yield host
    await host.stop()


@pytest.fixture(scope="session")
async def _session_runtime(services: Settings) -> AsyncIterator[Runtime]:
    runtime = joined_runtime(services, unasked="tests look at what is stored")
    await runtime.open()
    yield runtime
    await runtime.close()


@pytest.fixture
async def runtime(_session_runtime: Runtime, settings: Settings, index_host: IndexHost) -> Runtime:
    """Stores and embedder, empty; a worker keeps the index."""
    await index_host.serve(_session_runtime)
    return _session_runtime


def offline_settings(data_dir: Path, **changes: object) -> Settings:
    """Local embedder and rules extractor: nothing here may need a key or the network."""
    values: dict[str, object] = {
        "data_dir": data_dir,
        "embedder": "local",
        "extractor": "rules",
        "mcp_port": 0,
        "dagster_port": 0,
        **changes,
    }
    return Settings(_env_file=None, **values)  # type: ignore[arg-type]
