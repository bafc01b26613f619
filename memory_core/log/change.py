"""A change: one row of the log, which says what happened to the memory itself."""

import re
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Self
from uuid import UUID, uuid5

from memory_core.kernel import ids
from memory_core.kernel.times import utc_text

# The namespace of all aggregate ids that are made from names.
_NAMESPACE = UUID("8d2b7f0e-3b1c-5f67-9a55-1f0c9f3f6c11")


# Only as many digits as always fit into the types of Postgres.
_POSITION = re.compile(r"([0-9]{1,19}):([0-9]{1,18})")


class AggregateType(StrEnum):
    ARTIFACT = "artifact"
    MEMORY = "memory"
    CONVERSATION = "conversation"
    BACKFILL = "backfill"
    TENANT = "tenant"
    KEY = "key"


class ChangeType(StrEnum):
    ARTIFACT_CREATED = "artifact.created"
    ARTIFACT_REVISED = "artifact.revised"
    ARTIFACT_RESTORED = "artifact.restored"
    ARTIFACT_RELABELLED = "artifact.relabelled"
    ARTIFACT_REPAIRED = "artifact.repaired"
    ARTIFACT_DELETED = "artifact.deleted"
    ARTIFACT_EXPIRED = "artifact.expired"
    EVENTS_REPLACED = "events.replaced"
    MEMORY_STORED = "memory.stored"
    MEMORY_DELETED = "memory.deleted"
    HISTORY_APPENDED = "history.appended"
    HISTORY_DELETED = "history.deleted"
    JOB_REQUESTED = "job.requested"
    BACKFILL_STARTED = "backfill.started"
    BACKFILL_PAUSED = "backfill.paused"
    BACKFILL_RESUMED = "backfill.resumed"
    BACKFILL_CANCELLED = "backfill.cancelled"
    BACKFILL_FINISHED = "backfill.finished"
    TENANT_CREATED = "tenant.created"
    TENANT_SUSPENDED = "tenant.suspended"
    TENANT_RESUMED = "tenant.resumed"
    TENANT_DELETED = "tenant.deleted"
    KEY_CREATED = "key.created"
    KEY_REVOKED = "key.revoked"


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """Where a change stands. Changes are read in this order, which is also the order of every
    aggregate's versions. The greatest position in a transaction need not belong to its last
    change."""

    transaction_id: int
    sequence_number: int

    def __str__(self) -> str:
        return f"{self.transaction_id}:{self.sequence_number}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError for any text that is not a `str(position)`."""
        if (match := _POSITION.fullmatch(text)) is None:
            raise ValueError("a position is two numbers, such as 750:12")
        return cls(int(match[1]), int(match[2]))


START = Position(0, 0)


@dataclass(frozen=True, slots=True)
class NewChange:
    """A change to append. `expected_version`: the version that the aggregate must have now (0: none
    yet); None accepts any version."""

    aggregate_type: AggregateType
    aggregate_id: UUID
    event_type: ChangeType
    payload: dict[str, Any]
    expected_version: int | None = None


@dataclass(frozen=True, slots=True)
class Change:
    transaction_id: int
    sequence_number: int
    event_id: UUID
    aggregate_type: str
    aggregate_id: UUID
    event_type: str
    version: int
    timestamp: datetime
    payload: dict[str, Any]
    tenant_id: UUID | None = None
    actor_id: str | None = None
    trace_id: str | None = None
    span_id: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    created_at: datetime | None = None
    audience_id: int = 1  # the audience that may see it

    @property
    def position(self) -> Position:
        return Position(self.transaction_id, self.sequence_number)

    def as_json(self) -> dict[str, Any]:
        """The position is text, because its numbers may be larger than JSON readers can
        represent."""
        return {
            "position": str(self.position),
            **{name: _plain(getattr(self, name)) for name in _SHOWN},
        }


_SHOWN = tuple(
    name
    for name in Change.__dataclass_fields__
    if name not in {"transaction_id", "sequence_number", "audience_id"}
)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return utc_text(value)
    return str(value) if isinstance(value, UUID) else value


def aggregate_id(kind: AggregateType, name: str) -> UUID:
    """The aggregate of an artifact uid, a memory id, a conversation id or a backfill id."""
    return uuid5(_NAMESPACE, f"{kind.value}:{name}")


def of_artifact(
    event_type: ChangeType,
    artifact_uid: str,
    *,
    expected_version: int | None = None,
    **payload: Any,
) -> NewChange:
    kind = AggregateType.ARTIFACT
    return NewChange(
        aggregate_type=kind,
        aggregate_id=aggregate_id(kind, artifact_uid),
        event_type=event_type,
        payload={"artifact_uid": artifact_uid, **payload},
        expected_version=expected_version,
    )


def of_memory(event_type: ChangeType, memory_id: str) -> NewChange:
    kind = AggregateType.MEMORY
    return NewChange(
        kind, aggregate_id(kind, memory_id), event_type, payload={"memory_id": memory_id}
    )


def of_conversation(event_type: ChangeType, conversation_id: str, **payload: Any) -> NewChange:
    """A conversation's author chooses its id, which may be confidential, so the log has only its
    hash."""
    kind = AggregateType.CONVERSATION
    id_ = aggregate_id(kind, f"{ids.owner_prefix()}{conversation_id}")
    return NewChange(kind, id_, event_type, payload={"conversation": str(id_), **payload})


def of_backfill(event_type: ChangeType, backfill_id: UUID, **payload: Any) -> NewChange:
    return NewChange(
        AggregateType.BACKFILL,
        backfill_id,
        event_type,
        payload={"backfill_id": str(backfill_id), **payload},
    )


def of_tenant(event_type: ChangeType, tenant_id: UUID) -> NewChange:
    """The log has the tenant's id, not its name: the name says whose memory it is."""
    payload = {"tenant_id": str(tenant_id)}
    return NewChange(AggregateType.TENANT, tenant_id, event_type, payload=payload)


def of_key(event_type: ChangeType, prefix: str) -> NewChange:
    """Without the user: only the operator may know who has a key."""
    kind = AggregateType.KEY
    return NewChange(kind, aggregate_id(kind, prefix), event_type, payload={"prefix": prefix})
