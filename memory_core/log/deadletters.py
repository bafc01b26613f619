"""Dead letters: changes that a projection could not apply, kept until a person has handled them."""

import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from memory_core.kernel.database import Session
from memory_core.kernel.errors import NotFound
from memory_core.log.change import Change, Position


@dataclass(frozen=True, slots=True)
class DeadLetter:
    id: int
    projection: str
    event_data: dict[str, Any]  # the change
    error_message: str
    error_stacktrace: str | None
    retry_count: int
    first_failed_at: datetime
    last_failed_at: datetime
    status: str
    resolved_at: datetime | None
    resolved_by: str | None

    @property
    def change(self) -> Change:
        return _change(self.event_data)

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "projection": self.projection,
            "status": self.status,
            "event_type": self.change.event_type,
            "change": self.change.as_json(),
            "error_message": self.error_message,
            "error_stacktrace": self.error_stacktrace,
            "retry_count": self.retry_count,
            "first_failed_at": self.first_failed_at,
            "last_failed_at": self.last_failed_at,
            "resolved_at": self.resolved_at,
            "resolved_by": self.resolved_by,
        }


@dataclass(frozen=True, slots=True)
class ListedDeadLetter(DeadLetter):
    total: int  # number of all letters


def _change(data: dict[str, Any]) -> Change:
    read: dict[str, Any] = {name: value for name, value in data.items() if name != "position"}
    for name in ("event_id", "aggregate_id", "tenant_id"):
        read[name] = UUID(data[name]) if data[name] else None
    for name in ("timestamp", "created_at"):
        read[name] = datetime.fromisoformat(data[name]) if data[name] else None
    position = Position.parse(data["position"])
    return Change(position.transaction_id, position.sequence_number, **read)


async def put(
    session: Session, projection: str, change: Change, error: Exception, attempts: int
) -> None:
    await session.run(
        "put_dead_letter",
        projection=projection,
        event_id=change.event_id,
        event_type=change.event_type,
        event_data=Jsonb(change.as_json()),
        attempts=attempts,
        **_error_columns(error),
    )


async def take(session: Session, projection: str) -> DeadLetter | None:
    """The next letter to retry. The attempt is counted now, because the process may die during
    it."""
    return await session.row(DeadLetter, "take_dead_letter", projection=projection)


async def close(session: Session, id_: int) -> None:
    await session.run("close_dead_letter", id=id_)


async def fail(session: Session, id_: int, error: Exception) -> None:
    await session.run("fail_dead_letter", id=id_, **_error_columns(error))


async def give_back(session: Session, id_: int) -> None:
    """A dependency was away, so the attempt does not count."""
    await session.run("give_back_dead_letter", id=id_)


async def find(
    session: Session,
    *,
    projection: str | None = None,
    status: str | None = None,
    limit: int = 100,
) -> tuple[Sequence[DeadLetter], int]:
    """One page, oldest first, and the number of all."""
    letters = await session.rows(
        ListedDeadLetter, "list_dead_letters", projection=projection, status=status, limit=limit
    )
    return letters, letters[0].total if letters else 0


async def get(session: Session, id_: int) -> DeadLetter:
    letter = await session.row(DeadLetter, "get_dead_letter", id=id_)
    if letter is None:
        raise NotFound(f"There is no dead letter {id_}; `mcp-memory deadletters list` shows them.")
    return letter


async def retry(session: Session, ids: list[int] | None, *, projection: str | None, by: str) -> int:
    """Request a retry of the named letters, or of all open ones. The worker makes it."""
    return await session.run(
        "retry_dead_letters",
        ids=ids,
        projection=projection,
        by=by,
    )


async def resolve(
    session: Session, ids: list[int] | None, *, projection: str | None, by: str
) -> int:
    """Mark the named letters, or all open ones, as handled by a person."""
    return await session.run(
        "resolve_dead_letters",
        ids=ids,
        projection=projection,
        by=by,
    )


def _error_columns(error: Exception) -> dict[str, str | None]:
    stack = "".join(traceback.format_exception(error)) if error.__traceback__ else None
    # Postgres cannot store U+0000.
    return {
        "message": (str(error) or type(error).__name__).replace("\0", "\u2400"),
        "stacktrace": stack.replace("\0", "\u2400") if stack else None,
    }
