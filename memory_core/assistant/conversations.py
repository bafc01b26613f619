"""Conversations: an ordered list of turns each."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from memory_core.artifacts.document import refuse_unstorable
from memory_core.kernel.errors import Conflict, NotFound
from memory_core.log.change import ChangeType, of_conversation
from memory_core.log.log_writer import append as append_change
from memory_core.runtime import Runtime


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class TurnContent:
    role: str
    content: str


@dataclass(frozen=True, slots=True)
class TurnRecord:  # the answer of history_get has these fields
    turn_index: int
    role: str
    content: str
    created_at: datetime


async def append(
    runtime: Runtime, *, conversation_id: str, role: Role, content: str, turn_index: int
) -> Literal["created", "unchanged"]:
    """The same turn again is no change. A different text for an existing turn is a conflict."""
    refuse_unstorable("conversation_id", conversation_id)
    refuse_unstorable("content", content)
    async with runtime.database.transaction() as session:
        inserted = await session.run(
            "append_turn",
            conversation_id=conversation_id,
            turn_index=turn_index,
            role=role.value,
            content=content,
        )
        if inserted:
            change = of_conversation(
                ChangeType.HISTORY_APPENDED, conversation_id, turn_index=turn_index
            )
            await append_change(session, [change])
            return "created"
        kept = await session.row(
            TurnContent, "get_turn", conversation_id=conversation_id, turn_index=turn_index
        )
    if kept == TurnContent(role.value, content):
        return "unchanged"
    raise Conflict(
        f"Turn {turn_index} of conversation {conversation_id!r} is already there with another "
        "text or role; it was kept. Append with the next free turn_index (history_get shows it).",
        details={"conversation_id": conversation_id, "turn_index": turn_index},
    )


async def last_turns(
    runtime: Runtime, conversation_id: str, limit: int
) -> tuple[list[TurnRecord], int]:
    """The last turns in order, and the number of all turns."""
    async with runtime.database.session() as session:
        turns = await session.rows(
            TurnRecord, "last_turns", conversation_id=conversation_id, limit=limit
        )
        total = await session.value(int, "count_turns", conversation_id=conversation_id)
    return turns[::-1], total


async def delete(runtime: Runtime, conversation_id: str, turn_index: int | None = None) -> int:
    """Delete a conversation, or one turn of it. Returns the number of deleted turns."""
    async with runtime.database.transaction() as session:
        turns = await session.run(
            "delete_turns", conversation_id=conversation_id, turn_index=turn_index
        )
        if not turns:
            which = "conversation" if turn_index is None else f"turn {turn_index} in conversation"
            raise NotFound(
                f"There is no {which} {conversation_id!r}: nothing was deleted. history_get shows "
                "the turns.",
                details={"conversation_id": conversation_id, "turn_index": turn_index},
            )
        named = {} if turn_index is None else {"turn_index": turn_index}
        change = of_conversation(ChangeType.HISTORY_DELETED, conversation_id, **named)
        await append_change(session, [change])
    return turns
