"""Chroma: the derived index for search by meaning. It can be rebuilt from Postgres at any time.

Always over HTTP: a persistent client in more than one process loses vectors silently.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from memory_core.chroma import (
    ChromaClient,
    ChromaFault,
    ChromaRefusal,
    Collection,
    NoSuchCollection,
)
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
class Stored:
    """What an entry says, beside its vector."""

    document: str | None
    metadata: Metadata


@dataclass(frozen=True, slots=True)
class Hit:
    """`distance` is the cosine distance: 0 is the same direction."""

    id: str
    distance: float


class VectorStore:
    def __init__(self, host: str, port: int, embedder: Embedder) -> None:
        self._client = ChromaClient(host, port)
        self._embedder = embedder
        self._collections: dict[CollectionName, Collection] = {}

    async def heartbeat(self) -> None:
        async with self._faults():
            await self._client.heartbeat()

    async def count(self, name: CollectionName) -> int:
        return int(await self._with(name, lambda collection: collection.count()))

    async def upsert(
        self, name: CollectionName, entries: Sequence[Entry], *, beside: bool = False
    ) -> None:
        """With `beside`, into the collection that is to take over (`start_beside`)."""

        async def write(collection: Collection) -> None:
            for start in range(0, len(entries), _UPSERT_BATCH):
                batch = entries[start : start + _UPSERT_BATCH]
                await collection.upsert(
                    [entry.id for entry in batch],
                    [entry.vector for entry in batch],
                    [entry.document for entry in batch],
                    [dict(entry.metadata) for entry in batch],
                )

        if beside:
            async with self._faults():
                await write(await self._beside(name))
        else:
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

    async def stored(self, name: CollectionName, ids: Sequence[str]) -> dict[str, Stored]:
        """What those of these entries say that are there."""
        return _told(
            await self._with(
                name,
                lambda collection: collection.get(
                    ids=list(ids), include=["documents", "metadatas"]
                ),
            )
        )

    async def present(self, name: CollectionName, ids: Sequence[str]) -> set[str]:
        """Those of these entries that are there."""
        answer = await self._with(name, lambda collection: collection.get(ids=list(ids)))
        return set(answer["ids"])

    async def page(self, name: CollectionName, offset: int, limit: int) -> dict[str, Stored]:
        """Entries in the order they came, from a place on. Empty after the last."""
        return _told(
            await self._with(
                name,
                lambda collection: collection.get(
                    limit=limit, offset=offset, include=["documents", "metadatas"]
                ),
            )
        )

    async def start_beside(self, name: CollectionName) -> None:
        """Make an empty collection for the configured model that is to take the other's place."""
        async with self._faults():
            if _beside(name) in await self._client.names():
                await self._client.drop(_beside(name))
            await self._beside(name)

    async def take_over(self, name: CollectionName) -> None:
        """The collection beside becomes the one in use; only then the old one goes. What was
        written to the old one meanwhile is lost with it."""
        async with self._faults():
            fresh, retiring = await self._beside(name), f"{name.value}_old"
            names = await self._client.names()
            if retiring in names:
                await self._client.drop(retiring)
            if name.value in names:
                old = await self._client.collection(name.value, self._label())
                await self._client.rename(old, retiring)
            try:
                await self._client.rename(fresh, name.value)
            except ChromaRefusal:
                # Somebody looked for the collection in this moment, and so made an empty one.
                await self._client.drop(name.value)
                await self._client.rename(fresh, name.value)
            if name.value in names:
                await self._client.drop(retiring)
            self._collections.pop(name, None)

    async def _beside(self, name: CollectionName) -> Collection:
        return await self._client.collection(_beside(name), self._label())

    async def recreate(self, name: CollectionName) -> None:
        """Drop the collection and make it anew, empty, for the configured model."""
        async with self._faults():
            if name in await self._client.names():
                await self._client.drop(name)
            self._collections.pop(name, None)
            await self._collection(name)

    async def close(self) -> None:
        self._client.close()

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
        except (ChromaFault, TimeoutError, ValueError) as error:
            self._collections.clear()
            raise ChromaUnavailable(
                "Chroma does not answer as it should; nothing was written to Postgres. Is the "
                "stack running (`mcp-memory up`), or are CHROMA_HOST and CHROMA_PORT right? "
                "Try again in a moment.",
                details={"cause": (str(error) or type(error).__name__)[:300]},
            ) from error


def _beside(name: CollectionName) -> str:
    return f"{name.value}_new"


def _told(answer: dict[str, Any]) -> dict[str, Stored]:
    told = zip(answer["ids"], answer["documents"], answer["metadatas"], strict=True)
    return {id_: Stored(document, metadata or {}) for id_, document, metadata in told}
