"""Dagster's log in Postgres: what is written together is as it would be one by one."""

import logging
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import psycopg
import pytest
from dagster._core.events import (
    ASSET_CHECK_EVENTS,
    ASSET_EVENTS,
    AssetMaterializationPlannedData,
    DagsterEvent,
    DagsterEventBatchMetadata,
    DagsterEventType,
    StepMaterializationData,
)
from dagster._core.remote_origin import (
    RegisteredCodeLocationOrigin,
    RemoteJobOrigin,
    RemoteRepositoryOrigin,
)
from dagster_postgres import PostgresEventLogStorage

from memory_assets import postgres_notifications
from memory_assets.postgres_notifications import Notifications
from memory_core.kernel import queries
from memory_core.kernel.settings import Settings
from memory_core.processing.stages import STAGES, STORED_EVENTS
from stack import dagster_lineage
from tests.integration.dagster_database import dagster_instance, own_database

KEYS = [f"note:{number}" for number in range(30)]
ORIGIN = RemoteJobOrigin(
    RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("memory"), "repository"), "job"
)
STORED, INDEXED = dg.AssetKey("stored"), dg.AssetKey("indexed")


@pytest.fixture(scope="module")
def dsn(services: Settings) -> Iterator[str]:
    with own_database(services, "dagster_storage") as dsn:
        yield dsn


@pytest.fixture
def instance(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dg.DagsterInstance]:
    with dagster_instance(dsn, tmp_path, monkeypatch) as instance:
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
    assert kept

    sql.execute("SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) AS pid", [list(kept)])

    assert instance.get_dynamic_partitions("kept") == ["a"]
    assert backends().isdisjoint(kept)


def test_every_storage_of_a_process_shares_its_connections(
    instance: dg.DagsterInstance,
    sql: psycopg.Connection,
) -> None:
    """A sensor's tick makes its storage again: it must not cost three connections each time."""
    instance.get_dynamic_partitions("kept")
    before = _sessions_ever(sql)

    with dg.DagsterInstance.from_ref(instance.get_ref()) as again:
        again.get_dynamic_partitions("kept")

    assert _sessions_ever(sql) == before


def _sessions_ever(sql: psycopg.Connection) -> int:
    sql.execute("SELECT pg_stat_force_next_flush(), pg_stat_clear_snapshot()")
    row = sql.execute("SELECT sessions FROM pg_stat_database WHERE datname = 'dagster_storage'")
    counted = row.fetchone()
    assert counted is not None
    return int(counted[0])


def test_deleting_a_document_knows_every_kind_of_entry_that_dagster_makes_of_an_asset() -> None:
    made = {kind.value for kind in (*ASSET_EVENTS, *ASSET_CHECK_EVENTS)}

    assert set(dagster_lineage.EVENT_TYPES) == made


@pytest.mark.parametrize("query", ["delete_lineage_events", "delete_lineage_tags"])
def test_the_entries_of_a_deleted_document_are_found_by_all_columns_of_the_index(
    instance: dg.DagsterInstance, dsn: str, query: str
) -> None:
    _report(instance, "run", [_done(STORED, "note:0")])
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO dagster.event_logs (run_id, event, dagster_event_type, timestamp, "
            "asset_key, partition) SELECT 'run', '{}', 'ASSET_MATERIALIZATION', now(), "
            "%s, 'note:' || n FROM generate_series(1, 5000) n",
            [STORED.to_string()],
        )
        connection.execute("ANALYZE dagster.event_logs")
        named = {
            "assets": [STORED.to_string()],
            "types": dagster_lineage.EVENT_TYPES,
            "keys": ["note:7"],
        }
        [(plan,)] = connection.execute(
            b"EXPLAIN (FORMAT JSON) " + queries.get(query), named
        ).fetchall()

    [condition] = _conditions(plan[0]["Plan"], "idx_events_by_asset_partition")
    for column in ("asset_key", "dagster_event_type", "partition"):
        assert f"({column} = ANY" in condition


