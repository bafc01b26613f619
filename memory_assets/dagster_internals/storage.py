"""Dagster's Postgres storage with pooled connections, batched planned events, and notifications of
runs that are queued or have ended.

As shipped, it opens and authenticates a connection for every statement. A run over a hundred
partitions begins with five hundred planned materialisations, written one by one: measured, this
delays the run by five seconds. And each tick of a sensor creates the storage again, which checks
three times whether its tables exist, over a new connection each time. The tables and their contents
stay Dagster's own. The listener is in `daemon`.
"""

import os
from collections.abc import Sequence
from functools import cache
from itertools import groupby
from typing import Any

import orjson
from dagster import AssetKey, DagsterEvent, DagsterEventType
from dagster._core.events.log import EventLogEntry
from dagster._core.storage.event_log import SqlEventLogStorageTable
from dagster_postgres import (
    DagsterPostgresStorage,
    PostgresEventLogStorage,
    PostgresRunStorage,
)
from dagster_postgres.utils import (
    create_pg_engine,
    get_token_provider_from_config,
    pg_url_from_config,
    retry_pg_connection_fn,
)
from sqlalchemy import Engine, func, inspect, select

from memory_assets import postgres_notifications
from memory_core.processing.stages import STORED_EVENTS

# Per process. Connections beyond the pool are closed after use.
_KEPT_CONNECTIONS, _MORE_CONNECTIONS = 2, 30
_RECYCLE_SECONDS = 600

# Without a batch size Dagster ignores the batch mark and writes each event alone.
os.environ.setdefault("DAGSTER_EVENT_BATCH_SIZE", "500")


class PooledPostgresStorage(DagsterPostgresStorage):
    """Runs, event log and schedules share one small pool."""

    def __init__(
        self,
        postgres_url: str,
        should_autocreate_tables: bool = True,
        inst_data: Any = None,
        token_provider: Any = None,
    ) -> None:
        engine, provider = _engine(postgres_url, token_provider), token_provider
        missing = should_autocreate_tables and not _has_tables(engine)
        super().__init__(postgres_url, missing, inst_data, provider)
        self._run_storage = NotifyingRuns(
            postgres_url, should_autocreate_tables=False, token_provider=provider
        )
        self._event_log_storage = BatchingEventLog(
            postgres_url, should_autocreate_tables=False, token_provider=provider
        )
        for storage in (self._run_storage, self._event_log_storage, self._schedule_storage):
            storage._engine = engine

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> "PooledPostgresStorage":
        return cls(
            pg_url_from_config(config_value),
            should_autocreate_tables=config_value.get("should_autocreate_tables", True),
            inst_data=inst_data,
            token_provider=get_token_provider_from_config(config_value),
        )


@cache
def _engine_of(process: int, postgres_url: str, provider: Any) -> Engine:
    return create_pg_engine(
        postgres_url,
        provider,
        isolation_level="AUTOCOMMIT",
        pool_size=_KEPT_CONNECTIONS,
        max_overflow=_MORE_CONNECTIONS,
        pool_recycle=_RECYCLE_SECONDS,
        # A restart of Postgres may have closed the connection.
        pool_pre_ping=True,
    )


def _engine(postgres_url: str, provider: Any) -> Engine:
    """One engine for all storages of a process. A forked run must not use its parent's
    connections."""
    return _engine_of(os.getpid(), postgres_url, provider)


_with_tables: set[Engine] = set()


def _has_tables(engine: Engine) -> bool:
    if engine not in _with_tables:
        tables = retry_pg_connection_fn(lambda: inspect(engine).get_table_names())
        if not set(tables) >= _TABLES:
            return False
        _with_tables.add(engine)
    return True


# Dagster creates all its tables when one of these is missing.
_TABLES = {"runs", "instance_info", "event_logs", "jobs"}


class NotifyingRuns(PostgresRunStorage):
    """Notifies the daemon when a run is queued or has ended, after the row is committed."""

    def handle_run_event(self, run_id: str, event: DagsterEvent, *args: Any, **kwargs: Any) -> None:
        super().handle_run_event(run_id, event, *args, **kwargs)
        if event.event_type in _NOTIFIED:
            notification = func.pg_notify(postgres_notifications.RUNS, event.event_type_value)
            with self.connect() as connection:
                connection.execute(select(notification))


