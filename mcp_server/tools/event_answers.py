"""Answer models that several event tools share."""

from collections.abc import Collection
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, Field, SerializerFunctionWrapHandler, model_serializer
from pydantic.json_schema import SkipJsonSchema

from memory_core.extraction.model import ActorRole, Category, SubjectType
from memory_core.kernel.database import columns
from memory_core.kernel.times import utc_text
from memory_core.search.event import Event, StoredEvidence
from memory_core.search.names import Person


class SubjectOut(BaseModel):
    type: SubjectType | str
    ref: str


class ActorOut(BaseModel):
    ref: str
    role: ActorRole | str


class EvidenceOut(BaseModel):
    quote: str = Field(description="text[start_char:end_char], exactly.")
    start_char: int
    end_char: int
    chunk_id: str | None
    match_kind: str


class DueOut(BaseModel):
    time: datetime
    quote: str | None = Field(description="Null: unproved.")
    start_char: int | None
    end_char: int | None


class EventOut(BaseModel):
    event_id: str
    artifact_uid: str
    revision_id: str
    category: Category
    event_time: datetime | None = Field(description="Happened, or was promised.")
    # Only a promise with a date has one. None leaves the key out of the answer.
    due: DueOut | SkipJsonSchema[None] = None
    narrative: str = Field(
        description="Extractor's words. Proved: quote; actors, subject: in text."
    )
    subject: SubjectOut
    actors: list[ActorOut]
    confidence: float
    title: str | None = None
    # None, which leaves the key out of the answer, unless evidence was requested.
    evidence: list[EvidenceOut] | SkipJsonSchema[None] = None
    # Only with as_of, and only where it is true. Otherwise the key is left out.
    extracted_later: bool = Field(default=False, description="After as_of: not known then.")

    @model_serializer(mode="wrap")
    def _without_empty_fields(self, shown: SerializerFunctionWrapHandler) -> Any:
        content = shown(self)
        if self.due is None:
            del content["due"]
        if self.evidence is None:
            del content["evidence"]
        if not self.extracted_later:
            del content["extracted_later"]
        return content


class ActorCandidate(BaseModel):
    name: str
    events: int
    aliases: list[str]
    actor: str = Field(description="Pass this to mean this one.")
    said_in: str | None = Field(description="artifact_uid that equates the names: unproved.")


# With actor: the names that the search used, as the memory spells them. Empty: the memory has no
# such name.
ActorNames = list[str] | None
ActorCandidates = Annotated[
    list[ActorCandidate] | None,
    Field(description="Who else may be meant; without events, ask which."),
]


def without_event(schema: dict[str, Any]) -> None:
    """Keep only the fields that a subclass adds to an event; event_search documents the others."""
    properties = schema["properties"]
    for name in EventOut.model_fields.keys() - {"evidence"}:
        del properties[name]


def event_out(
    event: Event, evidence: dict[UUID, list[StoredEvidence]] | None, later: Collection[UUID] = ()
) -> EventOut:
    """`later`: ids of the events that were extracted after the requested moment."""
    return EventOut(
        event_id=str(event.event_id),
        artifact_uid=event.artifact_uid,
        revision_id=event.revision_id,
        category=Category(event.category),
        event_time=event.event_time,
        due=_due(event),
        narrative=event.narrative,
        subject=SubjectOut(**event.subject_json),
        actors=[ActorOut(**actor) for actor in event.actors_json],
        confidence=event.confidence,
        title=event.title,
        evidence=None
        if evidence is None
        else [EvidenceOut(**columns(item)) for item in evidence.get(event.event_id, [])],
        extracted_later=event.event_id in later,
    )


def _due(event: Event) -> DueOut | None:
    if event.due_time is None:
        return None
    return DueOut(
        time=event.due_time,
        quote=event.due_quote,
        start_char=event.due_start_char,
        end_char=event.due_end_char,
    )


def candidates_out(people: list[Person]) -> list[ActorCandidate] | None:
    if not people:
        return None
    return [
        ActorCandidate(
            name=p.name, events=p.events, aliases=p.aliases, actor=p.asked_as, said_in=p.said_in
        )
        for p in people
    ]


def applied(**filters: Any) -> dict[str, Any]:
    """The filters that a tool applied, as it understood them."""
    return {
        name: utc_text(value) if isinstance(value, datetime) else value
        for name, value in filters.items()
        if value is not None and value is not False and value != 0.0
    }
