"""Appending to the log, in the transaction that makes the change."""

from collections.abc import Sequence
from typing import Any

import orjson

from memory_core.kernel import principal
from memory_core.kernel.database import Session
from memory_core.log import origin
from memory_core.log.change import NewChange, Position
from memory_core.log.origin import ChangeOrigin


async def append(
    session: Session, changes: Sequence[NewChange], *, by: ChangeOrigin | None = None
) -> list[Position]:
    """Positions in the order of the changes. One round trip, or none for no changes.

    Append once per transaction and last, because the heads of the aggregates stay locked until the
    commit. An expected version that differs from the aggregate's own ends the transaction with
    `Conflict`: read again, and try again.
    """
    if not changes:
        return []
    by = by or origin.current()
    positions = await session.rows(
        Position,
        "append_changes",
        changes=orjson.dumps([_arguments(change) for change in changes]).decode(),
        tenant_id=by.tenant_id or principal.current().tenant_id,
        actor_id=by.actor_id,
        trace_id=by.trace_id,
        span_id=by.span_id,
        metadata=orjson.dumps(by.metadata).decode(),
    )
    session.appended = True
    return sorted(positions, key=lambda position: position.sequence_number)


def _arguments(change: NewChange) -> list[Any]:
    """The change as arguments of `log.append`."""
    return [
        change.aggregate_type.value,
        str(change.aggregate_id),
        change.event_type.value,
        change.payload,
        change.expected_version,
    ]
