"""What is known of the revisions that a run is for, and why it does not work on some of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory_core.kernel.database import Database, Row


async def revisions_of(database: Database, partition_keys: Sequence[str]) -> list[Row]:
    """One row per key, also for a key that no revision has (any more)."""
    async with database.session() as session:
        return await session.all("state_of_partitions", keys=list(partition_keys))


async def places_of(database: Database, partition_keys: Sequence[str]) -> list[Row]:
    """Where these revisions stand in Dagster's list of partitions, in its order."""
    async with database.session() as session:
        return await session.all("neighbours_of_partitions", keys=list(partition_keys))


@dataclass(frozen=True, slots=True)
class Unclaimed:
    """Revisions that a run was for and does not work on, in words for the person who asked."""

    gone: list[str]  # partition keys that no revision has (any more)
    elsewhere: dict[str, str]  # by partition key, who works on it


def unclaimed(rows: Iterable[Row], claimed: Iterable[str]) -> Unclaimed:
    had = set(claimed)
    left = [row for row in rows if row["partition_key"] not in had]
    return Unclaimed(
        gone=[row["partition_key"] for row in left if row["artifact_uid"] is None],
        elsewhere={
            row["partition_key"]: _holder(row) for row in left if row["artifact_uid"] is not None
        },
    )


def _holder(row: Row) -> str:
    if row["status"] == "PROCESSING":
        return f"run {row['locked_by']} is working on it"
    return f"another run was quicker, and its job is {row['status']}"
