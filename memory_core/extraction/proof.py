"""From proposals to proved events: every quote is located in its chunk, or its event is rejected.

Actors and subject must also stand in the passage or in the document's context. A name that does not
is left out of the event and reported. A narrative that the text does not support is replaced by the
quote.
"""

import calendar
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from memory_core.extraction.aliases import words_of
from memory_core.extraction.alignment import Alignment, MatchKind, Rejection, SourceText
from memory_core.extraction.grounds import Context, Grounds
from memory_core.extraction.model import (
    ChunkEvent,
    Due,
    Entity,
    Evidence,
    ProposedEvent,
    ProposedQuote,
    RejectedEvent,
)
from memory_core.text import dates
from memory_core.text.chunk import Chunk
from memory_core.text.dates import Anchor, midnight

_DETAIL_LIMIT = 300
# How far from the quote of a promise, in characters, the words of its due date may stand.
_DUE_NEAR = 500


@dataclass(frozen=True, slots=True)
class Proved:
    events: list[ChunkEvent]
    entities: list[Entity]
    rejected: list[RejectedEvent]


def prove(
    chunk: Chunk,
    chunk_id: str | None,
    proposed: Sequence[ProposedEvent],
    entities: Sequence[Entity],
    context: Context,
) -> Proved:
    """`chunk_id` is None when the chunk is the whole text."""
    source = SourceText(chunk.text)
    grounds = Grounds(source, context)
    proved: list[ChunkEvent] = []
    rejected: list[RejectedEvent] = []
    for number, event in enumerate(proposed):
        quote = event.quote
        span = source.locate(quote.quote, bounds=quote.part, hint=_hint(quote, len(chunk.text)))
        if isinstance(span, Rejection):
            detail = f"{span.detail}: {quote.quote!r}"[:_DETAIL_LIMIT]
            rejected.append(RejectedEvent(span.reason.value, detail, chunk.index))
            continue
        evidence = Evidence(
            start_char=chunk.start_char + span.start_char,
            end_char=chunk.start_char + span.end_char,
            quote=span.quote,
            match_kind=span.kind.value,
            chunk_id=chunk_id,
        )
        actors = grounds.actors(event.actors)
        due = _due(event, source, span, chunk)
        if event.due is not None and due is None:
            dropped = f"{event.due.time:%Y-%m-%d}, {event.due.quote}"
            rejected.append(_left_out("DUE_NOT_IN_TEXT", dropped, chunk))
        times = (event.event_time, event.due.time if event.due and due else None)
        narrative = grounds.narrative(event.narrative, span.quote, *times)
        if len(actors) < len(event.actors):
            strangers = [a.ref for a in event.actors if grounds.actor(a.ref) is None]
            rejected.append(_left_out("ACTOR_NOT_IN_TEXT", ", ".join(strangers), chunk))
        if narrative is None:
            rejected.append(_left_out("NARRATIVE_NOT_IN_TEXT", event.narrative, chunk))
        proved.append(
            ChunkEvent(
                id=f"c{chunk.index}e{number}",
                chunk_index=chunk.index,
                category=event.category,
                subject=grounds.subject(event.subject, span.quote),
                narrative=narrative or " ".join(span.quote.split()),
                confidence=event.confidence,
                evidence=evidence,
                actors=actors,
                event_time=event.event_time,
                due=due,
            )
        )
    named = [entity for entity in map(grounds.entity, entities) if entity is not None]
    return Proved(proved, named, rejected)


def part_by_confidence(
    chunk: Chunk, proposed: Sequence[ProposedEvent], least: float
) -> tuple[list[ProposedEvent], list[RejectedEvent]]:
    """The events that are certain enough to be shown, and the others as rejections that say what
    they were."""
    sure, doubtful = [], []
    for event in proposed:
        if event.confidence >= least:
            sure.append(event)
        else:
            detail = (
                f"{event.category}, {event.confidence:.2f} of {least:.2f}: {event.quote.quote!r}"
            )
            doubtful.append(RejectedEvent("LOW_CONFIDENCE", detail[:_DETAIL_LIMIT], chunk.index))
    return sure, doubtful


def _due(event: ProposedEvent, source: SourceText, proof: Alignment, chunk: Chunk) -> Due | None:
    """The due date with the words that state it. A date whose words do not stand near the quote, or
    state another day, is dropped. A date without words stays as the extractor's interpretation."""
    due = event.due
    if due is None or due.quote is None:
        return due
    near = due.start_char if due.start_char is not None else proof.start_char
    aligned = source.locate(due.quote, bounds=event.quote.part, hint=(near, near))
    if isinstance(aligned, Rejection) or aligned.kind not in (
        MatchKind.EXACT,
        MatchKind.NORMALISED,
    ):
        return None
    apart = max(aligned.start_char - proof.end_char, proof.start_char - aligned.end_char)
    stated = dates.find(aligned.quote, Anchor(), future=False)
    if apart > _DUE_NEAR or (stated and not _is_day(due.time, stated.when)):
        return None
    if (months := _months(aligned.quote)) and due.time.month not in months:
        return None
    start = chunk.start_char
    return Due(due.time, aligned.quote, start + aligned.start_char, start + aligned.end_char)


def _months(words: str) -> set[int]:
    """The months that the words name, in full or by three letters."""
    named = words_of(words)
    return {
        number
        for number in range(1, 13)
        if {calendar.month_name[number].lower(), calendar.month_abbr[number].lower()} & {*named}
    }


def _is_day(time: datetime, day: datetime) -> bool:
    """Whether a time is on that day. In UTC, a time of day may be on the day before or after."""
    return abs(time - day) < timedelta(days=1 if time == midnight(time) else 2)


def _left_out(reason: str, dropped: str, chunk: Chunk) -> RejectedEvent:
    return RejectedEvent(reason, f"left out of the event: {dropped!r}"[:_DETAIL_LIMIT], chunk.index)


def _hint(quote: ProposedQuote, length: int) -> tuple[int, int] | None:
    start, end = quote.start_char, quote.end_char
    if start is None or end is None or not 0 <= start < end <= length:
        return None
    return start, end
