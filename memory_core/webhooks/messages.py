"""A message: what a change says, assembled when it is sent.

Nothing of it is kept between attempts but ids: what was deleted meanwhile is not sent.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self
from uuid import UUID, uuid4

import orjson

from memory_core import __version__
from memory_core.kernel.database import Row, Session
from memory_core.log.change import ChangeType
from memory_core.webhooks.subscriptions import Subscription

TEST = "webhook.test"
_DELETIONS = (
    *(ChangeType.ARTIFACT_DELETED, ChangeType.ARTIFACT_EXPIRED),
    *(ChangeType.MEMORY_DELETED, ChangeType.HISTORY_DELETED),
)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A row of the outbox that is ours to send."""

    id: UUID
    event_id: UUID
    event_type: str
    aggregate_type: str
    aggregate_id: UUID
    version: int
    timestamp: str
    payload: dict[str, Any]
    item_id: UUID | None
    attempts: int  # this one included
    tried_for: float  # seconds since the first attempt
    made_at: datetime
    subscription: Subscription

    @classmethod
    def of(cls, row: Row) -> Self:
        names = (
            *("id", "event_id", "event_type", "aggregate_type", "aggregate_id", "item_id"),
            *("attempts", "tried_for", "made_at"),
        )
        return cls(
            subscription=Subscription.of(row),
            version=row["event_data"]["version"],
            timestamp=row["event_data"]["timestamp"],
            payload=row["event_data"]["payload"],
            **{name: row[name] for name in names},
        )


@dataclass(frozen=True, slots=True)
class Message:
    id: str
    body: bytes

    def headers(self, subscription: Subscription) -> dict[str, str]:
        """Signed now: a receiver refuses what is older than a few minutes."""
        from standardwebhooks import Webhook

        now, text = datetime.now(UTC), self.body.decode()
        signatures = [Webhook(secret).sign(self.id, now, text) for secret in subscription.secrets]
        return {
            "content-type": "application/json",
            "user-agent": f"mcp-memory/{__version__}",
            "webhook-id": self.id,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": " ".join(signatures),
        }


async def assemble(session: Session, waiting: Waiting) -> Message | None:
    """None: what it is about is gone."""
    if waiting.event_type not in _DELETIONS and await _is_gone(session, waiting):
        return None
    data = dict(waiting.payload)
    if waiting.item_id is not None:
        row = await session.one("webhook_event", id=waiting.item_id)
        if row is None:
            return None
        data["category"] = row["category"]
        if waiting.subscription.include_content:
            data |= _event(row)
    elif waiting.subscription.include_content:
        data |= await _content(session, waiting.payload)
    return _message(
        waiting.id,
        waiting.event_type,
        waiting.timestamp,
        {"change_id": str(waiting.event_id), **data},
    )


def test_message(subscription: Subscription) -> Message:
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    return _message(uuid4(), TEST, now, {"subscription_id": str(subscription.id)})


def _message(id_: UUID, kind: str, timestamp: str, data: dict[str, Any]) -> Message:
    body = {"type": kind, "timestamp": timestamp, "data": data}
    return Message(id=f"msg_{id_.hex}", body=orjson.dumps(body))


async def _is_gone(session: Session, waiting: Waiting) -> bool:
    row = await session.one(
        "is_deleted_since",
        aggregate_id=waiting.aggregate_id,
        aggregate_type=waiting.aggregate_type,
        version=waiting.version,
        deletions=[kind.value for kind in _DELETIONS],
    )
    return row is None or bool(row["gone"])


def _event(row: Row) -> dict[str, Any]:
    when = row["event_time"]
    return {
        "narrative": row["narrative"],
        "event_time": when.astimezone(UTC).isoformat().replace("+00:00", "Z") if when else None,
        "subject": row["subject_json"],
        "actors": row["actors_json"],
        "confidence": row["confidence"],
        "title": row["title"],
        "evidence": row["evidence"] or [],
    }


async def _content(session: Session, payload: dict[str, Any]) -> dict[str, Any]:
    """What a person would want to read of it: a document's title, a memory's words."""
    row: Row | None = None
    if "revision_id" in payload:
        row = await session.one(
            "webhook_document",
            artifact_uid=payload["artifact_uid"],
            revision_id=payload["revision_id"],
        )
    elif "memory_id" in payload:
        row = await session.one("webhook_memory", memory_id=payload["memory_id"])
    return dict(row) if row is not None else {}
