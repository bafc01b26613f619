"""The state of an aggregate, folded from its changes; snapshots keep the folding short."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from memory_core.kernel.database import Session
from memory_core.kernel.errors import NotFound
from memory_core.kernel.times import utc_text
from memory_core.log.change import Change
from memory_core.log.log_reader import of_aggregate

# The number of changes after which a snapshot is made.
SNAPSHOT_EVERY = 100
_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class State:
    aggregate_type: str
    aggregate_id: UUID
    version: int
    at: datetime  # time of its last change
    data: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        return {
            "aggregate_type": self.aggregate_type,
            "aggregate_id": str(self.aggregate_id),
            "version": self.version,
            "at": utc_text(self.at),
            "state": self.data,
        }


@dataclass(frozen=True, slots=True)
class Snapshot:
    version: int
    state_at: datetime
    state_data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class AggregateKey:
    aggregate_type: str
    aggregate_id: UUID


def fold(data: dict[str, Any], change: Change) -> dict[str, Any]:
    """The state after a change. Pure: the same changes always give the same state."""
    kind, _, what = change.event_type.partition(".")
    new = {**data, "last_change": change.event_type}
    if kind == "artifact":
        return _fold_artifact(new, what, change)
    if kind == "events":
        return _fold_events(new, change)
    if kind == "job":
        return {**new, "extractions_requested": data.get("extractions_requested", 0) + 1}
    if kind == "history":
        return _fold_history(new, what, change)
    if kind == "backfill":
        return {**new, **change.payload, "status": what}
    if kind == "tenant":
        status = what if what in {"suspended", "deleted"} else "active"
        return {**new, **change.payload, "status": status}
    if kind == "key":
        return {**new, **change.payload, "status": "revoked" if what == "revoked" else "in force"}
    return {**new, **change.payload, "exists": what != "deleted"}


def _fold_history(data: dict[str, Any], what: str, change: Change) -> dict[str, Any]:
    """One turn was appended or deleted, or the whole conversation was deleted."""
    turn = change.payload.get("turn_index")
    turns = set() if turn is None else {*data.get("turns", []), turn}
    if what == "deleted":
        turns -= {turn}
    if not turns:
        return {"conversation": change.payload["conversation"], "exists": False, **_last(data)}
    return {**data, **change.payload, "exists": True, "turns": sorted(turns)}


def _fold_artifact(data: dict[str, Any], what: str, change: Change) -> dict[str, Any]:
    uid = change.payload["artifact_uid"]
    if what in {"deleted", "expired"}:
        return {"artifact_uid": uid, "exists": False, **_last(data)}
    revision = change.payload.get("revision_id")
    revisions = data.get("revisions", [])
    new = {**data, "artifact_uid": uid, "exists": True}
    if revision is None:
        return new
    if revision not in revisions:
        revisions = [*revisions, revision]
    return {**new, "latest_revision": revision, "revisions": revisions}


def _fold_events(data: dict[str, Any], change: Change) -> dict[str, Any]:
    payload = change.payload
    events = {**data.get("events", {})}
    events[payload["revision_id"]] = sorted({*payload["added"], *payload["kept"]})
    return {**data, "artifact_uid": payload["artifact_uid"], "events": events}


def _last(data: dict[str, Any]) -> dict[str, Any]:
    return {"last_change": data["last_change"]}


async def state_of(
    session: Session, aggregate_type: str, aggregate_id: UUID, *, at: datetime | None = None
) -> State:
    """The state now, or at a moment, computed from the nearest earlier snapshot."""
    nearest = await session.row(
        Snapshot,
        "nearest_snapshot",
        aggregate_type=aggregate_type,
        aggregate_id=aggregate_id,
        at=at,
    )
    version, when = (nearest.version, nearest.state_at) if nearest else (0, None)
    data = nearest.state_data if nearest else {}
    for change in await of_aggregate(
        session, aggregate_type, aggregate_id, after_version=version, until=at
    ):
        data = fold(data, change)
        version, when = change.version, change.timestamp
    if when is None:
        moment = f" at {at.isoformat()}" if at else ""
        raise NotFound(
            f"The log knows nothing of {aggregate_type} {aggregate_id}{moment}. What was stored "
            "before the log began has no changes in it."
        )
    return State(aggregate_type, aggregate_id, version, when, data)


async def snapshot(session: Session, aggregate_type: str, aggregate_id: UUID) -> None:
    state = await state_of(session, aggregate_type, aggregate_id)
    await session.run(
        "keep_snapshot",
        aggregate_type=aggregate_type,
        aggregate_id=aggregate_id,
        version=state.version,
        state=Jsonb(state.data),
        state_at=state.at,
    )


async def keep_snapshots(session: Session) -> int:
    """Make snapshots of aggregates that have many changes since their last one. Returns the number
    of snapshots."""
    aggregates = await session.rows(
        AggregateKey, "aggregates_without_snapshot", every=SNAPSHOT_EVERY, limit=_AT_ONCE
    )
    for aggregate in aggregates:
        await snapshot(session, aggregate.aggregate_type, aggregate.aggregate_id)
    return len(aggregates)
