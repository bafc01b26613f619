"""The log's partitions: one per month, created ahead; old ones are archived and dropped."""

import gzip
import logging
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import orjson

from memory_core.kernel.database import Database, Session
from memory_core.log.aggregate_state import AggregateKey, snapshot
from memory_core.log.change import Change

log = logging.getLogger(__name__)

MONTHS_AHEAD = 3
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Archived:
    partition: str
    changes: int
    file: Path


@dataclass(frozen=True, slots=True)
class Partition:
    name: str
    since: datetime
    until: datetime


async def make_ahead(database: Database, today: date | None = None) -> list[str]:
    """Create the partitions of this month and the next ones. Returns the created ones."""
    async with database.transaction() as session:
        # The check is cheap; creating takes locks that appending waits for.
        first = today or datetime.now(UTC).date()
        months = MONTHS_AHEAD + 1
        if not await session.value(int, "missing_partitions", first=first, months=months):
            return []
        return await session.values(str, "make_partitions", first=first, months=months)


async def archive(
    database: Database, folder: Path, months: int, today: date | None = None
) -> list[Archived]:
    """Write partitions older than `months` to files, and drop them.

    A partition stays while some projection has not passed all its changes. The states of its
    aggregates are kept as snapshots.
    """
    first = (today or datetime.now(UTC).date()).replace(day=1)
    done = []
    async with database.session() as session:
        old = await session.rows(Partition, "old_partitions", first=first, months=months)
    for partition in old:
        async with database.session() as session:
            behind = await session.maybe(str, "projection_behind_partition", before=partition.until)
        if behind is not None:
            log.warning("%s stays: %s has not passed it", partition.name, behind)
            break
        done.append(await _archive_one(database, folder, partition))
    return done


async def _archive_one(database: Database, folder: Path, partition: Partition) -> Archived:
    file = folder / f"{partition.name}.jsonl.gz"
    async with database.transaction() as session:
        # The file is complete before the partition is dropped; a kill in between leaves both.
        changes = await _write(session, partition, file)
        for aggregate in await session.rows(
            AggregateKey,
            "aggregates_of_partition",
            since=partition.since,
            until=partition.until,
        ):
            await snapshot(session, aggregate.aggregate_type, aggregate.aggregate_id)
        await session.run("drop_partition", name=partition.name)
    return Archived(partition.name, changes, file)


async def _write(session: Session, partition: Partition, file: Path) -> int:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    unfinished = file.with_suffix(".part")
    count = after = 0
    with gzip.open(unfinished, "wb") as out:
        while page := await session.rows(
            Change,
            "partition_changes",
            since=partition.since,
            until=partition.until,
            after=after,
            limit=_PAGE,
        ):
            for change in page:
                out.write(orjson.dumps(change.as_json()) + b"\n")
            count += len(page)
            after = page[-1].sequence_number
    unfinished.replace(file)
    return count
