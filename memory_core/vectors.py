"""Chroma: the derived index for search by meaning. It can be rebuilt from Postgres at any time.

Always over HTTP: a persistent client in more than one process loses vectors silently.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from memory_core.embedding import Embedder, Vector
from memory_core.errors import ChromaUnavailable, EmbeddingMismatch

T = TypeVar("T")
Metadata = Mapping[str, str | int | float | bool]
_UPSERT_BATCH = 1000
_CALL_SECONDS = 60.0


class CollectionName(StrEnum):
    MEMORY = "memory"
    ARTIFACTS = "artifacts"
    CHUNKS = "artifact_chunks"
    EVENTS = "events"


@dataclass(frozen=True, slots=True)
class Entry:
    id: str
    vector: Vector
    document: str
    metadata: Metadata


@dataclass(frozen=True, slots=True)
class Hit:
    """`distance` is the cosine distance: 0 is the same direction."""

    id: str
    distance: float
    metadata: Metadata


class VectorStore:
    def __init__(self, host: str, port: int, embedder: Embedder) -> None:
        self._host, self._port = host, port
        self._embedder = embedder
        self._client: Any = None
        self._collections: dict[CollectionName, Any] = {}
        self._opening = asyncio.Lock()

    async def heartbeat(self) -> None:
        async with self._faults():
            await (await self._connected()).heartbeat()

    async def count(self, name: CollectionName) -> int:
        return int(await self._with(name, lambda collection: collection.count()))

    async def upsert(self, name: CollectionName, entries: Sequence[Entry]) -> None:
        async def write(collection: Any) -> None:
            for start in range(0, len(entries), _UPSERT_BATCH):
                batch = entries[start : start + _UPSERT_BATCH]
                await collection.upsert(
                    ids=[entry.id for entry in batch],
                    embeddings=[entry.vector for entry in batch],
                    documents=[entry.document for entry in batch],
                    metadatas=[dict(entry.metadata) for entry in batch],
                )

        await self._with(name, write)

    async def set_latest(self, name: CollectionName, ids: Sequence[str], *, latest: bool) -> None:
        """Mark entries as belonging to a latest revision or not. Missing ids are no error."""

        async def mark(collection: Any) -> None:
            for start in range(0, len(ids), _UPSERT_BATCH):
                batch = list(ids[start : start + _UPSERT_BATCH])
                await collection.update(ids=batch, metadatas=[{"latest": latest}] * len(batch))

        await self._with(name, mark)

    async def delete(self, name: CollectionName, ids: Sequence[str]) -> None:
        """Ids that are not there are no error."""

        async def remove(collection: Any) -> None:
            for start in range(0, len(ids), _UPSERT_BATCH):
                await collection.delete(ids=list(ids[start : start + _UPSERT_BATCH]))

        await self._with(name, remove)

    async def ids_where(self, name: CollectionName, where: dict[str, Any]) -> list[str]:
        """Ids of all entries with that metadata."""
        answer = await self._with(name, lambda collection: collection.get(where=where, include=[]))
        return list(answer["ids"])

    async def query(
        self,
        name: CollectionName,
        vector: Vector,
        *,
        limit: int,
        where: dict[str, Any] | None = None,
    ) -> list[Hit]:
        """Nearest first."""
        answer = await self._with(
            name,
            lambda collection: collection.query(
                query_embeddings=[vector],
                n_results=limit,
                where=where,
                include=["distances", "metadatas"],
            ),
        )
        return [
            Hit(id=id_, distance=float(distance), metadata=metadata or {})
            for id_, distance, metadata in zip(
                answer["ids"][0], answer["distances"][0], answer["metadatas"][0], strict=True
            )
        ]

    async def vectors(self, name: CollectionName, ids: Sequence[str]) -> dict[str, Vector]:
        """Stored vectors of those ids that are there."""
        answer = await self._with(
            name, lambda collection: collection.get(ids=list(ids), include=["embeddings"])
        )
        return {
            id_: [float(value) for value in vector]
            for id_, vector in zip(answer["ids"], answer["embeddings"], strict=True)
        }

    async def recreate(self, name: CollectionName) -> None:
        """Drop the collection and make it anew for the configured model (`reindex`)."""
        async with self._faults():
            client = await self._connected()
            existing = {collection.name for collection in await client.list_collections()}
            if name in existing:
                await client.delete_collection(name)
            self._collections.pop(name, None)
            await self._collection(name)

    async def _with(self, name: CollectionName, work: Callable[[Any], Awaitable[T]]) -> T:
        """Do something with a collection; look it up again when `reindex` has replaced it."""
        from chromadb.errors import NotFoundError

        async with self._faults():
            try:
                return await work(await self._collection(name))
            except NotFoundError:
                self._collections.pop(name, None)
                return await work(await self._collection(name))

    async def _connected(self) -> Any:
        async with self._opening:
            if self._client is None:
                import chromadb
                from chromadb.config import Settings as ChromaSettings

                self._client = await chromadb.AsyncHttpClient(
                    host=self._host,
                    port=self._port,
                    settings=ChromaSettings(anonymized_telemetry=False),
                )
        return self._client

    async def _collection(self, name: CollectionName) -> Any:
        if name in self._collections:
            return self._collections[name]
        client = await self._connected()
        collection = await client.get_or_create_collection(
            name=name.value,
            # Vectors are always ours; left to itself Chroma would download a model.
            embedding_function=None,
            configuration={"hnsw": {"space": "cosine"}},
            metadata=self._label(),
        )
        self._refuse_other_model(name, collection.metadata or {})
        self._collections[name] = collection
        return collection

    def _label(self) -> dict[str, str | int]:
        return {
            "provider": self._embedder.provider,
            "model": self._embedder.model,
            "dimension": self._embedder.dimension,
        }

    def _refuse_other_model(self, name: CollectionName, found: Mapping[str, Any]) -> None:
        wanted = self._label()
        if any(found.get(key) != value for key, value in wanted.items()):
            raise EmbeddingMismatch(
                f"The collection {name.value!r} was made with {found.get('provider')}/"
                f"{found.get('model')} ({found.get('dimension')} dimensions), but the settings "
                f"name {wanted['provider']}/{wanted['model']} ({wanted['dimension']}). Vectors of "
                "two models cannot be mixed: run `mcp-memory reindex`, or restore the settings.",
                details={"collection": name.value, "found": dict(found), "configured": wanted},
            )

    @asynccontextmanager
    async def _faults(self) -> AsyncIterator[None]:
        """Turn every failure of Chroma into ours."""
        import httpx
        from chromadb.errors import ChromaError

        try:
            async with asyncio.timeout(_CALL_SECONDS):
                yield
        except (httpx.HTTPError, ChromaError, ConnectionError, TimeoutError, ValueError) as error:
            self._collections.clear()
            raise ChromaUnavailable(
                "Chroma does not answer as it should; nothing was written to Postgres. Is the "
                "stack running (`mcp-memory up`), or are CHROMA_HOST and CHROMA_PORT right? "
                "Try again in a moment.",
                details={"cause": f"{type(error).__name__}: {error}"[:300]},
            ) from error
