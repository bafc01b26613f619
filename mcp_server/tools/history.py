"""history_append, history_get, history_delete."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from mcp_server.tool import read_tool, write_tool
from memory_core.assistant import conversations
from memory_core.assistant.conversations import Role, TurnRecord
from memory_core.runtime import Runtime

ConversationId = Annotated[
    str, Field(min_length=1, max_length=200, description="Your own name for it.")
]


class TurnAppended(BaseModel):
    conversation_id: str
    turn_index: int
    status: Literal["created", "unchanged"]


class Turns(BaseModel):
    conversation_id: str
    turns: list[TurnRecord]
    total: int = Field(description="Of the whole conversation.")


class TurnsDeleted(BaseModel):
    conversation_id: str
    turns: int = Field(description="How many were deleted.")


async def history_append(
    runtime: Runtime,
    conversation_id: ConversationId,
    role: Role,
    content: Annotated[str, Field(min_length=1, max_length=50_000)],
    turn_index: Annotated[int, Field(ge=0, le=2_000_000_000, description="0, 1, 2 …")],
) -> TurnAppended:
    """Append one turn to a conversation. The same turn again changes nothing; with another
    text it is a CONFLICT and the first is kept. For a finished chat log use
    artifact_ingest. Example: history_append(conversation_id="c1", role="user",
    content="Hello", turn_index=0)
    """
    await runtime.open()
    status = await conversations.append(
        runtime,
        conversation_id=conversation_id,
        role=role,
        content=content,
        turn_index=turn_index,
    )
    return TurnAppended(conversation_id=conversation_id, turn_index=turn_index, status=status)


async def history_get(
    runtime: Runtime,
    conversation_id: ConversationId,
    limit: Annotated[int, Field(ge=1, le=50)] = 16,
) -> Turns:
    """The last turns of a conversation, in order: to pick it up where it was left. Example:
    history_get(conversation_id="c1")
    """
    await runtime.open()
    turns, total = await conversations.last_turns(runtime, conversation_id, limit)
    return Turns(conversation_id=conversation_id, turns=turns, total=total)


async def history_delete(
    runtime: Runtime,
    conversation_id: ConversationId,
    turn_index: Annotated[
        int | None, Field(ge=0, le=2_000_000_000, description="One turn; without it the whole.")
    ] = None,
) -> TurnsDeleted:
    """Delete a conversation, or one turn of it, for good. Memories stored from it stay: see
    memory_delete. Example: history_delete(conversation_id="c1")
    """
    await runtime.open()
    turns = await conversations.delete(runtime, conversation_id, turn_index)
    return TurnsDeleted(conversation_id=conversation_id, turns=turns)


TOOLS = (
    write_tool("Append a turn", history_append),
    read_tool("Get the last turns", history_get),
    write_tool("Delete a conversation", history_delete, destructive=True),
)