def _conditions(node: dict[str, Any], index: str) -> list[str]:
    own = [node["Index Cond"]] if node.get("Index Name") == index else []
    return own + [found for child in node.get("Plans", []) for found in _conditions(child, index)]


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (DagsterEventType.PIPELINE_ENQUEUED, True),
        (DagsterEventType.PIPELINE_STARTING, False),
        (DagsterEventType.PIPELINE_START, False),
        (DagsterEventType.PIPELINE_SUCCESS, True),
        (DagsterEventType.PIPELINE_FAILURE, True),
        (DagsterEventType.PIPELINE_CANCELED, True),
    ],
)
def test_the_daemon_is_told_of_runs_that_are_queued_or_have_ended(
    instance: dg.DagsterInstance, dsn: str, event: DagsterEventType, told: bool
) -> None:
    run_id = str(uuid.uuid4())
    instance.add_run(dg.DagsterRun(job_name="job", run_id=run_id, remote_job_origin=ORIGIN))
    listener = Notifications(dsn)

    instance.report_dagster_event(
        DagsterEvent(event_type_value=event.value, job_name="job"), run_id
    )

    heard = listener.wait(5.0 if told else 0.0)
    listener.close()
    assert heard == ({(postgres_notifications.RUNS, event.value)} if told else set())
    run = instance.get_run_by_id(run_id)
    assert run is not None
    assert run.status != dg.DagsterRunStatus.NOT_STARTED, "readable when it is told"


def test_what_is_written_short_is_read_as_it_was(instance: dg.DagsterInstance, dsn: str) -> None:
    shown = {
        "nothing": "",
        "zero": 0,
        "half": 0.5,
        "page": dg.MetadataValue.md("| a |"),
        "link": dg.MetadataValue.url("https://notes.example/1"),
        "data": {"empty": None, "list": [], "inner": {"text": ""}},
    }
    asset, key, run_id = dg.AssetKey("short"), "note:1", str(uuid.uuid4())
    made = dg.AssetMaterialization(asset, partition=key, metadata=shown, tags={"a": "b"})
    event = DagsterEvent(
        event_type_value=DagsterEventType.ASSET_MATERIALIZATION.value,
        job_name="job",
        step_key="step",
        event_specific_data=StepMaterializationData(made),
    )

    _report(instance, run_id, [_planned(asset, key)])
    _report(instance, run_id, [event])

    [record] = instance.fetch_materializations(asset, limit=9).records
    assert record.asset_materialization == made
    assert (record.run_id, record.partition_key) == (run_id, key)
    planned, read = instance.all_logs(run_id)
    assert (planned.step_key, read.step_key) == ("step", "step")
    assert planned.get_dagster_event().asset_key == asset
    instance.report_runless_asset_event(made)
    assert len(instance.fetch_materializations(asset, limit=9).records) == 2
    with psycopg.connect(dsn) as sql:
        [(longest,)] = sql.execute(
            "SELECT max(length(event)) FROM dagster.event_logs WHERE run_id = %s "
            "AND dagster_event_type = 'ASSET_MATERIALIZATION_PLANNED'",
            [run_id],
        ).fetchall()
    assert longest < 600


def test_the_queue_plans_only_the_asset_where_people_look(instance: dg.DagsterInstance) -> None:
    run_id = str(uuid.uuid4())
    planned = [
        _planned(dg.AssetKey(stage), "note:1")._replace(job_name=job)
        for job in ("documents_to_events", "__ASSET_JOB")
        for stage in STAGES
    ]

    _report(instance, run_id, planned)

    events = [entry.get_dagster_event() for entry in instance.all_logs(run_id)]
    by_job = {
        job: {
            str(event.asset_key and event.asset_key.path[-1])
            for event in events
            if event.job_name == job
        }
        for job in ("documents_to_events", "__ASSET_JOB")
    }
    assert by_job == {"documents_to_events": {STORED_EVENTS}, "__ASSET_JOB": set(STAGES)}
