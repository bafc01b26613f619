"""Searching text: passages of latest revisions, and memories, by words and by meaning.

Postgres full text and Chroma's vectors each give a ranking; reciprocal rank fusion makes one of
them. Postgres has the last word on what exists and what is latest.
"""

import asyncio
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from memory_core.database import Row
from memory_core.embedding import Vector
from memory_core.fusion import Fused, fuse
from memory_core.passages.filters import Filters
from memory_core.passages.meaning import nearest
from memory_core.passages.words import best_chunks
from memory_core.runtime import Runtime
from memory_core.text.nul import from_storable
from memory_core.typed import Asked, understand
from memory_core.vectors import CollectionName

Kind = Literal["artifact", "chunk", "memory"]
# How many candidates each ranking contributes per result wanted: old revisions and several
# passages of one document fall away afterwards.
_DEPTH_FACTOR = 4
_MIN_DEPTH = 40
# And where too few of these are left.
_MORE_HITS = 600
# So many more than are wanted are read at first.
_SPARE = 10
# Memories are looked through for so many of the words at most.
_MEMORY_WORDS = 32
_TEXT, _CHUNKS, _DOCUMENTS, _MEMORY_TEXT, _MEMORY_DENSE = (
    "full_text",
    "dense_chunks",
    "dense_artifacts",
    "memory_full_text",
    "dense_memory",
)


@dataclass(frozen=True, slots=True)
class Passage:
    kind: Kind
    score: float
    sources: tuple[str, ...]
    text: str
    artifact_uid: str | None = None
    artifact_id: str | None = None
    revision_id: str | None = None
    chunk_id: str | None = None
    start_char: int | None = None
    end_char: int | None = None
    title: str | None = None
    artifact_type: str | None = None
    source_system: str | None = None
    source_ts: datetime | None = None
    memory_id: str | None = None
    memory_type: str | None = None
    neighbors: list["Passage"] = field(default_factory=list)


async def hybrid_search(
    runtime: Runtime,
    query: str,
    filters: Filters,
    *,
    limit: int,
    include_memory: bool,
    expand_neighbors: bool = False,
) -> list[Passage]:
    depth = max(_MIN_DEPTH, limit * _DEPTH_FACTOR)
    [vector], asked = await asyncio.gather(
        runtime.embedder.embed([query]), _understand(runtime, query)
    )
    # Memories have no source, type or time to filter by: a filtered search leaves them out.
    with_memory = include_memory and filters == Filters()
    search = _Search(runtime, asked, vector, filters, with_memory=with_memory)
    passages, is_full = await search.best(limit, depth)
    if len(passages) < limit and is_full:
        # Superseded entries that were not moved out of the way, for want of Chroma perhaps; or
        # what a query that is taken to the letter excludes.
        passages, _ = await search.best(limit, max(depth, _MORE_HITS))
    if not passages and asked.to_the_letter and not asked.excludes:
        # Few quote exactly, and nobody is helped by nothing: then it is taken for a sentence.
        loose = replace(search, asked=await _understand(runtime, query, literally=False))
        passages, _ = await loose.best(limit, depth)
    if expand_neighbors:
        passages = await _with_neighbors(runtime, passages)
    return passages


async def artifact_search(
    runtime: Runtime, query: str, filters: Filters, *, limit: int
) -> list[Passage]:
    """One hit per artifact: its best passage."""
    passages = await hybrid_search(
        runtime, query, filters, limit=limit * _DEPTH_FACTOR, include_memory=False
    )
    best: dict[str, Passage] = {}
    for passage in passages:
        assert passage.artifact_uid is not None
        best.setdefault(passage.artifact_uid, passage)
    return list(best.values())[:limit]


async def _understand(runtime: Runtime, query: str, *, literally: bool = True) -> Asked:
    async with runtime.database.session() as session:
        return await understand(
            session, query, counting="count_words_of_chunks", uncounted=1, literally=literally
        )


