"""Converting records of version 2. A record that is ambiguous is refused, never guessed."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TypeVar

from memory_core.artifacts.document import (
    ArtifactType,
    Document,
    RetentionPolicy,
    Sensitivity,
    VisibilityScope,
)
from memory_core.assistant.conversations import Role
from memory_core.assistant.memories import MemoryType
from memory_core.importing.item import Unusable
from memory_core.importing.v2.v2_chroma import Record
from memory_core.kernel.errors import InvalidInput
from memory_core.kernel.times import as_utc, parse_time

Choice = TypeVar("Choice", bound=StrEnum)

# Used where version 2 has no value.
_SOURCE_SYSTEM = "memory-v2"
_CONFIDENCE = 1.0
# The names that different builds of version 2 used.
_TIMES = ("ts", "source_ts", "timestamp", "created_at", "ingested_at")
_CREATED = ("created_at", "ts", "timestamp")
_KEPT = {
    *("artifact_type", "type", "source_system", "source_id", "source_url", "title", "author"),
    *("participants", "sensitivity", "visibility_scope", "retention_policy", *_TIMES),
    # These are computed from the content.
    *("artifact_id", "content_hash", "is_chunked", "num_chunks", "chunk_count", "token_count"),
    *("chunk_index", "start_char", "end_char", "chunk_id", "artifact_uid", "revision_id"),
    *("confidence", "conversation_id", "role", "turn_index"),
}


@dataclass(frozen=True, slots=True)
class V2Memory:
    content: str
    type: MemoryType
    confidence: float
    conversation_id: str | None
    created_at: datetime | None


@dataclass(frozen=True, slots=True)
class V2Turn:
    conversation_id: str
    turn_index: int
    role: Role
    content: str
    created_at: datetime | None


def memory(record: Record) -> V2Memory:
    labels = record.metadata
    confidence = labels.get("confidence", _CONFIDENCE)
    if not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
        raise Unusable(f"its confidence {confidence!r} is no number from 0 to 1")
    return V2Memory(
        content=_content(record),
        type=_choice(MemoryType, labels.get("type")) or MemoryType.FACT,
        confidence=float(confidence),
        conversation_id=_text(labels.get("conversation_id")),
        created_at=_time(labels, _CREATED),
    )


def turn(record: Record) -> V2Turn:
    labels = record.metadata
    conversation, index = _text(labels.get("conversation_id")), labels.get("turn_index")
    if conversation is None:
        raise Unusable("it does not say which conversation it belongs to")
    if not isinstance(index, int | float) or index != int(index) or index < 0:
        raise Unusable(f"its turn_index {index!r} is no place in a conversation")
    role = _choice(Role, labels.get("role"))
    if role is None:
        raise Unusable("it does not say who spoke (role)")
    return V2Turn(conversation, int(index), role, _content(record), _time(labels, _CREATED))


def document(record: Record, chunks: Iterable[Record]) -> Document:
    """`chunks`: the chunks of a document that was stored in pieces. Its own entry has only a part
    of the text."""
    labels = record.metadata
    pieces = list(chunks)
    expected = labels.get("num_chunks", labels.get("chunk_count"))
    if isinstance(expected, int | float) and expected > 1 and len(pieces) != expected:
        raise Unusable(f"{len(pieces)} of its {expected:.0f} chunks are there")
    if labels.get("is_chunked") is True and not pieces:
        raise Unusable("it was stored in chunks, and none of them is there")
    artifact_type = _text(labels.get("artifact_type")) or _text(labels.get("type"))
    try:
        return Document(
            artifact_type=_choice(ArtifactType, artifact_type) or ArtifactType.DOC,
            source_system=_text(labels.get("source_system")) or _SOURCE_SYSTEM,
            content=joined(pieces) if pieces else _content(record),
            # Without a stable id, each import would create another document.
            source_id=_text(labels.get("source_id")) or record.id,
            source_url=_text(labels.get("source_url")),
            title=_text(labels.get("title")),
            author=_text(labels.get("author")),
            participants=_participants(labels.get("participants")),
            ts=_time(labels, _TIMES),
            sensitivity=_choice(Sensitivity, labels.get("sensitivity")),
            visibility_scope=_choice(VisibilityScope, labels.get("visibility_scope")),
            retention_policy=_choice(RetentionPolicy, labels.get("retention_policy")),
        )
    except InvalidInput as error:
        raise Unusable(error.message) from error


def joined(chunks: Iterable[Record]) -> str:
    """The text that the chunks were cut from, by their offsets; overlapping parts must agree."""
    text = ""
    for start, chunk in sorted(((_start(chunk), chunk) for chunk in chunks), key=lambda p: p[0]):
        if start > len(text):
            raise Unusable(f"the text from character {len(text)} to {start} is in no chunk")
        shared = text[start : start + len(chunk.text)]
        if shared != chunk.text[: len(shared)]:
            raise Unusable(f"{chunk.id} does not agree with the chunk before it")
        text += chunk.text[len(shared) :]
    return text


def unknown_labels(record: Record) -> set[str]:
    """Names of metadata that this version cannot store."""
    return set(record.metadata) - _KEPT


def _start(chunk: Record) -> int:
    start, end = chunk.metadata.get("start_char"), chunk.metadata.get("end_char")
    if not isinstance(start, int | float) or not isinstance(end, int | float):
        raise Unusable(f"{chunk.id} does not say where in the text it stands")
    if end - start != len(chunk.text) or start < 0:
        raise Unusable(
            f"{chunk.id} has {len(chunk.text)} characters, its offsets {end - start:.0f}"
        )
    return int(start)


def _content(record: Record) -> str:
    if not record.text.strip():
        raise Unusable("it has no text")
    return record.text


def _text(value: Any) -> str | None:
    """Chroma has no null: blanks, and the text "None", stood for it."""
    text = str(value).strip() if value is not None else ""
    return None if text in ("", "None", "null") else text


def _choice(choices: type[Choice], value: Any) -> Choice | None:
    text = (_text(value) or "").lower()
    return next((choice for choice in choices if choice.value == text), None)


def _participants(value: Any) -> tuple[str, ...]:
    """A list, a list as JSON, or names separated by commas: Chroma used to accept no lists."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = value.split(",")
    if not isinstance(value, list):
        return ()
    return tuple(dict.fromkeys(name for one in value if (name := _text(one))))


def _time(labels: dict[str, Any], names: Iterable[str]) -> datetime | None:
    """ISO 8601, or seconds since 1970. Any other value is dropped."""
    for name in names:
        value = labels.get(name)
        try:
            if isinstance(value, int | float) and not isinstance(value, bool):
                return as_utc(datetime.fromtimestamp(value, UTC))
            if time := parse_time(name, _text(value)):
                return time
        except (InvalidInput, ValueError, OverflowError, OSError):
            continue
    return None
