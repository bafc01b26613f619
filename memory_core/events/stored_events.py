"""Reading events: one event, the events of a revision, and the evidence of many in one query.

Every read of events goes through this module, `search` or the other modules of this package, so
that the filter on visibility has one place.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from memory_core.artifacts.stored_artifacts import RevisionRecord, find_revision
from memory_core.kernel.database import Session
from memory_core.kernel.errors import NotFound
from memory_core.runtime import Runtime
from memory_core.search.event import Event, StoredEvidence


@dataclass(frozen=True, slots=True)
class ExtractedEvent(Event):
    """An event, with how it was extracted."""

    is_latest: bool
    extraction_run_id: UUID
    extractor: str | None
    model: str | None
    prompt_version: str | None
    merge_version: str | None
    requested_by: str | None
    dagster_run_id: str | None
    extracted_at: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class QuoteInContext:
    evidence_id: UUID
    quote: str
    start_char: int
    end_char: int
    chunk_id: str | None
    match_kind: str
    artifact_id: str | None
    text_before: str | None
    text_after: str | None


@dataclass(frozen=True, slots=True)
class EventDetail:
    event: ExtractedEvent
    evidence: list[QuoteInContext]


@dataclass(frozen=True, slots=True)
class ProvedEvents:
    """Events, and the evidence of each by its id."""

    events: list[Event]
    evidence: dict[UUID, list[StoredEvidence]]


@dataclass(frozen=True, slots=True)
class RevisionEvents(ProvedEvents):
    """The events of a revision, with the state of its extraction, so that an empty list is never
    ambiguous."""

    revision: RevisionRecord


async def get_event(runtime: Runtime, event_id: UUID, context_chars: int = 0) -> EventDetail:
    async with runtime.database.session() as session:
        event = await session.row(ExtractedEvent, "get_event", event_id=event_id)
        if event is None:
            raise NotFound(
                f"There is no event {event_id}. event_search finds events; re-extraction may have "
                "replaced this one.",
                details={"event_id": str(event_id)},
            )
        evidence = await session.rows(
            QuoteInContext, "evidence_in_context", event_id=event_id, context=context_chars
        )
    return EventDetail(event, evidence)


async def list_for_revision(
    runtime: Runtime, artifact_uid: str, revision_id: str | None, *, include_evidence: bool
) -> RevisionEvents:
    async with runtime.database.session() as session:
        revision = await find_revision(session, artifact_uid, revision_id)
        events = await session.rows(
            Event,
            "list_events_of_revision",
            uid=revision.artifact_uid,
            revision=revision.revision_id,
        )
        evidence = await evidence_of(session, events) if include_evidence else {}
    return RevisionEvents(events, evidence, revision)


async def evidence_of(
    session: Session, events: Sequence[Event]
) -> dict[UUID, list[StoredEvidence]]:
    """Evidence of many events, in one query."""
    ids = [event.event_id for event in events]
    by_event: dict[UUID, list[StoredEvidence]] = {id_: [] for id_ in ids}
    if ids:
        for evidence in await session.rows(StoredEvidence, "evidence_of_events", ids=ids):
            # An event that was replaced between the two queries leaves only its evidence here.
            by_event.setdefault(evidence.event_id, []).append(evidence)
    return by_event