@dataclass(frozen=True, slots=True)
class _Search:
    runtime: Runtime
    asked: Asked
    vector: Vector
    filters: Filters
    with_memory: bool

    async def best(self, limit: int, depth: int) -> tuple[list[Passage], bool]:
        """The best passages of rankings as deep as that; and whether Chroma would have had more."""
        text, chunks, documents, memory_text, memory_dense = await asyncio.gather(
            self._full_text(depth),
            nearest(self.runtime, CollectionName.CHUNKS, self.vector, self.filters, depth),
            nearest(self.runtime, CollectionName.ARTIFACTS, self.vector, self.filters, depth),
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

    async def _full_text(self, depth: int) -> list[str]:
        async with self.runtime.database.session() as session:
            return await best_chunks(session, self.asked, self.filters, depth)

    async def _memory_full_text(self, depth: int) -> list[str]:
        asked = self.asked
        each_word = list(asked.every_word[:_MEMORY_WORDS])
        any_word = " | ".join(f"({word})" for word in each_word)
        words = asked.words if asked.to_the_letter else any_word
        if not self.with_memory or asked.is_open_ended or not words:
            return []
        async with self.runtime.database.session() as session:
            rows = await session.all("best_memories", words=words, each_word=each_word, limit=depth)
        return [row["memory_id"] for row in rows]

    async def _memory_dense(self, depth: int) -> list[str]:
        if not self.with_memory:
            return []
        hits = await self.runtime.vectors.query(CollectionName.MEMORY, self.vector, limit=depth)
        return [hit.id for hit in hits]

    async def _load(self, ranked: list[Fused], limit: int) -> list[Passage]:
        """The best that Postgres knows of, read as far as they are wanted: most of the first are
        there. A document and its first chunk are one passage."""
        best: dict[str, Passage] = {}
        start, step = 0, limit + _SPARE
        while len(best) < limit and start < len(ranked):
            some = ranked[start : start + step]
            rows = await self._rows([item.key for item in some])
            for item in some:
                if (row := rows.get(item.key)) is not None:
                    shown = row["chunk_id"] if "chunk_id" in row else row["memory_id"]
                    best.setdefault(shown, _passage(row, item.score, item.sources))
            start, step = start + step, 2 * step
        return list(best.values())[:limit]

    async def _rows(self, keys: list[str]) -> dict[str, Row]:
        # What the query excludes must not come back by its meaning.
        letters = self.asked.words if self.asked.to_the_letter else None
        memories: list[Row] = []
        async with self.runtime.database.session() as session:
            chunks = await session.all(
                "passages_by_id", ids=keys, letters=letters, **self.filters.for_sql()
            )
            if self.with_memory:
                memories = await session.all("memories_by_id", ids=keys, letters=letters)
        return {
            **{row["artifact_id"]: row for row in chunks if row["is_opening"]},
            **{row["chunk_id"]: row for row in chunks},
            **{row["memory_id"]: row for row in memories},
        }


async def _with_neighbors(runtime: Runtime, passages: list[Passage]) -> list[Passage]:
    ids = [passage.chunk_id for passage in passages if passage.chunk_id is not None]
    async with runtime.database.session() as session:
        rows = await session.all("neighbors_of_chunks", ids=ids)
    beside: dict[str, list[Passage]] = {}
    for row in rows:
        beside.setdefault(row["of_chunk"], []).append(_passage(row, 0.0, ()))
    return [
        Passage(**{**_fields(passage), "neighbors": beside.get(passage.chunk_id or "", [])})
        for passage in passages
    ]


def _fields(passage: Passage) -> dict[str, Any]:
    return {name: getattr(passage, name) for name in Passage.__dataclass_fields__}


def _passage(row: Row, score: float, sources: tuple[str, ...]) -> Passage:
    if "memory_id" in row:
        return Passage(
            kind="memory",
            score=score,
            sources=sources,
            text=row["content"],
            memory_id=row["memory_id"],
            memory_type=row["type"],
        )
    start, end = row["start_char"], row["end_char"]
    nuls = [at - start for at in row["nul_positions"] if start <= at < end]
    return Passage(
        kind="chunk" if row["is_chunked"] else "artifact",
        score=score,
        sources=sources,
        text=from_storable(row["text"], nuls),
        artifact_uid=row["artifact_uid"],
        artifact_id=row["artifact_id"],
        revision_id=row["revision_id"],
        chunk_id=row["chunk_id"] if row["is_chunked"] else None,
        start_char=start,
        end_char=end,
        title=row["title"],
        artifact_type=row["artifact_type"],
        source_system=row["source_system"],
        source_ts=row["source_ts"],
    )
