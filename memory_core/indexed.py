"""What should stand in Chroma for the rows of Postgres: one shelf per collection."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import UUID

from memory_core.artifacts.entries import PREVIEW_CHARS, entry_metadata, mean_vector
from memory_core.database import Row, Session
from memory_core.embedding import Vector
from memory_core.events.index import event_metadata, indexed_text
from memory_core.runtime import Runtime
from memory_core.vectors import CollectionName, Entry, Metadata

_PAGE = 500


@dataclass(frozen=True, slots=True)
class Expected:
    """An entry as it should be, but for its vector."""

    id: str
    writer: str  # whose lock everybody takes who writes it
    document: str | None  # None: its text is gone
    metadata: Metadata


class Shelf(ABC):
    collection: ClassVar[CollectionName]
    count_query: ClassVar[str]
    sample_query: ClassVar[str]
    ids_query: ClassVar[str]
    expected_query: ClassVar[str]
    first: ClassVar[str] = ""  # before every id

    async def counts(self, session: Session) -> list[int]:
        """By the parts that the collection has."""
        row = await session.one(self.count_query)
        assert row is not None
        return list(row.values())

    async def sample(self, session: Session, limit: int) -> list[str]:
        rows = await session.all(self.sample_query, limit=limit)
        return [str(row["id"]) for row in rows]

    async def pages(self, runtime: Runtime) -> AsyncIterator[list[str]]:
        """All ids, some at a time."""
        after = self.first
        while True:
            async with runtime.database.session() as session:
                rows = await session.all(self.ids_query, after=after, limit=_PAGE)
            if not rows:
                return
            yield [str(row["id"]) for row in rows]
            after = str(rows[-1]["id"])

    async def expected(self, session: Session, ids: Sequence[str]) -> dict[str, Expected]:
        """Those of these that Postgres knows of."""
        rows = await session.all(self.expected_query, **self._named(ids))
        return {row["id"]: self._expected(row) for row in rows}

    async def vectors(
        self, runtime: Runtime, session: Session, wanted: Sequence[Expected]
    ) -> list[Vector]:
        return await runtime.embedder.embed([entry.document or "" for entry in wanted])

    def writer(self, id_: str, metadata: Metadata) -> str:
        """Of an entry that Postgres knows nothing of."""
        return str(metadata.get("artifact_uid", id_))

    def _named(self, ids: Sequence[str]) -> dict[str, Any]:
        return {"ids": list(ids)}

    @abstractmethod
    def _expected(self, row: Row) -> Expected: ...


class Artifacts(Shelf):
    collection = CollectionName.ARTIFACTS
    count_query = "count_artifacts_in_index"
    sample_query = "sample_artifacts_in_index"
    ids_query = "artifact_ids_in_index"
    expected_query = "artifacts_expected"

    async def vectors(
        self, runtime: Runtime, session: Session, wanted: Sequence[Expected]
    ) -> list[Vector]:
        """The middle of the chunks' vectors, which are there already for the most part."""
        chunks = await session.all("chunks_of_artifacts", ids=[entry.id for entry in wanted])
        known = await runtime.vectors.vectors(
            CollectionName.CHUNKS, [chunk["chunk_id"] for chunk in chunks]
        )
        unknown = [chunk for chunk in chunks if chunk["chunk_id"] not in known]
        if unknown:
            made = await runtime.embedder.embed([chunk["text"] for chunk in unknown])
            known |= {
                chunk["chunk_id"]: vector for chunk, vector in zip(unknown, made, strict=True)
            }
        return [
            mean_vector([known[c["chunk_id"]] for c in chunks if c["artifact_id"] == entry.id])
            for entry in wanted
        ]

    def _named(self, ids: Sequence[str]) -> dict[str, Any]:
        return {"ids": list(ids), "preview": PREVIEW_CHARS}

    def _expected(self, row: Row) -> Expected:
        return Expected(row["id"], row["artifact_uid"], row["document"], text_metadata(row))


class Chunks(Shelf):
    collection = CollectionName.CHUNKS
    count_query = "count_chunks_in_index"
    sample_query = "sample_chunks_in_index"
    ids_query = "chunk_ids_in_index"
    expected_query = "chunks_expected"

    def _expected(self, row: Row) -> Expected:
        return Expected(row["id"], row["artifact_uid"], row["document"], chunk_metadata(row))


class Events(Shelf):
    collection = CollectionName.EVENTS
    count_query = "count_events_in_index"
    sample_query = "sample_events_in_index"
    ids_query = "event_ids_in_index"
    expected_query = "events_expected"
    first = str(UUID(int=0))

    def _named(self, ids: Sequence[str]) -> dict[str, Any]:
        return {"ids": list(_uuids(ids))}

    def _expected(self, row: Row) -> Expected:
        return Expected(
            row["id"],
            row["artifact_uid"],
            indexed_text(row["narrative"], row["document_title"]),
            event_metadata(
                row["artifact_uid"], row["revision_id"], row["category"], latest=row["is_latest"]
            ),
        )


class Memories(Shelf):
    collection = CollectionName.MEMORY
    count_query = "count_memories_in_index"
    sample_query = "sample_memories_in_index"
    ids_query = "memory_ids_in_index"
    expected_query = "memories_expected"

    def _expected(self, row: Row) -> Expected:
        metadata = {"type": row["type"], "confidence": row["confidence"]}
        return Expected(row["id"], row["id"], row["document"], metadata)


# Chunks before the documents that they make up.
SHELVES: tuple[Shelf, ...] = (Chunks(), Artifacts(), Events(), Memories())


def text_metadata(row: Row) -> dict[str, Any]:
    return entry_metadata(
        uid=row["artifact_uid"],
        revision=row["revision_id"],
        artifact_id=row["artifact_id"],
        artifact_type=row["artifact_type"],
        source_system=row["source_system"],
        time=row["time"],
        latest=row["is_latest"],
    )


def chunk_metadata(row: Row) -> dict[str, Any]:
    return {
        **text_metadata(row),
        "chunk_index": row["chunk_index"],
        "start_char": row["start_char"],
        "end_char": row["end_char"],
    }


def entries(wanted: Sequence[Expected], vectors: Sequence[Vector]) -> list[Entry]:
    return [
        Entry(entry.id, vector, entry.document or "", entry.metadata)
        for entry, vector in zip(wanted, vectors, strict=True)
    ]


def _uuids(ids: Sequence[str]) -> Iterable[UUID]:
    """What is no UUID is no event of ours."""
    for id_ in ids:
        try:
            yield UUID(id_)
        except ValueError:
            continue
