"""Real parts for every test: an embedded Postgres 16 and a Chroma server of the test session."""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psycopg
import pytest

from memory_core.database import Database
from memory_core.runtime import Runtime
from memory_core.settings import Settings, variable_names
from memory_core.stack.connection import connected
from memory_core.vectors import CollectionName

# What a developer has in the environment must not change what the tests see.
for name in variable_names() & os.environ.keys():
    del os.environ[name]


@pytest.fixture(scope="session")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Settings that point at servers started for this test session."""
    folder = tmp_path_factory.mktemp("services")
    with connected(offline_settings(folder)) as resolved:
        yield resolved


@pytest.fixture
def settings(services: Settings) -> Settings:
    """The services, with empty tables and collections."""
    with psycopg.connect(services.dsn, autocommit=True) as connection:
        tables = connection.execute(
            "SELECT string_agg(quote_ident(tablename), ', ') FROM pg_tables "
            "WHERE schemaname = 'public' AND tablename <> 'schema_migration'"
        ).fetchone()
        connection.execute(f"TRUNCATE {tables[0]} CASCADE")
    return services


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
    for name in CollectionName:
        await _session_runtime.vectors.recreate(name)
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
