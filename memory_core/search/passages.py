"""Searching text: passages of latest revisions, and memories, by words and by meaning.

With RANKING=scores (`scored_passages.py`) a passage is the part of a chunk that answers best. With
RANKING=rrf Postgres' full text and Chroma's vectors each give a ranking of chunks, and reciprocal
rank fusion combines them; then the part that answers best is shown. Postgres decides what exists
and what is latest.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from memory_core.embedding import Vector
from memory_core.index.generation import CollectionName
from memory_core.kernel.errors import MEANING_AWAY
from memory_core.runtime import Runtime
from memory_core.search.excerpts import excerpts, whole_chunks
from memory_core.search.fusion import Fused, fuse
from memory_core.search.lexemes import lexemes_of
from memory_core.search.memories import best_memories, memories_by_id
from memory_core.search.passage import (
    FoundChunk,
    MemoryRecord,
    NeighborChunk,
    Passage,
    passage_of,
)
from memory_core.search.passage_filters import Filters
from memory_core.search.passage_meaning import nearest
from memory_core.search.passage_words import best_chunks
from memory_core.search.query_text import Asked, understand, visible_text
from memory_core.search.ranking import FoundWindow, first_of_each_document
from memory_core.search.scored_passages import ScoredSearch
from memory_core.search.similarity import NO_TEXT_HAS_A_WORD, NO_TEXT_HAS_THE_PHRASE
from memory_core.search.windows import Highlighter
from memory_core.search.word_statistics import statistics_of
from memory_core.text.scripts import query_in_pairs

log = logging.getLogger(__name__)

# How many candidates each ranking contributes per wanted result: old revisions and further passages
# of the same document are dropped afterwards.
_DEPTH_FACTOR = 4
_MIN_DEPTH = 40
# Used if too few of these are left.
_MORE_HITS = 600
# How many more than wanted are read at first.
_SPARE = 10
# The maximum number of query words that memories are searched for.
_MEMORY_WORDS = 32
# More words than any query has.
_ANY_NUMBER = 1_000_000
_TEXT, _CHUNKS, _DOCUMENTS, _MEMORY_TEXT, _MEMORY_DENSE = (
    "full_text",
    "dense_chunks",
    "dense_artifacts",
    "memory_full_text",
    "dense_memory",
)


async def hybrid_search(
    runtime: Runtime,
    query: str,
    filters: Filters,
    *,
    limit: int,
    include_memory: bool,
    expand_neighbors: bool = False,
    full_chunks: bool = False,
    each_document_once: bool = False,
) -> list[Passage]:
    """`full_chunks`: whole chunks instead of the parts that answer."""
    query = visible_text(query)
    # The scored search counts the words itself.
    uncounted = _ANY_NUMBER if runtime.settings.ranking == "scores" else 1
    vector, asked = await asyncio.gather(
        _embed(runtime, query), _understand(runtime, query, uncounted)
    )
    # Memories have no source, type or time, so a filtered search leaves them out.
    with_memory = include_memory and filters == Filters()

    async def find(asked: Asked) -> list[Passage]:
        if runtime.settings.ranking == "scores":
            search = ScoredSearch(
                runtime, query, asked, vector, filters,
                with_memory=with_memory, each_document_once=each_document_once,
            )  # fmt: skip
            return await search.best(limit, full_chunks=full_chunks)
        ranks = _Search(runtime, asked, vector, filters, with_memory=with_memory)
        # Several passages of a document are found before each is shown once.
        several = _DEPTH_FACTOR if each_document_once else 1
        ranked = await _by_ranks(ranks, several * limit)
        if each_document_once:
            ranked = first_of_each_document(ranked)
        return whole_chunks(ranked)[:limit] if full_chunks else excerpts(ranked, limit)

    passages = await find(asked)
    if not passages and asked.to_the_letter and not asked.excludes:
        # Few people quote exactly, and an empty answer does not help, so the query is read as a
        # sentence.
        loose = await _understand(runtime, query, uncounted, literally=False)
        passages = [replace(passage, is_loose=True) for passage in await find(loose)]
    if expand_neighbors:
        passages = await _with_neighbors(runtime, passages)
    return passages


async def _by_ranks(search: "_Search", limit: int) -> list[FoundWindow]:
    depth = max(_MIN_DEPTH, limit * _DEPTH_FACTOR)
    found, is_full = await search.best(limit, depth)
    if len(found) < limit and is_full:
        # The entries were superseded a moment ago, or a query with operators excludes them.
        found, _ = await search.best(limit, max(depth, _MORE_HITS))
    return await search.windows(found)


async def artifact_search(
    runtime: Runtime, query: str, filters: Filters, *, limit: int, full_chunks: bool = False
) -> list[Passage]:
    """One hit per artifact: its best passage."""
    return await hybrid_search(
        runtime,
        query,
        filters,
        limit=limit,
        include_memory=False,
        full_chunks=full_chunks,
        each_document_once=True,
    )


def note_on(passages: Sequence[Passage]) -> str:
    """What a reader of these should know; "" if nothing."""
    if passages and not any(passage.has_words for passage in passages):
        return NO_TEXT_HAS_A_WORD
    if any(passage.is_loose for passage in passages):
        return NO_TEXT_HAS_THE_PHRASE
    return ""


async def _embed(runtime: Runtime, query: str) -> Vector | None:
    """None while the embedder is away."""
    try:
        [vector] = await runtime.embedder.embed([query])
    except MEANING_AWAY as fault:
        log.warning("texts are searched by words alone: %s", fault.message)
        return None
    return vector


async def _understand(
    runtime: Runtime, query: str, uncounted: int, *, literally: bool = True
) -> Asked:
    async with runtime.database.session() as session:
        return await understand(
            session,
            query_in_pairs(query),
            uncounted=uncounted,
            literally=literally,
        )


Found = tuple[FoundChunk | MemoryRecord, Fused]


@dataclass(frozen=True, slots=True)
class _Search:
    runtime: Runtime
    asked: Asked
    vector: Vector | None  # None: only words are searched
    filters: Filters
    with_memory: bool

    async def best(self, limit: int, depth: int) -> tuple[list[Found], bool]:
        """The best of rankings of this depth, and whether Chroma might have more."""
        text, chunks, documents, memory_text, memory_dense = await asyncio.gather(
            self._full_text(depth),
            self._nearest(CollectionName.CHUNKS, depth),
            self._nearest(CollectionName.ARTIFACTS, depth),
            self._memory_full_text(depth),
            self._memory_dense(depth),
        )
        rankings = {
            _TEXT: text,
            _CHUNKS: chunks,
            _DOCUMENTS: documents,
            _MEMORY_TEXT: memory_text,
            _MEMORY_DENSE: memory_dense,
        }
        ranked = fuse(rankings, constant=self.runtime.settings.rrf_constant)
        return await self._load(ranked, limit), depth in (len(chunks), len(documents))

    async def windows(self, found: list[Found]) -> list[FoundWindow]:
        """In the same order, each with its part that has most of the query."""
        lexemes = lexemes_of(self.asked.every_word)
        async with self.runtime.database.session() as session:
            statistics = await statistics_of(session, lexemes)
        weights = {lexeme: statistics.weight(lexeme) for lexeme in lexemes}
        highlighter = Highlighter(lexemes, weights, by_stem=self.asked.by_stem, by_turns=True)
        return [
            FoundWindow(row, highlighter.best_window(row.text), item.score, item.sources)
            for row, item in found
        ]

    async def _full_text(self, depth: int) -> list[str]:
        async with self.runtime.database.session() as session:
            return await best_chunks(session, self.asked, self.filters, depth)

    async def _memory_full_text(self, depth: int) -> list[str]:
        if not self.with_memory:
            return []
        async with self.runtime.database.session() as session:
            rows = await best_memories(session, self.asked, words=_MEMORY_WORDS, limit=depth)
        return [row.memory_id for row in rows]

    async def _memory_dense(self, depth: int) -> list[str]:
        return await self._nearest(CollectionName.MEMORY, depth) if self.with_memory else []

    async def _nearest(self, name: CollectionName, depth: int) -> list[str]:
        hits = await nearest(self.runtime, name, self.vector, self.filters, depth)
        return [hit.id for hit in hits]

    async def _load(self, ranked: list[Fused], limit: int) -> list[Found]:
        """The best hits that Postgres knows, read only as far as needed: most of the first exist. A
        document and its first chunk are one hit."""
        best: dict[str, Found] = {}
        start, step = 0, limit + _SPARE
        while len(best) < limit and start < len(ranked):
            some = ranked[start : start + step]
            rows = await self._rows([item.key for item in some])
            for item in some:
                if (row := rows.get(item.key)) is not None:
                    best.setdefault(row.key, (row, item))
            start, step = start + step, 2 * step
        return list(best.values())[:limit]

    async def _rows(self, keys: list[str]) -> dict[str, FoundChunk | MemoryRecord]:
        # What the query excludes must not return by its meaning.
        letters = self.asked.words if self.asked.to_the_letter else None
        memories: list[MemoryRecord] = []
        async with self.runtime.database.session() as session:
            chunks = await session.rows(
                FoundChunk, "passages_by_id", ids=keys, letters=letters, **self.filters.for_sql()
            )
            if self.with_memory:
                memories = await memories_by_id(session, keys, letters)
        return {
            **{row.artifact_id: row for row in chunks if row.is_opening},
            **{row.chunk_id: row for row in chunks},
            **{row.memory_id: row for row in memories},
        }


async def _with_neighbors(runtime: Runtime, passages: list[Passage]) -> list[Passage]:
    ids = [passage.chunk_id for passage in passages if passage.chunk_id is not None]
    async with runtime.database.session() as session:
        rows = await session.rows(NeighborChunk, "neighbors_of_chunks", ids=ids)
    neighbors_of: dict[str, list[Passage]] = {}
    for row in rows:
        neighbors_of.setdefault(row.of_chunk, []).append(passage_of(row, 0.0, ()))
    return [
        replace(passage, neighbors=neighbors_of.get(passage.chunk_id or "", []))
        for passage in passages
    ]
