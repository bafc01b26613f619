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
    application: str | None


async def read(
    session: Session,
    after: Position,
    limit: int,
    types: Collection[str] | None = None,
) -> list[Change]:
    """The changes after a position, in order, below the horizon."""
    return await session.rows(
        Change,
        "read_changes",
        transaction_id=str(after.transaction_id),
        sequence_number=after.sequence_number,
        types=sorted(types) if types is not None else None,
        limit=limit,
    )


async def last(session: Session, number: int, types: Collection[str] | None = None) -> Position:
    """The position after which the last `number` readable changes stand."""
    position = await session.row(
        Position,
        "before_last_changes",
        types=sorted(types) if types is not None else None,
        number=number,
    )
    return position or START


async def end(session: Session) -> Position:
    """A position that every finished change stands before, and no unfinished one."""
    return await session.only(Position, "log_horizon")


async def newest(session: Session) -> Position | None:
    """Of the newest change that can be seen, below the horizon or not. None: the log is empty."""
    return await session.row(Position, "last_change")


async def holder(session: Session) -> Holder | None:
    return await session.row(Holder, "horizon_holder")


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
    return await session.rows(
        Change,
        "aggregate_changes",
        aggregate_type=aggregate_type,
        aggregate_id=aggregate_id,
        after_version=after_version,
        until=until,
        limit=limit,
    )
