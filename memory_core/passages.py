"""Search over text: passages of latest revisions, and memories, by words and by meaning.

Postgres full text and Chroma's vectors each give a ranking; reciprocal rank fusion makes one of
them. Postgres has the last word on what exists and what is latest.
"""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from memory_core.database import Row
from memory_core.embedding import Vector
from memory_core.fusion import Fused, fuse
from memory_core.runtime import Runtime
from memory_core.text.nul import from_storable
from memory_core.vectors import CollectionName, Hit

Kind = Literal["artifact", "chunk", "memory"]
# How many candidates each ranking contributes per result wanted: old revisions and several
# passages of one document fall away afterwards.
_DEPTH_FACTOR = 4
_MIN_DEPTH = 40
# Where a filter applies, so many of the nearest are asked whether they pass.
_MORE_HITS = 600
_TEXT, _CHUNKS, _DOCUMENTS, _MEMORY_TEXT, _MEMORY_DENSE = (
    "full_text",
    "dense_chunks",
    "dense_artifacts",
    "memory_full_text",
    "dense_memory",
)


@dataclass(frozen=True, slots=True)
class Filters:
    artifact_uid: str | None = None
    artifact_type: str | None = None
    source_system: str | None = None
    time_from: datetime | None = None
    time_to: datetime | None = None

    def for_sql(self) -> dict[str, Any]:
        return {
            "artifact_uid": self.artifact_uid,
            "artifact_type": self.artifact_type,
            "source_system": self.source_system,
            "time_from": self.time_from,
            "time_to": self.time_to,
        }

    def for_chroma(self) -> dict[str, Any]:
        """There must be some."""
        conditions: list[dict[str, Any]] = []
        for name in ("artifact_uid", "artifact_type", "source_system"):
            if (value := getattr(self, name)) is not None:
                conditions.append({name: value})
        if self.time_from is not None:
            conditions.append({"time": {"$gte": self.time_from.timestamp()}})
        if self.time_to is not None:
            conditions.append({"time": {"$lte": self.time_to.timestamp()}})
        return conditions[0] if len(conditions) == 1 else {"$and": conditions}


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
    [vector] = await runtime.embedder.embed([query])
    passages, is_full = await _search(runtime, query, vector, filters, limit, depth, include_memory)
    if len(passages) < limit and is_full:
        # Superseded entries that were not moved out of the way, for want of Chroma perhaps.
        depth = max(depth, _MORE_HITS)
        passages, _ = await _search(runtime, query, vector, filters, limit, depth, include_memory)
    if expand_neighbors:
        passages = await _with_neighbors(runtime, passages)
    return passages


async def _search(
    runtime: Runtime,
    query: str,
    vector: Vector,
    filters: Filters,
    limit: int,
    depth: int,
    include_memory: bool,
) -> tuple[list[Passage], bool]:
    """The best passages; and whether Chroma would have had more."""
    # Memories have no source, type or time to filter by: a filtered search leaves them out.
    with_memory = include_memory and filters == Filters()
    text, chunks, documents, memory_text, memory_dense = await asyncio.gather(
        _full_text(runtime, query, filters, depth),
        _dense(runtime, CollectionName.CHUNKS, vector, filters, depth),
        _dense(runtime, CollectionName.ARTIFACTS, vector, filters, depth),
        _memory_full_text(runtime, query, depth if with_memory else 0),
        _memory_dense(runtime, vector, depth if with_memory else 0),
    )
    rankings = {
        _TEXT: text,
        _CHUNKS: chunks,
        _DOCUMENTS: documents,
        _MEMORY_TEXT: memory_text,
        _MEMORY_DENSE: memory_dense,
    }
    ranked = fuse(rankings, constant=runtime.settings.rrf_constant)
    found = await _load(runtime, _passage_candidates(ranked, depth), filters)
    passages = [passage for item in ranked if (passage := found(item)) is not None][:limit]
    return passages, depth in (len(chunks), len(documents))


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


