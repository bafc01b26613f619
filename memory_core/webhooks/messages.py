"""Webhook messages: the description of a change, built when it is sent.

Only ids are kept between attempts, so that deleted content is never sent.
"""

from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import orjson

from memory_core import __version__
from memory_core.kernel.database import Session
from memory_core.kernel.times import utc_text
from memory_core.log.change import ChangeType
from memory_core.webhooks.subscriptions import Subscription

TEST = "webhook.test"
_DELETIONS = (
    *(ChangeType.ARTIFACT_DELETED, ChangeType.ARTIFACT_EXPIRED),
    *(ChangeType.MEMORY_DELETED, ChangeType.HISTORY_DELETED),
)


@dataclass(frozen=True, slots=True)
class OutboxMessage:
    """A message that this process has claimed, with its receiver."""

    id: UUID
    event_id: UUID
    event_type: str
    aggregate_type: str
    aggregate_id: UUID
    version: int
    timestamp: str
    payload: dict[str, Any]
    item_id: UUID | None
    attempts: int  # including this one
    tried_for: float  # seconds since the first attempt
    made_at: datetime
    subscription_id: UUID
    url: str
    include_content: bool
    failures: int  # consecutive failures of the receiver
    secret: str = field(repr=False)
    previous_secret: str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class EventContent:
    category: str
    event_time: datetime | None
    due_time: datetime | None
    narrative: str
    subject_json: dict[str, Any]
    actors_json: list[dict[str, Any]]
    confidence: float
    title: str | None
    evidence: list[dict[str, Any]] | None


@dataclass(frozen=True, slots=True)
class DocumentContent:
    title: str | None
    artifact_type: str


@dataclass(frozen=True, slots=True)
class MemoryContent:
    type: str
    content: str


@dataclass(frozen=True, slots=True)
class WebhookMessage:
    id: str
    body: bytes

    def headers(self, secret: str, previous_secret: str | None) -> dict[str, str]:
        """Signed at this moment, because a receiver refuses signatures older than a few minutes."""
        from standardwebhooks import Webhook

        now, text = datetime.now(UTC), self.body.decode()
        signatures = [
            Webhook(one).sign(self.id, now, text) for one in (secret, previous_secret) if one
        ]
        return {
            "content-type": "application/json",
            "user-agent": f"mcp-memory/{__version__}",
            "webhook-id": self.id,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": " ".join(signatures),
        }


async def assemble(session: Session, waiting: OutboxMessage) -> WebhookMessage | None:
    """The message; None if its subject is gone or the subscriber may no longer see it."""
    if waiting.event_type not in _DELETIONS and await _is_gone(session, waiting):
        return None
    data = dict(waiting.payload)
    if waiting.item_id is not None:
        event = await session.row(EventContent, "webhook_event", id=waiting.item_id)
        if event is None:
            return None
        data["category"] = event.category
        if waiting.include_content:
            data |= _event(event)
    elif waiting.include_content:
        data |= await _content(session, waiting.payload)
    return _message(
        waiting.id,
        waiting.event_type,
        waiting.timestamp,
        {"change_id": str(waiting.event_id), **data},
    )


def test_message(subscription: Subscription) -> WebhookMessage:
    now = datetime.now(UTC)
    return _message(uuid4(), TEST, utc_text(now), {"subscription_id": str(subscription.id)})


def _message(id_: UUID, kind: str, timestamp: str, data: dict[str, Any]) -> WebhookMessage:
    body = {"type": kind, "timestamp": timestamp, "data": data}
    return WebhookMessage(id=f"msg_{id_.hex}", body=orjson.dumps(body))


async def _is_gone(session: Session, waiting: OutboxMessage) -> bool:
    return await session.value(
        bool,
        "is_deleted_since",
        aggregate_id=waiting.aggregate_id,
        aggregate_type=waiting.aggregate_type,
        version=waiting.version,
        deletions=[kind.value for kind in _DELETIONS],
        subscription_id=waiting.subscription_id,
        artifact_uid=waiting.payload.get("artifact_uid"),
    )


def _event(event: EventContent) -> dict[str, Any]:
    return {
        "narrative": event.narrative,
        "event_time": utc_text(event.event_time) if event.event_time else None,
        "due_time": utc_text(event.due_time) if event.due_time else None,
        "subject": event.subject_json,
        "actors": event.actors_json,
        "confidence": event.confidence,
        "title": event.title,
        "evidence": event.evidence or [],
    }


async def _content(session: Session, payload: dict[str, Any]) -> dict[str, Any]:
    """The content that a person would want to read: a document's title, a memory's words."""
    content: DocumentContent | MemoryContent | None = None
    if "revision_id" in payload:
        content = await session.row(
            DocumentContent,
            "webhook_document",
            artifact_uid=payload["artifact_uid"],
            revision_id=payload["revision_id"],
        )
    elif "memory_id" in payload:
        content = await session.row(MemoryContent, "webhook_memory", memory_id=payload["memory_id"])
    return asdict(content) if content is not None else {}
