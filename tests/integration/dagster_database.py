"""A database of its own with our schema and Dagster's: other tests are about a memory that Dagster
has never seen."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import psycopg
import pytest
from dagster._core.instance.ref import InstanceRef

from memory_core.kernel import migrations
from memory_core.kernel.settings import Settings
from stack.services import dagster_storage_url

DAGSTER_YAML = Path(__file__).resolve().parents[2] / "dagster.yaml"


@contextmanager
def own_database(services: Settings, name: str) -> Iterator[str]:
    """Its DSN."""
    dsn = services.dsn.replace("/postgres?", f"/{name}?")
    assert dsn != services.dsn
    with psycopg.connect(services.dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        try:
            migrations.apply(dsn)
            yield dsn
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def dagster_instance(
    dsn: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dg.DagsterInstance]:
    """An instance with the `dagster.yaml` that is shipped."""
    monkeypatch.setenv("DAGSTER_PG_URL", dagster_storage_url(dsn))
    (home / "dagster.yaml").write_text(DAGSTER_YAML.read_text())
    with dg.DagsterInstance.from_ref(InstanceRef.from_dir(str(home))) as instance:
        yield instance
