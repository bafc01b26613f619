"""Passages ranked by scores: BM25 of a chunk and of its best window, and the meaning of both.

Words find candidates in Postgres, meaning finds some in Chroma. The texts of the best of both are
read, and each text shows which part of it answers the query.
"""

import asyncio
from collections.abc import Mapping
from operator import mul

from memory_core.embedding import Vector
from memory_core.index.generation import CollectionName
from memory_core.kernel.database import Session
from memory_core.runtime import Runtime
from memory_core.search.bm25 import Statistics
from memory_core.search.candidates import MOST_WORDS, Candidates
from memory_core.search.excerpts import excerpts, whole_chunks
from memory_core.search.lexemes import lexemes_of
from memory_core.search.memories import best_memories, memories_by_id
from memory_core.search.passage import FoundChunk, MemoryRecord, Passage
from memory_core.search.passage_filters import Filters
from memory_core.search.passage_meaning import nearest
from memory_core.search.query_text import Asked
from memory_core.search.ranking import (
    FOR_CHUNKS,
    FOR_EXCERPTS,
    FoundWindow,
    Ranking,
    Weights,
    candidate,
    first_of_each_document,
)
from memory_core.search.related_words import related_lexemes
from memory_core.search.similarity import near_enough
from memory_core.search.spelling import words_meant
from memory_core.search.windows import Highlighter
from memory_core.search.word_statistics import statistics_of

# How many texts of the best candidates are read.
_READ = 50
_READ_IN_DOCUMENT = 250
_NEAREST = 100
# How many windows have their own meaning compared with the query's.
_COMPARED = 40


