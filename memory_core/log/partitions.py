"""The log's partitions: one a month, made ahead; old ones archived and dropped."""

import gzip
import logging
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import orjson

from memory_core.kernel.database import Database, Row, Session
from memory_core.log.change import Change
from memory_core.log.state import snapshot

log = logging.getLogger(__name__)

MONTHS_AHEAD = 3
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Archived:
    partition: str
    changes: int
    file: Path


async def make_ahead(database: Database, today: date | None = None) -> list[str]:
    """The partitions that were made: this month's and those of the next ones."""
    async with database.transaction() as session:
        # Looking costs nothing; making takes locks that appending waits for.
        first = today or datetime.now(UTC).date()
        missing = await session.one("missing_partitions", first=first, months=MONTHS_AHEAD + 1)
        if missing is None or not missing["missing"]:
            return []
        rows = await session.all("make_partitions", first=first, months=MONTHS_AHEAD + 1)
    return [row["name"] for row in rows]


async def archive(
    database: Database, folder: Path, months: int, today: date | None = None
) -> list[Archived]:
    """Write partitions that are older than `months` to files, and drop them.

    A partition with a change that some projection has not passed stays. What is folded from its
    changes is kept as snapshots.
    """
    first = (today or datetime.now(UTC).date()).replace(day=1)
    done = []
    async with database.session() as session:
        old = await session.all("old_partitions", first=first, months=months)
    for row in old:
        async with database.session() as session:
            behind = await session.one("projection_behind_partition", before=row["until"])
        if behind is not None:
            log.warning("%s stays: %s has not passed it", row["name"], behind["projection_name"])
            break
        done.append(await _archive_one(database, folder, row))
    return done


async def _archive_one(database: Database, folder: Path, row: Row) -> Archived:
    file = folder / f"{row['name']}.jsonl.gz"
    async with database.transaction() as session:
        # The file is whole before the partition goes; killed between, both are there.
        changes = await _write(session, row, file)
        for aggregate in await session.all("aggregates_of_partition", **_span(row)):
            await snapshot(session, aggregate["aggregate_type"], aggregate["aggregate_id"])
        await session.run("drop_partition", name=row["name"])
    return Archived(row["name"], changes, file)


async def _write(session: Session, row: Row, file: Path) -> int:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    unfinished = file.with_suffix(".part")
    count = after = 0
    with gzip.open(unfinished, "wb") as out:
        while page := await session.all(
            "partition_changes", **_span(row), after=after, limit=_PAGE
        ):
            for change in map(Change.of, page):
                out.write(orjson.dumps(change.as_json()) + b"\n")
            count += len(page)
            after = page[-1]["sequence_number"]
    unfinished.replace(file)
    return count


def _span(row: Row) -> dict[str, datetime]:
    return {"since": row["since"], "until": row["until"]}
