"""Reading the log in order, without gaps.

A transaction that began earlier may commit later, so its changes may have lower numbers than
changes that are already visible. Therefore a reader takes only changes below the horizon, the
oldest open transaction of the cluster: no change can appear before those that it has read. This
needs only that a change never has a lower transaction id than its own transaction.
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
    """The position before the last `number` readable changes."""
    position = await session.row(
        Position,
        "before_last_changes",
        types=sorted(types) if types is not None else None,
        number=number,
    )
    return position or START


async def end(session: Session) -> Position:
    """A position after every finished change and before every unfinished one."""
    return await session.only(Position, "log_horizon")


async def newest(session: Session) -> Position | None:
    """The position of the newest visible change, below the horizon or not. None: the log is
    empty."""
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
    """The changes of one aggregate in the order of their versions."""
    return await session.rows(
        Change,
        "aggregate_changes",
        aggregate_type=aggregate_type,
        aggregate_id=aggregate_id,
        after_version=after_version,
        until=until,
        limit=limit,
    )
