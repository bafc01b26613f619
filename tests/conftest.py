"""Real parts for every test: an embedded Postgres 16 and a Chroma server of the test session."""

import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import hypothesis
import psycopg
import pytest

from memory_core.database import Database
from memory_core.runtime import Runtime
from memory_core.settings import Settings, variable_names
from memory_core.stack.connection import connected
from memory_core.stack.layout import Layout
from memory_core.stack.locks import holding
from memory_core.vectors import CollectionName

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
        with connected(offline_settings(Path(folder))) as resolved:
            yield resolved
        # The servers end by themselves after their last user; until then they write.
        with holding(Layout(Path(folder)).supervisor_lock, timeout=60) as ended:
            assert ended


@pytest.fixture
def settings(services: Settings) -> Settings:
    """The services, with empty tables."""
    empty_tables(services)
    return services


def empty_tables(services: Settings) -> None:
    with psycopg.connect(services.dsn, autocommit=True) as connection:
        deletes = connection.execute(
            "SELECT string_agg(format('DELETE FROM %I', tablename), '; ') FROM pg_tables "
            "WHERE schemaname = 'public' "
            "AND tablename NOT IN ('schema_migration', 'index_generation')"
        ).fetchone()
        # Row by row, past all triggers: on small tables that is far quicker than TRUNCATE.
        connection.execute(f"SET session_replication_role = replica; {deletes[0]}")


@pytest.fixture
async def database(settings: Settings) -> AsyncIterator[Database]:
    database = Database(settings.dsn)
    await database.open()
    yield database
    await database.close()


@pytest.fixture(scope="session")
async def _session_runtime(services: Settings) -> AsyncIterator[Runtime]:
    runtime = Runtime(services)
    await runtime.open()
    yield runtime
    await runtime.close()


@pytest.fixture
async def runtime(_session_runtime: Runtime, settings: Settings) -> Runtime:
    """Stores and embedder, empty."""
    await empty_collections(_session_runtime)
    return _session_runtime


async def empty_collections(runtime: Runtime) -> None:
    for name in CollectionName:
        if await runtime.vectors.count(name):
            await runtime.vectors.recreate(name)


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
