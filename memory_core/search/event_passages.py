"""Passages beside events: where few events answer, the documents themselves may."""

from memory_core.runtime import Runtime
from memory_core.search.event_filters import EventFilters
from memory_core.search.passage import Passage
from memory_core.search.passage_filters import Filters
from memory_core.search.passages import hybrid_search

# With fewer events that have most of what a query asks for, passages are offered too: the second
# number of them.
FEW_EVENTS = 5
_PASSAGES = 3


async def passages_beside(
    runtime: Runtime, query: str | None, filters: EventFilters, answering: int
) -> list[Passage]:
    """What documents say that pass the same filters, as far as documents know them. None of the
    past: only latest revisions are searched by their text."""
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
