"""Dagster's Postgres storage, with connections kept and planned events written together.

As shipped it opens and authenticates a connection for every statement, and a run over a hundred
partitions begins with five hundred planned materialisations written one by one: measured, five
seconds before the run is even queued. The tables and what is in them are Dagster's own.
"""

import os
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from dagster import DagsterEventType
from dagster._core.events.log import EventLogEntry
from dagster._core.storage.event_log import SqlEventLogStorageTable
from dagster_postgres import DagsterPostgresStorage, PostgresEventLogStorage
from dagster_postgres.utils import (
    create_pg_engine,
    get_token_provider_from_config,
    pg_url_from_config,
)

# Per process. What goes beyond the kept ones is closed after use.
_KEPT_CONNECTIONS, _MORE_CONNECTIONS = 2, 30
_RECYCLE_SECONDS = 600

# Without a size Dagster ignores what is marked as a batch and writes event by event.
os.environ.setdefault("DAGSTER_EVENT_BATCH_SIZE", "500")


class PooledPostgresStorage(DagsterPostgresStorage):
    """Runs, event log and schedules over one small pool."""

    def __init__(self, postgres_url: str, *args: Any, **kwargs: Any) -> None:
        super().__init__(postgres_url, *args, **kwargs)
        provider = kwargs.get("token_provider")
        self._event_log_storage = BatchingEventLog(
            postgres_url, should_autocreate_tables=False, token_provider=provider
        )
        engine = create_pg_engine(
            postgres_url,
            provider,
            isolation_level="AUTOCOMMIT",
            pool_size=_KEPT_CONNECTIONS,
            max_overflow=_MORE_CONNECTIONS,
            pool_recycle=_RECYCLE_SECONDS,
            # A connection may have died with a restart of Postgres.
            pool_pre_ping=True,
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


class BatchingEventLog(PostgresEventLogStorage):
    """Writes planned and done materialisations of an asset together, in one transaction."""

    def store_event_batch(self, events: Sequence[EventLogEntry]) -> None:
        for (kind, _), of_kind in groupby(events, _kind):
            if kind in _TOGETHER:
                self._store_together(list(of_kind))
            else:
                super().store_event_batch(list(of_kind))

    def _store_together(self, events: Sequence[EventLogEntry]) -> None:
        rows = [self._event_to_row(event) for event in events]
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


def _kind(event: EventLogEntry) -> tuple[DagsterEventType, str]:
    dagster_event = event.get_dagster_event()
    asset = dagster_event.asset_key
    return dagster_event.event_type, asset.to_string() if asset else ""
