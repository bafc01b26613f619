"""stakeholder_map, commitment_list, timeline: tools that answer one question each."""

from datetime import date, datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from mcp_server.tool import read_tool
from mcp_server.tools.event_answers import (
    ActorCandidates,
    ActorNames,
    EventOut,
    candidates_out,
    event_out,
)
from mcp_server.tools.parameters import (
    AsOf,
    DueFrom,
    DueTo,
    EventTimeFrom,
    EventTimeTo,
    OptionalActor,
    OptionalArtifactUid,
    OptionalCategory,
    OptionalQuery,
    OptionalSubject,
)
from memory_core.events.as_of import extracted_later
from memory_core.events.commitments import list_commitments
from memory_core.events.stakeholders import stakeholders
from memory_core.events.timeline import timeline as read_timeline
from memory_core.kernel.database import columns
from memory_core.kernel.times import parse_time, parse_until
from memory_core.runtime import Runtime
from memory_core.search.event_filters import EventFilters
from memory_core.search.names import names_looked_for


class StakeholderOut(BaseModel):
    name: str
    type: Literal["person", "org"] | None
    aliases: list[str]
    roles: dict[str, int]
    events: int
    first_time: datetime | None
    last_time: datetime | None
    examples: list[EventOut]


class StakeholderMap(BaseModel):
    stakeholders: list[StakeholderOut]
    total: int
    # How many events the counts and times cover: the best matches of a query, or else the newest.
    events_considered: int
    events_total: int


class CommitmentOut(BaseModel):
    status: Literal["open", "done", "overdue"]
    due: datetime | None
    promised: EventOut
    fulfilled_by: EventOut | None


class Commitments(BaseModel):
    commitments: list[CommitmentOut]
    total: int | None = Field(description="null: too many to work out.")
    truncated: bool = Field(description="Raise limit, or narrow actor or dates.")
    actor_names: ActorNames = None
    actor_candidates: ActorCandidates = None


class DayOut(BaseModel):
    day: date | None
    events: list[EventOut]


class TimelineOut(BaseModel):
    days: list[DayOut]
    total: int = Field(description="All matches; the newest are shown.")
    actor_names: ActorNames = None
    actor_candidates: ActorCandidates = None


async def stakeholder_map(
    runtime: Runtime,
    query: OptionalQuery = None,
    artifact_uid: OptionalArtifactUid = None,
    category: OptionalCategory = None,
    time_from: EventTimeFrom = None,
    time_to: EventTimeTo = None,
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
) -> StakeholderMap:
    """Who was involved in something, in which roles, with example events. The first choice for
    "who was involved in …", "who owns …". For what one person did use event_search with
    actor. Example: stakeholder_map(query="authentication redesign")
    """
    await runtime.open()
    filters = EventFilters(
        category=category.value if category else None,
        artifact_uid=artifact_uid,
        time_from=parse_time("time_from", time_from),
        time_to=parse_until("time_to", time_to),
    )
    page = await stakeholders(runtime, query, filters, limit=limit)
    return StakeholderMap(
        stakeholders=[
            StakeholderOut(
                **columns(person)
                | {"examples": [event_out(row, person.evidence) for row in person.examples]}
            )
            for person in page.people
        ],
        total=page.total,
        events_considered=page.events_considered,
        events_total=page.events_total,
    )


async def commitment_list(
    runtime: Runtime,
    actor: OptionalActor = None,
    due_from: DueFrom = None,
    due_to: DueTo = None,
    status: Annotated[
        Literal["open", "done", "overdue", "unknown"] | None,
        Field(
            description="open: not done, not late; overdue: past its date; unknown: open and "
            "undated."
        ),
    ] = None,
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
) -> Commitments:
    """What was promised, by whom, due when, and whether a later event fulfils it, with quotes.
    The first choice for "what did … commit to", "what is overdue". Example:
    commitment_list(actor="Alice Chen", due_to="2026-03-31")
    """
    await runtime.open()
    page = await list_commitments(
        runtime,
        actor=actor,
        due_from=parse_time("due_from", due_from),
        due_to=parse_until("due_to", due_to),
        status=status,
        limit=limit,
    )
    return Commitments(
        commitments=[
            CommitmentOut(
                status=item.status,
                due=item.event.due_time,
                promised=event_out(item.event, page.evidence),
                fulfilled_by=event_out(item.fulfilled_by, page.evidence)
                if item.fulfilled_by
                else None,
            )
            for item in page.commitments
        ],
        total=page.total,
        truncated=page.truncated,
        actor_names=await names_looked_for(runtime, actor),
        actor_candidates=candidates_out(page.candidates),
    )


async def timeline(
    runtime: Runtime,
    query: OptionalQuery = None,
    actor: OptionalActor = None,
    subject: OptionalSubject = None,
    time_from: EventTimeFrom = None,
    time_to: EventTimeTo = None,
    limit: Annotated[int, Field(ge=1, le=100)] = 50,
    as_of: AsOf = None,
) -> TimelineOut:
    """Events in time order, day by day: for "what happened with …" and status reports. For the
    best matches first use event_search. Example: timeline(query="beta",
    time_from="2026-02-01")
    """
    await runtime.open()
    filters = EventFilters(
        actor=actor,
        subject=subject,
        time_from=parse_time("time_from", time_from),
        time_to=parse_until("time_to", time_to),
        as_of=parse_until("as_of", as_of),
    )
    answer = await read_timeline(runtime, query, filters, limit=limit)
    shown = [row for day in answer.days for row in day.events]
    later = await extracted_later(runtime, shown, filters.as_of)
    return TimelineOut(
        days=[
            DayOut(
                day=day.day, events=[event_out(row, answer.evidence, later) for row in day.events]
            )
            for day in answer.days
        ],
        total=answer.total,
        actor_names=await names_looked_for(runtime, actor),
        actor_candidates=candidates_out(answer.candidates),
    )


TOOLS = (
    read_tool("Who was involved", stakeholder_map),
    read_tool("Promises and whether they were kept", commitment_list),
    read_tool("Timeline of events", timeline),
)