_NOTIFIED = {
    DagsterEventType.PIPELINE_ENQUEUED,
    DagsterEventType.PIPELINE_SUCCESS,
    DagsterEventType.PIPELINE_FAILURE,
    DagsterEventType.PIPELINE_CANCELED,
}


class BatchingEventLog(PostgresEventLogStorage):
    """Writes planned and finished materialisations of an asset in one transaction, and only the
    fields that a reader needs: there are five for every document."""

    def store_event_batch(self, events: Sequence[EventLogEntry]) -> None:
        for (kind, _), of_kind in groupby(events, _kind):
            if kind in _TOGETHER:
                self._store_together(list(of_kind))
            else:
                super().store_event_batch(list(of_kind))

    def store_event(self, event: EventLogEntry) -> None:
        if event.is_dagster_event and _kind(event)[0] in _TOGETHER:
            self._store_together([event])
        else:
            super().store_event(event)

    def _store_together(self, events: Sequence[EventLogEntry]) -> None:
        events = [_bare(event) for event in events if not _is_logged_elsewhere(event)]
        if not events:
            return
        rows = [_short(self._event_to_row(event)) for event in events]
        with self.index_transaction() as connection:
            ids = connection.scalars(_INSERT, rows).all()
            self._store_asset_event_tags(connection, events, ids)
            self._store_asset_event(connection, events[-1], ids[-1])


_TOGETHER = {
    DagsterEventType.ASSET_MATERIALIZATION_PLANNED,
    DagsterEventType.ASSET_MATERIALIZATION,
}
_INSERT = SqlEventLogStorageTable.insert().returning(
    SqlEventLogStorageTable.c.id, sort_by_parameter_order=True
)


# Only this asset needs a plan: a document that fails is shown red there, where people look.
_PLANNED_BY_QUEUE = "documents_to_events"
_PLANNED_ASSETS = {AssetKey(STORED_EVENTS)}


def _is_logged_elsewhere(event: EventLogEntry) -> bool:
    dagster_event = event.get_dagster_event()
    return (
        dagster_event.event_type is DagsterEventType.ASSET_MATERIALIZATION_PLANNED
        and dagster_event.job_name == _PLANNED_BY_QUEUE
        and dagster_event.asset_key not in _PLANNED_ASSETS
    )


def _bare(event: EventLogEntry) -> EventLogEntry:
    """The event without fields that the run already has, and without fields that it contains
    twice."""
    bare_event = event.get_dagster_event()._replace(
        logging_tags={}, step_handle=None, node_handle=None, step_kind_value=None, message=None
    )
    return event._replace(
        dagster_event=bare_event._replace(pid=None), user_message="", job_name=None
    )


def _short(row: dict[str, Any]) -> dict[str, Any]:
    """The JSON of an event without its empty fields, where Dagster's constructor has a default for
    them."""
    return {**row, "event": orjson.dumps(_filled(orjson.loads(row["event"]))).decode()}


def _filled(part: Any) -> Any:
    if isinstance(part, list):
        return [_filled(value) for value in part]
    if not isinstance(part, dict) or part.get("__class__") not in _MAY_LACK:
        return part
    needed = _NEEDED.get(part["__class__"], ())
    return {
        name: _filled(value)
        for name, value in part.items()
        if name in needed or value not in (None, [], {})
    }


# Event parts whose constructors have defaults for empty fields, each with its exceptions.
_MAY_LACK = {
    "EventLogEntry",
    "DagsterEvent",
    "AssetMaterializationPlannedData",
    "StepMaterializationData",
    "AssetMaterialization",
    "EventMetadataEntry",
}
_NEEDED = {
    "EventLogEntry": ("error_info",),
    "EventMetadataEntry": ("label", "entry_data"),
}


def _kind(event: EventLogEntry) -> tuple[DagsterEventType, str]:
    dagster_event = event.get_dagster_event()
    asset = dagster_event.asset_key
    return dagster_event.event_type, asset.to_string() if asset else ""
