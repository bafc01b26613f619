"""Reading events: one, those of a revision, and the evidence of many in one query.

Every read of events goes through this module, `search` or the questions beside them, so that a
filter on who may see what can be added in one place.
"""

from dataclasses import dataclass
from uuid import UUID

from memory_core.kernel.database import Row, Session
from memory_core.kernel.errors import NotFound
from memory_core.runtime import Runtime


@dataclass(frozen=True, slots=True)
class EventDetail:
    event: Row
    evidence: list[Row]


@dataclass(frozen=True, slots=True)
class RevisionEvents:
    """The events of a revision together with what became of its extraction: an empty list is
    never ambiguous."""

    revision: Row
    events: list[Row]
    evidence: dict[UUID, list[Row]]


async def get_event(runtime: Runtime, event_id: UUID, context_chars: int = 0) -> EventDetail:
    async with runtime.database.session() as session:
        event = await session.one("get_event", event_id=event_id)
        if event is None:
            raise NotFound(
                f"There is no event {event_id}. event_search finds events; re-extraction may have "
                "replaced this one.",
                details={"event_id": str(event_id)},
            )
        evidence = await session.all(
            "evidence_in_context", event_id=event_id, context=context_chars
        )
    return EventDetail(event, evidence)


async def list_for_revision(
    runtime: Runtime, artifact_uid: str, revision_id: str | None, *, include_evidence: bool
) -> RevisionEvents:
    async with runtime.database.session() as session:
        revision = await session.one("get_revision", uid=artifact_uid, revision=revision_id)
        if revision is None:
            raise revision_not_found(artifact_uid, revision_id)
        events = await session.all(
            "list_events_of_revision",
            uid=revision["artifact_uid"],
            revision=revision["revision_id"],
        )
        evidence = await evidence_of(session, events) if include_evidence else {}
    return RevisionEvents(revision, events, evidence)


async def evidence_of(session: Session, events: list[Row]) -> dict[UUID, list[Row]]:
    """Evidence of many events, in one query."""
    ids = [event["event_id"] for event in events]
    rows = await session.all("evidence_of_events", ids=ids) if ids else []
    found: dict[UUID, list[Row]] = {event["event_id"]: [] for event in events}
    for row in rows:
        # Of an event that was replaced between the two queries there may be evidence alone.
        found.setdefault(row["event_id"], []).append(row)
    return found


def revision_not_found(artifact_uid: str, revision_id: str | None) -> NotFound:
    which = f"revision {revision_id!r} of " if revision_id else ""
    return NotFound(
        f"There is no {which}artifact {artifact_uid!r}. artifact_search finds documents, "
        "artifact_history their revisions.",
        details={"artifact_uid": artifact_uid, "revision_id": revision_id},
    )
