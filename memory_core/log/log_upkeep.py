"""Upkeep of the log: partitions ahead, snapshots, archive."""

from dataclasses import dataclass

from memory_core.kernel.database import Database
from memory_core.kernel.settings import Settings
from memory_core.log import log_partitions
from memory_core.log.aggregate_state import keep_snapshots
from memory_core.log.log_partitions import Archived

ARCHIVE = "log-archive"


@dataclass(frozen=True, slots=True)
class LogUpkeep:
    made: list[str]
    archived: list[Archived]
    snapshots: int


async def keep_log(database: Database, settings: Settings) -> LogUpkeep:
    made = await log_partitions.make_ahead(database)
    async with database.transaction() as session:
        snapshots = await keep_snapshots(session)
    archived = []
    if settings.log_months:
        folder = settings.data_dir / ARCHIVE
        archived = await log_partitions.archive(database, folder, settings.log_months)
    return LogUpkeep(made, archived, snapshots)
