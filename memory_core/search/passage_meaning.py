"""Passages by the meaning of a query: the nearest of those that pass the filters.

Chroma is not given filters here, since it would look at every entry. Few entries are compared with
the query one by one; some thousands are named in the request; otherwise the nearest of all are
requested, and Postgres says which of them pass.
"""

import logging

from memory_core.embedding import Vector
from memory_core.index.generation import CollectionName
from memory_core.index.store import Hit
from memory_core.kernel.errors import MEANING_AWAY
from memory_core.runtime import Runtime
from memory_core.search.passage_filters import Filters

log = logging.getLogger(__name__)

# How many ids a request to Chroma may name. If filters leave more, the nearest of all are
# requested: FIRST_NEAREST of them. If fewer than a third of the wanted number pass, as many as
# should bring half of it are requested, at most MOST_NEAREST. Each of them takes time.
NAMED = 10_000
FIRST_NEAREST = 600
MOST_NEAREST = 3_000


async def nearest(
    runtime: Runtime, name: CollectionName, vector: Vector | None, filters: Filters, limit: int
) -> list[Hit]:
    """Chunks, documents or memories, nearest first. Empty while Chroma is away, or without a
    vector: then the search uses words alone. Memories have no filters."""
    if vector is None:
        return []
    try:
        return await _nearest(runtime, name, vector, filters, limit)
    except MEANING_AWAY as fault:
        log.warning("%s are searched by words alone: %s", name.value, fault.message)
        return []


async def _nearest(
    runtime: Runtime, name: CollectionName, vector: Vector, filters: Filters, limit: int
) -> list[Hit]:
    if filters == Filters() or name is CollectionName.MEMORY:
        return await runtime.vectors.query(name, vector, limit=limit)
    hits = await _of_those_that_pass(runtime, name, vector, filters, limit)
    if hits is not None:
        return hits
    hits = await runtime.vectors.query(name, vector, limit=FIRST_NEAREST)
    passing = await _passing(runtime, name, hits, filters)
    if len(passing) < limit / 3 and len(hits) == FIRST_NEAREST:
        more = min(MOST_NEAREST, FIRST_NEAREST * limit // (2 * len(passing) + 1))
        known = {hit.id for hit in hits}
        hits = await runtime.vectors.query(name, vector, limit=more)
        others = [hit for hit in hits if hit.id not in known]
        passing |= await _passing(runtime, name, others, filters)
    return [hit for hit in hits if hit.id in passing][:limit]


async def _of_those_that_pass(
    runtime: Runtime, name: CollectionName, vector: Vector, filters: Filters, limit: int
) -> list[Hit] | None:
    """None if these are too many, or some have no vector."""
    query = "some_chunks" if name is CollectionName.CHUNKS else "some_documents"
    async with runtime.database.session() as session:
        if await session.expect("expected_chunks", **filters.for_sql()) > NAMED:
            return None
        ids = await session.values(str, query, limit=NAMED + 1, **filters.for_sql())
    if len(ids) <= runtime.vectors.comparable:
        return (await runtime.vectors.compare(name, vector, ids))[:limit]
    if len(ids) <= NAMED:
        return await runtime.vectors.among(name, vector, ids, limit=limit)
    return None


async def _passing(
    runtime: Runtime, name: CollectionName, hits: list[Hit], filters: Filters
) -> set[str]:
    """The ids of those that pass."""
    query = "chunks_passing" if name is CollectionName.CHUNKS else "documents_passing"
    async with runtime.database.session() as session:
        ids = [hit.id for hit in hits]
        return set(await session.values(str, query, ids=ids, **filters.for_sql()))
