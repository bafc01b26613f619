"""Passages in addition to events: if few events answer, the documents themselves may."""

from collections.abc import Sequence

from memory_core.runtime import Runtime
from memory_core.search.event_filters import EventFilters
from memory_core.search.event_search import EventPage
from memory_core.search.passage import Passage
from memory_core.search.passage_filters import Filters
from memory_core.search.passages import hybrid_search
from memory_core.search.passages import note_on as passages_note
from memory_core.search.similarity import NO_EVENT_HAS_THE_WORDS

# If fewer events than the first number have most of the query's words, passages are added: the
# second number of them.
FEW_EVENTS = 5
_PASSAGES = 3


def note_on(page: EventPage, passages: Sequence[Passage]) -> str:
    """A note for the reader of these; "" if there is nothing to say."""
    if page.events and not page.by_words:
        return NO_EVENT_HAS_THE_WORDS
    return "" if page.events else passages_note(passages)


async def additional_passages(
    runtime: Runtime, query: str | None, filters: EventFilters, answering: int
) -> list[Passage]:
    """Passages that pass the same filters, as far as documents have them. None for the past: only
    latest revisions are searched by their text."""
    if not query or not query.strip() or answering >= FEW_EVENTS or filters.as_of is not None:
        return []
    of_documents = Filters(
        artifact_uid=filters.artifact_uid,
        artifact_type=filters.artifact_type,
        source_system=filters.source_system,
        time_from=filters.time_from,
        time_to=filters.time_to,
    )
    return await hybrid_search(runtime, query, of_documents, limit=_PASSAGES, include_memory=False)
