"""From proposals to proved events: every quote is found in its chunk, or its event is rejected."""

from collections.abc import Sequence

from memory_core.extraction.alignment import Rejection, SourceText
from memory_core.extraction.model import (
    ChunkEvent,
    Evidence,
    ProposedEvent,
    ProposedQuote,
    Rejected,
)
from memory_core.text.chunk import Chunk

_DETAIL_LIMIT = 300


def prove(
    chunk: Chunk, chunk_id: str | None, proposed: Sequence[ProposedEvent]
) -> tuple[list[ChunkEvent], list[Rejected]]:
    """`chunk_id` is None when the chunk is the whole text."""
    source = SourceText(chunk.text)
    proved, rejected = [], []
    for number, event in enumerate(proposed):
        quote = event.quote
        found = source.locate(quote.quote, bounds=quote.part, hint=_hint(quote, len(chunk.text)))
        if isinstance(found, Rejection):
            detail = f"{found.detail}: {quote.quote!r}"[:_DETAIL_LIMIT]
            rejected.append(Rejected(found.reason.value, detail, chunk.index))
            continue
        evidence = Evidence(
            start_char=chunk.start_char + found.start_char,
            end_char=chunk.start_char + found.end_char,
            quote=found.quote,
            match_kind=found.kind.value,
            chunk_id=chunk_id,
        )
        proved.append(
            ChunkEvent(
                id=f"c{chunk.index}e{number}",
                chunk_index=chunk.index,
                category=event.category,
                subject=event.subject,
                narrative=event.narrative,
                confidence=event.confidence,
                evidence=evidence,
                actors=event.actors,
                event_time=event.event_time,
            )
        )
    return proved, rejected


def _hint(quote: ProposedQuote, length: int) -> tuple[int, int] | None:
    start, end = quote.start_char, quote.end_char
    if start is None or end is None or not 0 <= start < end <= length:
        return None
    return start, end
