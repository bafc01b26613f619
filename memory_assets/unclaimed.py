"""The revisions of a run's partition keys, and why the run does not work on some of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory_core.kernel.database import Database


@dataclass(frozen=True, slots=True)
class PartitionState:
    """A partition key with its revision and its job. The columns are None where there is none."""

    partition_key: str
    artifact_uid: str | None
    source_system: str | None
    title: str | None
    status: str | None
    locked_by: str | None


@dataclass(frozen=True, slots=True)
class PartitionPlace:
    """The position of a revision in Dagster's list of partitions."""

    partition_key: str
    id: int
    artifact_uid: str
    source_system: str
    title: str | None
    before: int | None  # the id of the previous partition


async def revisions_of(database: Database, partition_keys: Sequence[str]) -> list[PartitionState]:
    """One row per key, also for a key that has no revision (any more)."""
    async with database.session() as session:
        return await session.rows(PartitionState, "state_of_partitions", keys=list(partition_keys))


async def places_of(database: Database, partition_keys: Sequence[str]) -> list[PartitionPlace]:
    """The positions of these revisions in Dagster's list of partitions, in its order."""
    async with database.session() as session:
        return await session.rows(
            PartitionPlace, "neighbours_of_partitions", keys=list(partition_keys)
        )


@dataclass(frozen=True, slots=True)
class UnclaimedRevisions:
    """Revisions that a run was requested for but does not work on, each with a reason for the
    requester."""

    gone: list[str]  # partition keys without a revision
    elsewhere: dict[str, str]  # partition key -> the run that works on it


def unclaimed(rows: Iterable[PartitionState], claimed: Iterable[str]) -> UnclaimedRevisions:
    had = set(claimed)
    left = [row for row in rows if row.partition_key not in had]
    return UnclaimedRevisions(
        gone=[row.partition_key for row in left if row.artifact_uid is None],
        elsewhere={row.partition_key: _holder(row) for row in left if row.artifact_uid is not None},
    )


def _holder(row: PartitionState) -> str:
    if row.status == "PROCESSING":
        return f"run {row.locked_by} is working on it"
    return f"another run was quicker, and its job is {row.status}"
