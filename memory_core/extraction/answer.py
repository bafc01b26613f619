"""Parsing a model's answer. Each event is validated alone, so a fault in one does not cost the
others."""

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, StringConstraints, ValidationError

from memory_core.extraction.model import (
    Actor,
    ActorRole,
    Category,
    Due,
    Entity,
    EntityType,
    Proposal,
    ProposedEvent,
    ProposedQuote,
    RejectedEvent,
    Subject,
    SubjectType,
)
from memory_core.kernel.times import as_utc

_DETAIL_LIMIT = 300
# The first prompt that asks for due dates. In cached answers to older prompts, the time of a
# commitment is its due date.
_DUE_TIMES = 3


def _storable(value: Any) -> Any:
    """Refuse U+0000 and lone surrogates: Postgres accepts neither, and JSON can contain both."""
    if isinstance(value, str):
        value.encode()  # raises UnicodeEncodeError, a ValueError
        if "\x00" in value:
            raise ValueError("contains U+0000")
    return value


def _time(value: Any) -> Any:
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if not isinstance(value, str):
        raise ValueError("is not an ISO 8601 time")
    try:
        return as_utc(datetime.fromisoformat(value.strip()))
    except OverflowError:
        raise ValueError("is out of range") from None


def _at_most(limit: int) -> StringConstraints:
    return StringConstraints(strip_whitespace=True, min_length=1, max_length=limit)


def _offset(value: Any) -> int | None:
    """An offset, or None for an invalid one: offsets are only hints."""
    return value if type(value) is int else None


# The limit comes first: after another validator it would measure the text before it is stripped.
_Ref = Annotated[str, _at_most(300), BeforeValidator(_storable)]
_Narrative = Annotated[str, _at_most(2_000), BeforeValidator(_storable)]
_Quote = Annotated[str, _at_most(20_000), BeforeValidator(_storable)]
_Time = Annotated[datetime | None, BeforeValidator(_time)]
_Offset = Annotated[int | None, BeforeValidator(_offset)]


def _words(value: Any) -> Any:
    return None if isinstance(value, str) and not value.strip() else value


class _Subject(BaseModel):
    type: SubjectType
    ref: _Ref


class _Actor(BaseModel):
    ref: _Ref
    role: ActorRole


class _Evidence(BaseModel):
    quote: _Quote
    start_char: _Offset = None
    end_char: _Offset = None


def _part(value: Any) -> tuple[int, int] | None:
    match value:
        case [int(start), int(end)] if 0 <= start < end:
            return start, end
    return None


class _Event(BaseModel):
    # Set where a chunk was asked about in parts. Like offsets, it only decides between equal
    # matches.
    part: Annotated[tuple[int, int] | None, BeforeValidator(_part)] = None
    category: Category
    subject: _Subject
    actors: list[_Actor] = Field(default_factory=list, max_length=100)
    event_time: _Time = None
    due_time: _Time = None
    due_quote: Annotated[_Quote | None, BeforeValidator(_words)] = None
    narrative: _Narrative
    evidence: _Evidence
    confidence: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False, strict=True)]

    def proposed(self) -> ProposedEvent:
        evidence = self.evidence
        return ProposedEvent(
            category=self.category,
            subject=Subject(self.subject.type, self.subject.ref),
            narrative=self.narrative,
            quote=ProposedQuote(evidence.quote, evidence.start_char, evidence.end_char, self.part),
            confidence=self.confidence,
            actors=tuple(Actor(actor.ref, actor.role) for actor in self.actors),
            event_time=self.event_time,
            due=self._due(),
        )

    def _due(self) -> Due | None:
        if self.due_time is None or self.category is not Category.COMMITMENT:
            return None
        return Due(self.due_time, self.due_quote)


class _Entity(BaseModel):
    name: _Ref
    type: EntityType
    aliases: list[_Ref] = Field(default_factory=list, max_length=50)


def is_answer(raw: Any) -> bool:
    """Whether it has the outer shape of an answer. If not, the model should be asked again."""
    return isinstance(raw, dict) and isinstance(raw.get("events"), list)


def read_answer(raw: dict[str, Any], prompt: int) -> Proposal:
    """`prompt`: the number of the prompt that the model answered."""
    events, rejections = [], []
    for item in raw["events"]:
        try:
            event = _Event.model_validate(item).proposed()
            events.append(event if prompt >= _DUE_TIMES else _with_due_time(event))
        except ValidationError as error:
            rejections.append(_rejected(error))
    return Proposal(tuple(events), tuple(_entities(raw.get("entities"))), tuple(rejections))


def _with_due_time(event: ProposedEvent) -> ProposedEvent:
    if event.category is not Category.COMMITMENT or event.event_time is None:
        return event
    return replace(event, event_time=None, due=Due(event.event_time))


def _entities(items: Any) -> list[Entity]:
    """The valid entities. Entities are optional, so an invalid one is dropped without a report."""
    entities = []
    for item in items if isinstance(items, list) else []:
        try:
            entity = _Entity.model_validate(item)
        except ValidationError:
            continue
        entities.append(Entity(entity.name, entity.type, tuple(dict.fromkeys(entity.aliases))))
    return entities


def _rejected(error: ValidationError) -> RejectedEvent:
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    field = ".".join(str(part) for part in fault["loc"]) or "event"
    return RejectedEvent("INVALID_FIELD", f"{field}: {fault['msg']}"[:_DETAIL_LIMIT])
