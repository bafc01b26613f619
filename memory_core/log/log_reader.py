"""Reading the log in order, without gaps.

A transaction that began earlier may commit later, so its changes may have lower numbers than
changes that are already visible. Therefore a reader takes only changes below the horizon, the
oldest open transaction of the cluster: no change can appear before those that it has read. This
needs only that a change never has a lower transaction id than its own transaction.
"""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from memory_core.kernel.database import Database, Session
from memory_core.log.change import START, Change, Position

# How long to wait between two looks at changes above the horizon.
_FIRST_SECONDS = 0.01
_LAST_SECONDS = 0.25


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


@dataclass(frozen=True, slots=True)
class ChangesAfter:
    """What follows a position in the log."""

    waits: bool  # at least one change
    readable: bool  # at least one change below the horizon


async def changes_after(session: Session, after: Position) -> ChangesAfter:
    return await session.only(
        ChangesAfter,
        "change_waits",
        transaction_id=str(after.transaction_id),
        sequence_number=after.sequence_number,
    )


async def until_readable(
    database: Database, after: Position, *, unless: Callable[[], bool] = lambda: False
) -> bool:
    """Wait while changes after a position are committed, but above the horizon: no notification
    says when it moves. True when one can be read; False if there is none, or by `unless`."""
    pause = _FIRST_SECONDS
    while not unless():
        async with database.session() as session:
            following = await changes_after(session, after)
        if following.readable or not following.waits:
            return following.readable
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, _LAST_SECONDS)
    return False


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
) -> list[Change]:
    """The changes of one aggregate in the order of their versions."""
    return await session.rows(
        Change,
        "aggregate_changes",
        aggregate_type=aggregate_type,
        aggregate_id=aggregate_id,
        after_version=after_version,
        until=until,
    )