class ScoredSearch:
    def __init__(
        self,
        runtime: Runtime,
        query: str,
        asked: Asked,
        vector: Vector | None,
        filters: Filters,
        *,
        with_memory: bool,
        each_document_once: bool = False,
    ) -> None:
        """`vector`: None if meaning is not available."""
        self._runtime, self._query, self._asked = runtime, query, asked
        self._vector, self._filters, self._with_memory = vector, filters, with_memory
        self._each_document_once = each_document_once
        self._lexemes = lexemes_of(asked.every_word)

    async def best(self, limit: int, *, full_chunks: bool) -> list[Passage]:
        """Best first."""
        weights = FOR_CHUNKS if full_chunks else FOR_EXCERPTS
        (scores, statistics), cosines = await asyncio.gather(
            self._by_words(weights), self._by_meaning()
        )
        rows = await self._rows(_most_promising(scores, cosines, weights, self._to_read))
        highlighter = self._highlighter(statistics, weights)
        floor = min(cosines.values(), default=0.0)
        matches = self._asked.to_the_letter
        candidates = [
            candidate(row, highlighter, scores.get(key), cosines.get(key), floor, matches=matches)
            for key, row in rows.items()
        ]
        ranking = Ranking(candidates, weights, inside_one=self._inside_one)
        ranking = ranking.with_meaning(await self._cosines_of_windows(ranking.best()))
        ranked = ranking.best(per_chunk=1) if full_chunks else ranking.best()
        if not self._inside_one:
            # Inside one document, what stands around an answer may have no word of the query.
            ranked = near_enough(ranked, lambda found: found.is_far)
        if self._each_document_once:
            ranked = first_of_each_document(ranked)
        return whole_chunks(ranked)[:limit] if full_chunks else excerpts(ranked, limit)

    @property
    def _inside_one(self) -> bool:
        return self._filters.artifact_uid is not None

    @property
    def _to_read(self) -> int:
        return _READ_IN_DOCUMENT if self._inside_one else _READ

    def _highlighter(self, statistics: Statistics, weights: Weights) -> Highlighter:
        return Highlighter(
            self._lexemes,
            {lexeme: statistics.weight(lexeme) for lexeme in self._lexemes},
            related=related_lexemes(self._runtime.embedder, self._query, self._lexemes),
            by_stem=self._asked.by_stem,
            average_chunk=statistics.average_length,
            by_turns=weights.by_turns,
        )

    async def _by_words(self, weights: Weights) -> tuple[dict[str, float], Statistics]:
        """BM25 of chunks by their ids."""
        async with self._runtime.database.session() as session:
            statistics = await statistics_of(session, self._lexemes)
            if not self._asked.to_the_letter:
                unknown = [one for one in self._lexemes if not statistics.frequencies.get(one)]
                if more := await words_meant(session, self._query, unknown):
                    self._lexemes += [lexeme for lexeme in more if lexeme not in self._lexemes]
                    statistics = await statistics_of(session, self._lexemes)
            candidates = Candidates(
                session, self._asked, self._filters, statistics,
                limit=_READ_IN_DOCUMENT, length_weight=weights.length,
            )  # fmt: skip
            return await candidates.scores(self._lexemes), statistics

    async def _by_meaning(self) -> dict[str, float]:
        """Cosines by the ids of chunks, documents and memories."""
        names = [CollectionName.CHUNKS, CollectionName.ARTIFACTS]
        if self._with_memory:
            names.append(CollectionName.MEMORY)
        answers = await asyncio.gather(
            *(nearest(self._runtime, name, self._vector, self._filters, _NEAREST) for name in names)
        )
        return {hit.id: 1.0 - hit.distance for hits in answers for hit in hits}

    async def _cosines_of_windows(
        self, ranked: list[FoundWindow]
    ) -> dict[tuple[str, int, int], float]:
        """Cosines of the best windows, if embedding is cheap."""
        vector = self._vector
        if vector is None or not self._runtime.embedder.is_cheap:
            return {}
        best = ranked[:_COMPARED]
        embedded = await self._runtime.embedder.embed([_text_of(hit) for hit in best])
        return {
            (hit.row.key, hit.window.start, hit.window.end): sum(map(mul, vector, other))
            for hit, other in zip(best, embedded, strict=True)
        }

    async def _rows(self, keys: list[str]) -> dict[str, FoundChunk | MemoryRecord]:
        """The rows of these keys that Postgres has: it decides what exists."""
        # What the query excludes must not return by its meaning.
        letters = self._asked.words if self._asked.to_the_letter else None
        memories: list[MemoryRecord] = []
        async with self._runtime.database.session() as session:
            chunks = await session.rows(
                FoundChunk, "passages_by_id", ids=keys, letters=letters, **self._filters.for_sql()
            )
            if self._with_memory:
                memories = await self._memories(session, keys, letters)
        wanted = set(keys)
        row_by_key: dict[str, FoundChunk | MemoryRecord] = {}
        for row in chunks:
            # A document of several chunks is represented by these.
            whole = not row.is_chunked and row.artifact_id in wanted
            if row.chunk_id in wanted or whole:
                row_by_key[row.artifact_id if whole else row.chunk_id] = row
        return row_by_key | {row.memory_id: row for row in memories}

    async def _memories(
        self, session: Session, keys: list[str], letters: str | None
    ) -> list[MemoryRecord]:
        by_words = await best_memories(session, self._asked, words=MOST_WORDS, limit=_NEAREST)
        ids = [*keys, *(row.memory_id for row in by_words)]
        return await memories_by_id(session, ids, letters)


def _most_promising(
    scores: Mapping[str, float], cosines: Mapping[str, float], weights: Weights, limit: int
) -> list[str]:
    highest = max(scores.values(), default=0.0) or 1.0
    floor = min(cosines.values(), default=0.0)
    combined = {
        key: (1 - weights.meaning) * scores.get(key, 0.0) / highest
        + weights.meaning * cosines.get(key, floor)
        for key in {**scores, **cosines}
    }
    return sorted(combined, key=lambda key: (-combined[key], key))[:limit]


def _text_of(hit: FoundWindow) -> str:
    return hit.row.text[hit.window.start : hit.window.end]
