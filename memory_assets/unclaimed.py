"""What is known of the revisions that a run is for, and why it does not work on some of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory_core.kernel.database import Database


@dataclass(frozen=True, slots=True)
class PartitionState:
    """A key, and the revision and the job that it stands for: None where there is none."""

    partition_key: str
    artifact_uid: str | None
    source_system: str | None
    title: str | None
    status: str | None
    locked_by: str | None


@dataclass(frozen=True, slots=True)
class PartitionPlace:
    """Where a revision stands in Dagster's list of partitions."""

    partition_key: str
    id: int
    artifact_uid: str
    source_system: str
    title: str | None
    before: int | None  # the id of the partition before it


async def revisions_of(database: Database, partition_keys: Sequence[str]) -> list[PartitionState]:
    """One row per key, also for a key that no revision has (any more)."""
    async with database.session() as session:
        return await session.rows(PartitionState, "state_of_partitions", keys=list(partition_keys))


async def places_of(database: Database, partition_keys: Sequence[str]) -> list[PartitionPlace]:
    """Where these revisions stand in Dagster's list of partitions, in its order."""
    async with database.session() as session:
        return await session.rows(
            PartitionPlace, "neighbours_of_partitions", keys=list(partition_keys)
        )


@dataclass(frozen=True, slots=True)
class Unclaimed:
    """Revisions that a run was for and does not work on, in words for the person who asked."""

    gone: list[str]  # partition keys that no revision has (any more)
    elsewhere: dict[str, str]  # by partition key, who works on it


def unclaimed(rows: Iterable[PartitionState], claimed: Iterable[str]) -> Unclaimed:
    had = set(claimed)
    left = [row for row in rows if row.partition_key not in had]
    return Unclaimed(
        gone=[row.partition_key for row in left if row.artifact_uid is None],
        elsewhere={row.partition_key: _holder(row) for row in left if row.artifact_uid is not None},
    )


def _holder(row: PartitionState) -> str:
    if row.status == "PROCESSING":
        return f"run {row.locked_by} is working on it"
    return f"another run was quicker, and its job is {row.status}"
