"""A projection's checkpoint: its position and its state, in one row that its leader writes."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Self

from memory_core.kernel.database import Session
from memory_core.kernel.errors import MemoryFault, NotFound
from memory_core.log.change import START, Change, Position
from memory_core.log.log_reader import changes_after

Status = Literal["running", "paused", "rebuilding"]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    name: str
    transaction_id: int
    sequence_number: int
    status: Status
    processed: int
    leader: str | None
    last_processed_at: datetime | None
    batch_size: int | None  # size of an unfinished batch
    attempts: int  # at the next change alone
    fault: str | None
    fault_code: str | None

    @property
    def position(self) -> Position:
        return Position(self.transaction_id, self.sequence_number)

    @classmethod
    def at(cls, name: str, position: Position = START) -> Self:
        """A checkpoint for a reader of the log that stores none in Postgres."""
        return cls(
            name=name,
            transaction_id=position.transaction_id,
            sequence_number=position.sequence_number,
            status="running",
            processed=0,
            leader=None,
            last_processed_at=None,
            batch_size=None,
            attempts=0,
            fault=None,
            fault_code=None,
        )


async def load(session: Session, name: str) -> Checkpoint | None:
    return await session.row(Checkpoint, "get_checkpoint", name=name)


async def load_all(session: Session) -> list[Checkpoint]:
    return await session.rows(Checkpoint, "list_checkpoints")


async def lead(session: Session, name: str, leader: str) -> Checkpoint:
    """Become the leader. A new projection starts at the end of the log: what came before is rebuilt
    from Postgres."""
    return await session.only(Checkpoint, "lead_projection", name=name, leader=leader)


async def begin(session: Session, name: str, leader: str, size: int) -> Checkpoint | None:
    """Record the batch before it is tried. None: another process leads now."""
    return await session.row(Checkpoint, "begin_batch", name=name, leader=leader, size=size)


async def advance(session: Session, name: str, leader: str, past: Change, changes: int) -> bool:
    """False: another process leads now, and this transaction must not commit."""
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
    """A dependency is away, so the attempt does not count."""
    await session.run(
        "projection_waits", name=name, leader=leader, fault=fault.message, code=fault.code.value
    )


async def beat(session: Session, name: str, leader: str) -> Checkpoint | None:
    return await session.row(Checkpoint, "beat_projection", name=name, leader=leader)


async def set_status(session: Session, name: str, status: Status) -> Checkpoint:
    point = await session.row(Checkpoint, "set_projection_status", name=name, status=status)
    if point is None:
        names = ", ".join(checkpoint.name for checkpoint in await load_all(session)) or "none yet"
        raise NotFound(f"There is no projection {name!r}. There are: {names}.")
    return point


async def ask_for_rebuild(session: Session, name: str) -> None:
    """A projection that has never been led is rebuilt when it is."""
    await session.run("set_projection_status", name=name, status="rebuilding")


async def is_through(session: Session, point: Checkpoint) -> bool:
    """Whether it has been rebuilt and no change follows its position, readable or not."""
    if point.status == "rebuilding":
        return False
    return not (await changes_after(session, point.position)).waits
