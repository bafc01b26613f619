"""Dagster's log in Postgres: what is written together is as it would be one by one."""

import logging
import uuid
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import psycopg
import pytest
from dagster._core.events import (
    AssetMaterializationPlannedData,
    DagsterEvent,
    DagsterEventBatchMetadata,
    DagsterEventType,
    StepMaterializationData,
)
from dagster._core.instance.ref import InstanceRef
from dagster_postgres import PostgresEventLogStorage

from memory_core.settings import Settings
from memory_core.stack.services import dagster_storage_url

DAGSTER_YAML = Path(__file__).resolve().parents[2] / "dagster.yaml"
KEYS = [f"note:{number}" for number in range(30)]
STORED, INDEXED = dg.AssetKey("stored"), dg.AssetKey("indexed")


@pytest.fixture
def own_database(services: Settings) -> Iterator[str]:
    """Other tests are about a memory that Dagster has never seen."""
    name = "dagster_storage"
    dsn = services.dsn.replace("/postgres?", f"/{name}?")
    assert dsn != services.dsn
    with psycopg.connect(services.dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        with psycopg.connect(dsn, autocommit=True) as inside:
            inside.execute("CREATE SCHEMA dagster")
        yield dsn
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def instance(
    own_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dg.DagsterInstance]:
    monkeypatch.setenv("DAGSTER_PG_URL", dagster_storage_url(own_database))
    (tmp_path / "dagster.yaml").write_text(DAGSTER_YAML.read_text())
    with dg.DagsterInstance.from_ref(InstanceRef.from_dir(str(tmp_path))) as instance:
        yield instance


def _planned(asset: dg.AssetKey, key: str) -> DagsterEvent:
    data = AssetMaterializationPlannedData(asset, partition=key, partitions_subset=None)
    return DagsterEvent.build_asset_materialization_planned_event("job", "step", data)


def _done(asset: dg.AssetKey, key: str) -> DagsterEvent:
    tags = {"dagster/code_version": "7", "dagster/data_version": f"of {key}"}
    materialisation = dg.AssetMaterialization(asset, partition=key, tags=tags)
    return DagsterEvent(
        event_type_value=DagsterEventType.ASSET_MATERIALIZATION.value,
        job_name="job",
        step_key="step",
        event_specific_data=StepMaterializationData(materialisation),
    )


def _report(instance: dg.DagsterInstance, run_id: str, events: list[DagsterEvent]) -> None:
    batch = str(uuid.uuid4())
    for left, event in zip(range(len(events) - 1, -1, -1), events, strict=True):
        mark = DagsterEventBatchMetadata(batch, is_end=left == 0)
        instance.report_dagster_event(event, run_id, logging.DEBUG, batch_metadata=mark)


def test_a_batch_over_two_assets_marks_every_partition_of_both(
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    run_id = str(uuid.uuid4())
    # Written one by one, it would look the same in the end.
    monkeypatch.delattr(PostgresEventLogStorage, "store_event")

    _report(instance, run_id, [_planned(asset, key) for asset in (STORED, INDEXED) for key in KEYS])
    _report(instance, run_id, [_done(STORED, key) for key in KEYS])

    assert instance.get_materialized_partitions(STORED) == set(KEYS)
    assert instance.get_materialized_partitions(INDEXED) == set()
    last = instance.get_latest_data_version_record(STORED, partition_key=KEYS[3])
    assert last is not None
    assert last.asset_materialization is not None
    assert (last.asset_materialization.tags or {})["dagster/data_version"] == f"of {KEYS[3]}"
    tagged = instance.event_log_storage.get_latest_tags_by_partition(
        STORED, DagsterEventType.ASSET_MATERIALIZATION, ["dagster/data_version"]
    )
    assert tagged == {key: {"dagster/data_version": f"of {key}"} for key in KEYS}
    records = instance.fetch_materializations(STORED, limit=100).records
    assert [record.partition_key for record in reversed(records)] == KEYS
    assert INDEXED in instance.get_asset_keys()
    assert "Falling back" not in capfd.readouterr().err


def test_a_connection_is_kept_and_replaced_when_postgres_has_dropped_it(
    instance: dg.DagsterInstance, sql: psycopg.Connection
) -> None:
    def backends() -> set[int]:
        rows = sql.execute(
            "SELECT pid FROM pg_stat_activity "
            "WHERE query LIKE '%dynamic_partitions%' AND pid <> pg_backend_pid() "
            "AND datname = 'dagster_storage'"
        ).fetchall()
        return {row[0] for row in rows}

    instance.add_dynamic_partitions("kept", ["a"])
    assert instance.get_dynamic_partitions("kept") == ["a"]
    kept = backends()
    assert len(kept) == 1

    sql.execute("SELECT pg_terminate_backend(%s)", [*kept])

    assert instance.get_dynamic_partitions("kept") == ["a"]
    assert backends().isdisjoint(kept)