async def _full_text(runtime: Runtime, query: str, filters: Filters, depth: int) -> list[str]:
    async with runtime.database.session() as session:
        rows = await session.all("search_chunks", query=query, limit=depth, **filters.for_sql())
    return [row["chunk_id"] for row in rows]


async def _dense(
    runtime: Runtime, name: CollectionName, vector: Vector, filters: Filters, depth: int
) -> list[str]:
    """The nearest that pass the filters. Chroma looks at every entry when it filters, so it is the
    last to be asked for that."""
    if filters == Filters():
        hits = await runtime.vectors.query(name, vector, limit=depth)
        return [hit.id for hit in hits]
    if filters.artifact_uid is not None:
        few = await _of_document(runtime, name, filters)
        if few is not None:
            hits = await runtime.vectors.compare(name, vector, few)
            return [hit.id for hit in hits][:depth]
    hits = await runtime.vectors.query(name, vector, limit=_MORE_HITS)
    async with runtime.database.session() as session:
        passing = await session.all(
            "chunks_passing" if name is CollectionName.CHUNKS else "documents_passing",
            ids=[hit.id for hit in hits],
            **filters.for_sql(),
        )
    known = {row["id"] for row in passing}
    found = [hit.id for hit in hits if hit.id in known]
    if len(found) < depth and len(hits) == _MORE_HITS:
        where = filters.for_chroma()
        hits = await runtime.vectors.query(name, vector, limit=depth, where=where)
        found = [hit.id for hit in hits]
    return found[:depth]


async def _of_document(
    runtime: Runtime, name: CollectionName, filters: Filters
) -> list[str] | None:
    """The entries of one document; None if they are many."""
    most = runtime.vectors.comparable
    async with runtime.database.session() as session:
        rows = await session.all("chunks_of_document", limit=most + 1, **filters.for_sql())
    if name is CollectionName.ARTIFACTS:
        return [row["artifact_id"] for row in rows[:1]]
    if len(rows) > most:
        return None
    return [row["chunk_id"] for row in rows if row["is_chunked"]]


async def _memory_full_text(runtime: Runtime, query: str, depth: int) -> list[str]:
    if not depth:
        return []
    async with runtime.database.session() as session:
        rows = await session.all("search_memory_words", query=query, limit=depth)
    return [row["memory_id"] for row in rows]


async def _memory_dense(runtime: Runtime, vector: list[float], depth: int) -> list[str]:
    if not depth:
        return []
    hits: list[Hit] = await runtime.vectors.query(CollectionName.MEMORY, vector, limit=depth)
    return [hit.id for hit in hits]


def _passage_candidates(ranked: list[Fused], depth: int) -> list[str]:
    return [item.key for item in ranked[: depth * 2]]


class _Found:
    """Fused keys turned into passages, dropping what Postgres does not know as latest."""

    def __init__(self, chunks: list[Row], memories: list[Row]) -> None:
        self._chunks = {row["chunk_id"]: row for row in chunks}
        # The document-level entry of a chunked document stands for its first chunk.
        self._openings = {
            row["artifact_id"]: row for row in chunks if row["is_chunked"] and row["is_opening"]
        }
        self._memories = {row["memory_id"]: row for row in memories}
        self._used: set[str] = set()

    def __call__(self, item: Fused) -> Passage | None:
        if (memory := self._memories.get(item.key)) is not None:
            return Passage(
                kind="memory",
                score=item.score,
                sources=item.sources,
                text=memory["content"],
                memory_id=memory["memory_id"],
                memory_type=memory["type"],
            )
        row = self._chunks.get(item.key) or self._openings.get(item.key)
        if row is None or row["chunk_id"] in self._used:
            return None
        self._used.add(row["chunk_id"])
        return _passage(row, item.score, item.sources)


async def _load(runtime: Runtime, keys: list[str], filters: Filters) -> _Found:
    async with runtime.database.session() as session:
        chunks = await session.all("passages_by_id", ids=keys, **filters.for_sql())
        memories = await session.all("memories_by_id", ids=keys)
    return _Found(chunks, memories)


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
