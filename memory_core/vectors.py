"""Chroma: the derived index for search by meaning. It can be rebuilt from Postgres at any time.

Always over HTTP: a persistent client in more than one process loses vectors silently.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

import httpx

from memory_core.chroma import ChromaClient, ChromaRefusal, Collection, NoSuchCollection
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


class VectorStore:
    def __init__(self, host: str, port: int, embedder: Embedder) -> None:
        self._client = ChromaClient(host, port, seconds=_CALL_SECONDS)
        self._embedder = embedder
        self._collections: dict[CollectionName, Collection] = {}

    async def heartbeat(self) -> None:
        async with self._faults():
            await self._client.heartbeat()

    async def count(self, name: CollectionName) -> int:
        return int(await self._with(name, lambda collection: collection.count()))

    async def upsert(self, name: CollectionName, entries: Sequence[Entry]) -> None:
        async def write(collection: Collection) -> None:
            for start in range(0, len(entries), _UPSERT_BATCH):
                batch = entries[start : start + _UPSERT_BATCH]
                await collection.upsert(
                    [entry.id for entry in batch],
                    [entry.vector for entry in batch],
                    [entry.document for entry in batch],
                    [dict(entry.metadata) for entry in batch],
                )

        await self._with(name, write)

    async def set_latest(self, name: CollectionName, ids: Sequence[str], *, latest: bool) -> None:
        """Mark entries as belonging to a latest revision or not. Missing ids are no error."""

        async def mark(collection: Collection) -> None:
            for start in range(0, len(ids), _UPSERT_BATCH):
                batch = list(ids[start : start + _UPSERT_BATCH])
                await collection.update(batch, [{"latest": latest}] * len(batch))

        await self._with(name, mark)

    async def delete(self, name: CollectionName, ids: Sequence[str]) -> None:
        """Ids that are not there are no error."""

        async def remove(collection: Collection) -> None:
            for start in range(0, len(ids), _UPSERT_BATCH):
                await collection.delete(ids[start : start + _UPSERT_BATCH])

        await self._with(name, remove)

    async def ids_where(self, name: CollectionName, where: dict[str, Any]) -> list[str]:
        """Ids of all entries with that metadata."""
        answer = await self._with(name, lambda collection: collection.get(where=where))
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
            lambda collection: collection.query(vector, limit, where),
        )
        return [
            Hit(id_, float(distance))
            for id_, distance in zip(answer["ids"][0], answer["distances"][0], strict=True)
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
            if name in await self._client.names():
                await self._client.drop(name)
            self._collections.pop(name, None)
            await self._collection(name)

    async def close(self) -> None:
        await self._client.close()

    async def _with(self, name: CollectionName, work: Callable[[Collection], Awaitable[T]]) -> T:
        """Do something with a collection; look it up again when `reindex` has replaced it."""
        async with self._faults():
            try:
                return await work(await self._collection(name))
            except NoSuchCollection:
                self._collections.pop(name, None)
                return await work(await self._collection(name))

    async def _collection(self, name: CollectionName) -> Collection:
        if name in self._collections:
            return self._collections[name]
        collection = await self._client.collection(name.value, self._label())
        self._refuse_other_model(name, collection.metadata)
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
        try:
            async with asyncio.timeout(_CALL_SECONDS):
                yield
        except (httpx.HTTPError, ChromaRefusal, TimeoutError, ValueError) as error:
            self._collections.clear()
            raise ChromaUnavailable(
                "Chroma does not answer as it should; nothing was written to Postgres. Is the "
                "stack running (`mcp-memory up`), or are CHROMA_HOST and CHROMA_PORT right? "
                "Try again in a moment.",
                details={"cause": f"{type(error).__name__}: {error}"[:300]},
            ) from error
