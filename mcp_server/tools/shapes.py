"""Shapes that several event tools return."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, Field

from memory_core.database import Row
from memory_core.events.names import Person
from memory_core.extraction.model import ActorRole, Category, SubjectType


class SubjectOut(BaseModel):
    type: SubjectType | str
    ref: str


class ActorOut(BaseModel):
    ref: str
    role: ActorRole | str


class EvidenceOut(BaseModel):
    quote: str = Field(description="The document's own words: text[start_char:end_char].")
    start_char: int
    end_char: int
    chunk_id: str | None
    match_kind: str = Field(description="exact, normalised, ellipsis or fuzzy.")


class EventOut(BaseModel):
    event_id: str
    artifact_uid: str
    revision_id: str
    category: Category
    event_time: datetime | None
    narrative: str
    subject: SubjectOut
    actors: list[ActorOut]
    confidence: float
    title: str | None = Field(default=None, description="Of the document.")
    evidence: list[EvidenceOut] | None = None


class Candidate(BaseModel):
    name: str
    events: int
    aliases: list[str]
    actor: str = Field(description="Pass this as actor to mean exactly this one.")


ActorNames = Annotated[
    list[str] | None,
    Field(
        description="With actor: the names that were looked for, as the memory knows them. Empty: "
        "nobody is called so."
    ),
]
ActorCandidates = Annotated[
    list[Candidate] | None,
    Field(description="When the actor's name may mean several people: ask which."),
]


def event_out(row: Row, evidence: dict[UUID, list[Row]] | None) -> EventOut:
    return EventOut(
        event_id=str(row["event_id"]),
        artifact_uid=row["artifact_uid"],
        revision_id=row["revision_id"],
        category=row["category"],
        event_time=row["event_time"],
        narrative=row["narrative"],
        subject=SubjectOut(**row["subject_json"]),
        actors=[ActorOut(**actor) for actor in row["actors_json"]],
        confidence=row["confidence"],
        title=row.get("title"),
        evidence=None
        if evidence is None
        else [EvidenceOut(**item) for item in evidence.get(row["event_id"], [])],
    )


def candidates_out(people: list[Person]) -> list[Candidate] | None:
    if not people:
        return None
    return [
        Candidate(name=p.name, events=p.events, aliases=p.aliases, actor=p.asked_as) for p in people
    ]


def applied(**filters: Any) -> dict[str, Any]:
    """What was used of a tool's filters, as it was understood."""
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in filters.items()
        if value is not None and value is not False and value != 0.0
    }
