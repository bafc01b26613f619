"""event_search, event_get, event_list_for_revision, event_diff."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from mcp_server.arguments import AN_ID
from mcp_server.tool import read_tool
from mcp_server.tools.event_answers import (
    ActorCandidates,
    ActorNames,
    EventOut,
    EvidenceOut,
    applied,
    candidates_out,
    event_out,
    without_event,
)
from mcp_server.tools.parameters import (
    ArtifactUid,
    AsOf,
    EventTimeFrom,
    EventTimeTo,
    FromRevision,
    OptionalActor,
    OptionalArtifactType,
    OptionalArtifactUid,
    OptionalCategory,
    OptionalQuery,
    OptionalRevisionId,
    OptionalSourceSystem,
    OptionalSubject,
)
from memory_core.events import stored_events
from memory_core.events.as_of import extracted_later
from memory_core.events.diff import diff_revisions
from memory_core.kernel import ids
from memory_core.kernel.database import columns
from memory_core.kernel.times import parse_time, parse_until
from memory_core.runtime import Runtime
from memory_core.search.event_filters import EventFilters
from memory_core.search.event_passages import additional_passages, note_on
from memory_core.search.event_search import search_events
from memory_core.search.names import names_looked_for
from memory_core.search.passage import Passage


class EventPassage(BaseModel):
    text: str
    title: str | None
    artifact_uid: str
    revision_id: str
    start_char: int
    end_char: int
    source_ts: datetime | None


class EventsFound(BaseModel):
    events: list[EventOut]
    total: int = Field(description="All matches.")
    # Where few events match: what documents say.
    passages: list[EventPassage] | None = None
    note: str = ""
    filters_applied: dict[str, Any]
    actor_names: ActorNames = None
    actor_candidates: ActorCandidates = None


class EvidenceInContext(EvidenceOut):
    evidence_id: str
    artifact_id: str | None
    text_before: str | None = None
    text_after: str | None = None


class EventDetailOut(EventOut):
    model_config = ConfigDict(json_schema_extra=without_event)

    evidence: list[EvidenceInContext]  # type: ignore[assignment]
    is_latest: bool
    extraction_run_id: str
    extractor: str | None
    model: str | None
    prompt_version: str | None
    merge_version: str | None
    requested_by: str | None
    dagster_run_id: str | None
    extracted_at: datetime | None
    created_at: datetime


class RevisionEventsOut(BaseModel):
    artifact_uid: str
    revision_id: str
    is_latest: bool
    events: list[EventOut]
    total: int
    job_status: str | None
    explanation: str


class FieldChange(BaseModel):
    field: str
    before: Any
    after: Any


class ChangedOut(BaseModel):
    before: EventOut
    after: EventOut
    changes: list[FieldChange]


class EventDiffOut(BaseModel):
    artifact_uid: str
    from_revision: str
    to_revision: str
    added: list[EventOut]
    removed: list[EventOut]
    changed: list[ChangedOut]
    kept: list[EventOut]
    text_diff: str
    # A revision that is not DONE has no events to compare yet; the explanation says so.
    job_statuses: dict[str, str | None]
    explanation: str | None


_EXPLANATIONS = {
    "DONE": "Extraction is done.",
    "PENDING": "Not extracted yet: the job is waiting. Ask again in a moment.",
    "PROCESSING": "Not extracted yet: the job is running. Ask again in a moment.",
    "FAILED": "Extraction failed; job_status says why, event_reextract tries again.",
    "CANCELED": "Extraction was canceled; event_reextract asks for it again.",
}


async def event_search(
    runtime: Runtime,
    query: OptionalQuery = None,
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
    offset: Annotated[int, Field(ge=0, le=100_000)] = 0,
    category: OptionalCategory = None,
    time_from: EventTimeFrom = None,
    time_to: EventTimeTo = None,
    artifact_uid: OptionalArtifactUid = None,
    include_evidence: bool = True,
    actor: OptionalActor = None,
    subject: OptionalSubject = None,
    min_confidence: Annotated[float, Field(ge=0, le=1)] = 0.0,
    artifact_type: OptionalArtifactType = None,
    source_system: OptionalSourceSystem = None,
    include_superseded: Annotated[bool, Field(description="Also of older revisions.")] = False,
    sort: Literal["relevance", "time"] = "relevance",
    as_of: AsOf = None,
) -> EventsFound:
    """What was decided, promised, done, changed, feared or said: events with the quotes that
    prove them. The first choice for "what was decided about …", "what feedback on …",
    "which risks …". Without a query: the newest. Where few match, passages come too. For
    promises use commitment_list, for people stakeholder_map, for passages hybrid_search. Example:
    event_search(query="pricing model", category="Decision")
    """
    await runtime.open()
    filters = EventFilters(
        category=category.value if category else None,
        time_from=parse_time("time_from", time_from),
        time_to=parse_until("time_to", time_to),
        artifact_uid=artifact_uid,
        actor=actor,
        subject=subject,
        min_confidence=min_confidence,
        artifact_type=artifact_type.value if artifact_type else None,
        source_system=source_system,
        include_superseded=include_superseded,
        as_of=parse_until("as_of", as_of),
    )
    page = await search_events(
        runtime,
        query,
        filters,
        limit=limit,
        offset=offset,
        sort=sort,
        include_evidence=include_evidence,
    )
    later = await extracted_later(runtime, page.events, filters.as_of)
    evidence = page.evidence if include_evidence else None
    passages = await additional_passages(runtime, query, filters, page.answering)
    return EventsFound(
        events=[event_out(row, evidence, later) for row in page.events],
        total=page.total,
        passages=[_passage(passage) for passage in passages] or None,
        note=note_on(page, passages),
        filters_applied=applied(query=query or None, **columns(filters)),
        actor_names=await names_looked_for(runtime, actor),
        actor_candidates=candidates_out(page.candidates),
    )


def _passage(passage: Passage) -> EventPassage:
    return EventPassage(**{name: getattr(passage, name) for name in EventPassage.model_fields})


async def event_get(
    runtime: Runtime,
    event_id: Annotated[str, Field(min_length=1, description="As event_search returns it."), AN_ID],
    context_chars: Annotated[int, Field(ge=0, le=2000, description="Text around each quote.")] = 0,
) -> EventDetailOut:
    """One event with all its evidence and how it was extracted. Use it to show the proof, each
    quote in its surroundings. Example:
    event_get(event_id="6f0c7a52-8d0e-4f43-9b1d-3f3f2f1f6a11", context_chars=200)
    """
    await runtime.open()
    uuid = ids.parse_uuid("event_id", event_id)
    detail = await stored_events.get_event(runtime, uuid, context_chars)
    row = detail.event
    return EventDetailOut(
        **columns(row)
        | event_out(row, None).model_dump()
        | {
            "extraction_run_id": str(row.extraction_run_id),
            "evidence": [
                EvidenceInContext(**columns(item) | {"evidence_id": str(item.evidence_id)})
                for item in detail.evidence
            ],
        }
    )


async def event_list_for_revision(
    runtime: Runtime,
    artifact_uid: ArtifactUid,
    revision_id: OptionalRevisionId = None,
    include_evidence: bool = False,
) -> RevisionEventsOut:
    """All events of one document; an empty list says why: not extracted yet, failed, or truly
    none. To search all documents use event_search. Example:
    event_list_for_revision(artifact_uid="uid_0123456789abcdef")
    """
    await runtime.open()
    listed = await stored_events.list_for_revision(
        runtime, artifact_uid, revision_id, include_evidence=include_evidence
    )
    status = listed.revision.job_status
    explanation = _EXPLANATIONS.get(
        status or "", "There is no extraction job; event_reextract makes one."
    )
    if status == "DONE" and not listed.events:
        explanation = "Extraction is done: the text has no events."
    elif listed.events and status != "DONE":
        explanation = f"These events are of an earlier extraction. {explanation}"
    return RevisionEventsOut(
        artifact_uid=listed.revision.artifact_uid,
        revision_id=listed.revision.revision_id,
        is_latest=listed.revision.is_latest,
        events=[
            event_out(event, listed.evidence if include_evidence else None)
            for event in listed.events
        ],
        total=len(listed.events),
        job_status=status,
        explanation=explanation,
    )


async def event_diff(
    runtime: Runtime,
    artifact_uid: ArtifactUid,
    from_revision: FromRevision = None,
    to_revision: OptionalRevisionId = None,
) -> EventDiffOut:
    """What changed between two revisions of a document, by default the two newest: events
    added, removed, changed and kept, and a diff of the text. Example:
    event_diff(artifact_uid="uid_0123456789abcdef")
    """
    await runtime.open()
    diff = await diff_revisions(runtime, artifact_uid, from_revision, to_revision)
    evidence = diff.evidence
    return EventDiffOut(
        artifact_uid=artifact_uid,
        from_revision=diff.from_revision,
        to_revision=diff.to_revision,
        added=[event_out(row, evidence) for row in diff.added],
        removed=[event_out(row, evidence) for row in diff.removed],
        changed=[
            ChangedOut(
                before=event_out(item.before, evidence),
                after=event_out(item.after, evidence),
                changes=[
                    FieldChange(field=name, before=before, after=after)
                    for name, (before, after) in item.fields.items()
                ],
            )
            for item in diff.changed
        ],
        kept=[event_out(row, evidence) for row in diff.kept],
        text_diff=diff.text_diff,
        job_statuses=diff.statuses,
        explanation=diff.explanation,
    )


TOOLS = (
    read_tool("Search events", event_search),
    read_tool("One event with its proof", event_get),
    read_tool("Events of a revision", event_list_for_revision),
    read_tool("What changed between revisions", event_diff),
)
