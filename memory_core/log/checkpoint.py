"""How far a projection is, and what it is doing: one row that its leader writes."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Self

from memory_core.kernel.database import Row, Session
from memory_core.kernel.errors import MemoryFault, NotFound
from memory_core.log.change import START, Change, Position

Status = Literal["running", "paused", "rebuilding"]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    name: str
    position: Position
    status: Status
    processed: int
    leader: str | None
    heartbeat_at: datetime | None
    last_processed_at: datetime | None
    batch_size: int | None  # of a batch that was begun and not finished
    attempts: int  # at the next change alone
    fault: str | None
    fault_code: str | None
    fault_since: datetime | None

    @classmethod
    def of(cls, row: Row) -> Self:
        return cls(
            name=row["projection_name"],
            position=Position.of(row),
            status=row["status"],
            processed=row["events_processed"],
            leader=row["leader"],
            heartbeat_at=row["heartbeat_at"],
            last_processed_at=row["last_processed_at"],
            batch_size=row["batch_size"],
            attempts=row["attempts"],
            fault=row["fault"],
            fault_code=row["fault_code"],
            fault_since=row["fault_since"],
        )

    @classmethod
    def without_one(cls, name: str) -> Self:
        """Of what is derived from the log and keeps no position in it."""
        return cls(name, START, "running", 0, None, None, None, None, 0, None, None, None)


async def load(session: Session, name: str) -> Checkpoint | None:
    row = await session.one("get_checkpoint", name=name)
    return Checkpoint.of(row) if row is not None else None


async def load_all(session: Session) -> list[Checkpoint]:
    return [Checkpoint.of(row) for row in await session.all("list_checkpoints")]


async def lead(session: Session, name: str, leader: str) -> Checkpoint:
    """Become the leader. A projection that is new here starts at the end of the log: what came
    before it is rebuilt from Postgres."""
    row = await session.one("lead_projection", name=name, leader=leader)
    assert row is not None
    return Checkpoint.of(row)


async def begin(session: Session, name: str, leader: str, size: int) -> Checkpoint | None:
    """Say what is tried before it is tried. None: another process leads now."""
    row = await session.one("begin_batch", name=name, leader=leader, size=size)
    return Checkpoint.of(row) if row is not None else None


async def advance(session: Session, name: str, leader: str, past: Change, changes: int) -> bool:
    """False: another process leads now, and nothing may be kept of this transaction."""
    moved = await session.run(
        "advance_projection",
        name=name,
        leader=leader,
        event_id=past.event_id,
        event_type=past.event_type,
        transaction_id=str(past.position.transaction_id),
        sequence_number=past.position.sequence_number,
        changes=changes,
    )
    return bool(moved)


async def wait_for(session: Session, name: str, leader: str, fault: MemoryFault) -> None:
    """Something else is away: the attempt does not count."""
    await session.run(
        "projection_waits", name=name, leader=leader, fault=fault.message, code=fault.code.value
    )


async def beat(session: Session, name: str, leader: str) -> Checkpoint | None:
    row = await session.one("beat_projection", name=name, leader=leader)
    return Checkpoint.of(row) if row is not None else None


async def set_status(session: Session, name: str, status: Status) -> Checkpoint:
    row = await session.one("set_projection_status", name=name, status=status)
    if row is None:
        known = ", ".join(checkpoint.name for checkpoint in await load_all(session)) or "none yet"
        raise NotFound(f"There is no projection {name!r}. There are: {known}.")
    return Checkpoint.of(row)


async def is_through(session: Session, point: Checkpoint) -> bool:
    """Whether it has been rebuilt and no change stands after it, readable or not yet."""
    if point.status == "rebuilding":
        return False
    row = await waiting(session, point.position)
    return not row["waits"]


async def waiting(session: Session, after: Position) -> Row:
    """Whether a change `waits` after a position, and whether one of them is `readable`."""
    row = await session.one(
        "change_waits",
        transaction_id=str(after.transaction_id),
        sequence_number=after.sequence_number,
    )
    assert row is not None
    return row
