"""A stored event, and the quotes that prove it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Event:
    event_id: UUID
    artifact_uid: str
    revision_id: str
    category: str
    event_time: datetime | None
    # For a promise, with the words that state it; None if it has no date.
    due_time: datetime | None
    due_quote: str | None
    due_start_char: int | None
    due_end_char: int | None
    narrative: str
    subject_json: dict[str, Any]
    actors_json: list[dict[str, Any]]
    confidence: float
    title: str | None  # of its document


@dataclass(frozen=True, slots=True)
class EventWithEvidence(Event):
    evidence: list[dict[str, Any]]  # as `StoredEvidence`, without the event


@dataclass(frozen=True, slots=True)
class StoredEvidence:
    event_id: UUID
    quote: str
    start_char: int
    end_char: int
    chunk_id: str | None
    match_kind: str
