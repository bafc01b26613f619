"""Reading the log in order, without gaps.

A transaction that began earlier may commit later: its changes have lower numbers than some that
can be seen already. So a reader takes only what is below the horizon, the oldest transaction that
is still open anywhere in the cluster: nothing can come in before what it has passed. A change never
has a lower transaction id than its own transaction, which is all that this needs.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from memory_core.kernel.database import Session
from memory_core.log.change import START, Change, Position


@dataclass(frozen=True, slots=True)
class Holder:
    """The transaction that holds the horizon back."""

    pid: int
    age_seconds: float
    application: str
    database: str | None
    query_state: str | None


async def read(
    session: Session,
    after: Position,
    limit: int,
    types: Collection[str] | None = None,
) -> list[Change]:
    """The changes after a position, in order, below the horizon."""
    rows = await session.all(
        "read_changes",
        transaction_id=str(after.transaction_id),
        sequence_number=after.sequence_number,
        types=sorted(types) if types is not None else None,
        limit=limit,
    )
    return [Change.of(row) for row in rows]


async def last(session: Session, number: int, types: Collection[str] | None = None) -> Position:
    """The position after which the last `number` readable changes stand."""
    row = await session.one(
        "before_last_changes",
        types=sorted(types) if types is not None else None,
        number=number,
    )
    return Position.of(row) if row is not None else START


async def end(session: Session) -> Position:
    """A position that every finished change stands before, and no unfinished one."""
    row = await session.one("log_horizon")
    assert row is not None
    return Position.of(row)


async def holder(session: Session) -> Holder | None:
    row = await session.one("horizon_holder")
    if row is None:
        return None
    return Holder(
        pid=row["pid"],
        age_seconds=float(row["age_seconds"]),
        application=row["application_name"],
        database=row["datname"],
        query_state=row["state"],
    )


async def of_aggregate(
    session: Session,
    aggregate_type: str,
    aggregate_id: UUID,
    *,
    after_version: int = 0,
    until: datetime | None = None,
    limit: int | None = None,
) -> list[Change]:
    """The changes of one aggregate in order of their versions."""
    rows = await session.all(
        "aggregate_changes",
        aggregate_type=aggregate_type,
        aggregate_id=aggregate_id,
        after_version=after_version,
        until=until,
        limit=limit,
    )
    return [Change.of(row) for row in rows]
