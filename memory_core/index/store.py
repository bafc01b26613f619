"""The collections in Chroma: what searches read, and what the index writes.

Always over HTTP: a persistent client in more than one process loses vectors silently. Chroma stores
no text, only ids, vectors, a hash, and metadata for filters.
"""

import asyncio
import base64
import contextlib
import time
from array import array
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Protocol

from memory_core.embedding import Embedder, Vector
from memory_core.index.chroma import (
    ChromaClient,
    ChromaFault,
    ChromaRefusal,
    Collection,
    NoSuchCollection,
)
from memory_core.index.generation import CollectionName, Generation, label_of
from memory_core.kernel import principal
from memory_core.kernel.database import Database
from memory_core.kernel.errors import ChromaUnavailable, EmbeddingMismatch, ForeignCollection
from memory_core.kernel.ids import is_uuid
from memory_core.kernel.principal import Principal

Marks = Mapping[str, str | int | float | bool]
_UPSERT_BATCH = 1000
# Vectors are read as decimal text, at most this many numbers at a time.
_READ_NUMBERS = 200_000
# Entries that are compared one by one; fewer if the vectors are very long.
COMPARED = 300
_COMPARED_NUMBERS = 300_000
# Writers wait long; a search falls back to words instead.
WRITE_SECONDS = 60.0
ANSWER_SECONDS = 5.0
# After a time-out, searches do not ask Chroma again for this long.
_SHUN_SECONDS = 5.0
# A search may ask the previous generation for this long.
_SERVING_SECONDS = 1.0
_SHORTEST = 1e-12  # an empty vector has no direction
# Used where some of a tenant's entries are hidden from the principal. First this many of the
# nearest are requested. If too few are visible, the request names all visible entries, up to the
# second number. If there are more, the third number of nearest is requested.
_NEAREST, _NAMED, _MOST = 600, 10_000, 3_000
# The number of principals whose collections are cached.
_REMEMBERED = 1_000


@dataclass(frozen=True, slots=True)
class IndexEntry:
    id: str
    vector: Vector
    hash: str
    marks: Marks


@dataclass(frozen=True, slots=True)
class Hit:
    """`distance` is the cosine distance: 0 means the same direction."""

    id: str
    distance: float


@dataclass(frozen=True, slots=True)
class _Serving(Generation):
    """`is_made`: the tenant has collections. `sees_all`: the principal may see all their
    entries."""

    sees_all: bool
    is_made: bool


class VectorStore:
    def __init__(self, host: str, port: int, embedder: Embedder, database: Database) -> None:
        self._client = ChromaClient(host, port)
        self._embedder, self._database = embedder, database
        self._collections: dict[str, Collection] = {}
        self._serving: dict[Principal, tuple[_Serving, float]] = {}
        self._shunned_until = 0.0

    async def heartbeat(self) -> None:
        async with self._faults():
            await self._client.heartbeat()

    async def close(self) -> None:
        await self._client.close()

    # For searches: the collections of the principal's tenant in the serving generation.

    async def count(self, name: CollectionName) -> int:
        """0 for a tenant that has stored nothing yet."""
        async with self._database.session() as session:
            serving = await session.row(_Serving, "serving_collections")
        return int(await self._ask(name, "count")) if serving and serving.is_made else 0

    async def query(
        self,
        name: CollectionName,
        vector: Vector,
        *,
        limit: int,
        where: dict[str, Any] | None = None,
    ) -> list[Hit]:
        """The nearest entries that the principal may see; hidden ones do not count. With `where`,
        Chroma looks at every entry."""
        serving = await self._serves()
        if not serving.is_made:
            return []
        if serving.sees_all:
            return await self._nearest(name, vector, limit, where)
        seen: list[Hit] = []
        for number in dict.fromkeys((limit, max(limit, _NEAREST), max(limit, _MOST))):
            hits = await self._nearest(name, vector, number, where)
            seen = await self._seen(hits)
            if len(seen) >= limit or len(hits) < number:
                break
            if _NEAREST <= number < _MOST:
                named = await self._nearest_of_visible(name, vector, limit, where)
                if named is not None:
                    return named
        return seen[:limit]

    async def _nearest(
        self,
        name: CollectionName,
        vector: Vector,
        limit: int,
        where: dict[str, Any] | None,
        ids: Sequence[str] | None = None,
    ) -> list[Hit]:
        asked = {"query_embeddings": [vector], "n_results": limit, "include": ["distances"]}
        answer = await self._ask(name, "query", **asked, where=where, ids=ids)
        return _nearest_first(zip(answer["ids"][0], answer["distances"][0], strict=True))

    async def _seen(self, hits: Sequence[Hit]) -> list[Hit]:
        ids = [hit.id for hit in hits]
        events = [id_ for id_ in ids if is_uuid(id_)]
        async with self._database.session() as session:
            seen = set(await session.values(str, "visible_entries", ids=ids, events=events))
        return [hit for hit in hits if hit.id in seen]

    async def _nearest_of_visible(
        self, name: CollectionName, vector: Vector, limit: int, where: dict[str, Any] | None
    ) -> list[Hit] | None:
        """The nearest among all visible entries; None if these are too many, or some have no vector
        yet."""
        async with self._database.session() as session:
            ids = await session.values(
                str, "all_visible_entries", collection=name.value, limit=_NAMED + 1
            )
        if len(ids) > _NAMED:
            return None
        if where is None and len(ids) <= self.comparable:
            return (await self.compare(name, vector, ids))[:limit]
        return await self.among(name, vector, ids, limit=limit, where=where)

    async def among(
        self,
        name: CollectionName,
        vector: Vector,
        ids: Sequence[str],
        *,
        limit: int,
        where: dict[str, Any] | None = None,
    ) -> list[Hit] | None:
        """The nearest of these entries, searched by Chroma: for many entries faster than `compare`.
        None if some of them do not exist."""
        try:
            return await self._nearest(name, vector, limit, where, ids) if ids else []
        except ChromaUnavailable as fault:
            # Chroma refuses a query with an id that does not exist.
            if type(fault.__cause__) is ChromaRefusal:
                return None
            raise

    @property
    def comparable(self) -> int:
        """How many entries may be compared one by one."""
        return min(COMPARED, _COMPARED_NUMBERS // self._embedder.dimension)

    async def compare(self, name: CollectionName, vector: Vector, ids: Sequence[str]) -> list[Hit]:
        """The nearest of these entries, computed here: for few entries, much faster than a
        filter."""
        stored = await self.vectors(name, ids)
        distances = _distances(vector, list(stored.values()))
        return _nearest_first(zip(stored, distances, strict=True))

    async def vectors(self, name: CollectionName, ids: Sequence[str]) -> dict[str, Vector]:
        """The stored vectors of the ids that exist."""
        stored: dict[str, Vector] = {}
        for batch in self._batches(ids):
            answer = await self._ask(name, "get", ids=batch, include=["embeddings"])
            stored |= zip(answer["ids"], answer["embeddings"], strict=True)
        return stored

    # For the index: writes and checks, by the names of collections in Chroma.

    async def make(self, names: Iterable[str], label: dict[str, str | int]) -> None:
        async with self._faults():
            for name in names:
                await self._client.make(name, label)

    async def drop(self, names: Iterable[str]) -> None:
        """Drop those of these collections that exist. A collection without our label is not
        ours."""
        async with self._faults():
            there = await self._client.labels()
            for name in names:
                self._collections.pop(name, None)
                if is_labelled(there.get(name)):
                    with contextlib.suppress(NoSuchCollection):
                        await self._client.drop(name)

    async def labels(self) -> dict[str, dict[str, Any]]:
        async with self._faults():
            return await self._client.labels()

    async def upsert(self, collection: str, entries: Sequence[IndexEntry]) -> None:
        for start in range(0, len(entries), _UPSERT_BATCH):
            batch = entries[start : start + _UPSERT_BATCH]
            await self.on(
                collection,
                "upsert",
                ids=[entry.id for entry in batch],
                embeddings=[_packed(entry.vector) for entry in batch],
                metadatas=[{"hash": entry.hash, **entry.marks} for entry in batch],
            )

    async def delete(self, collection: str, ids: Sequence[str]) -> None:
        """Ids that do not exist are no error."""
        for start in range(0, len(ids), _UPSERT_BATCH):
            await self.on(collection, "delete", ids=ids[start : start + _UPSERT_BATCH])

    async def size(self, collection: str) -> int:
        return int(await self.on(collection, "count"))

    async def hashes(self, collection: str, **which: Any) -> dict[str, str | None]:
        """Hashes by id: of those `ids` that exist, or of `limit` entries from `offset` on, in order
        of insertion."""
        answer = await self.on(collection, "get", include=["metadatas"], **which)
        entries = zip(answer["ids"], answer["metadatas"], strict=True)
        return {id_: (metadata or {}).get("hash") for id_, metadata in entries}

    async def on(self, collection: str, action: str, **body: Any) -> Any:
        """Call a collection by its name in Chroma. Raises NoSuchCollection if there is none."""
        async with self._faults():
            if collection in self._collections:
                try:
                    return await self._collections[collection].call(action, **body)
                except NoSuchCollection:
                    del self._collections[collection]
            listed = await self._client.find(collection)
            if not is_labelled(listed.metadata):
                raise _foreign(collection)
            self._collections[collection] = listed
            return await listed.call(action, **body)

    async def _ask(self, name: CollectionName, action: str, **body: Any) -> Any:
        """Ask the serving generation; if it was replaced meanwhile, ask the new one."""
        if time.monotonic() < self._shunned_until:
            raise _unavailable(TimeoutError("no answer a moment ago"))
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                try:
                    return await self.on(await self._own(name), action, **body)
                except NoSuchCollection:
                    self._serving.clear()
                    return await self.on(await self._own(name), action, **body)
        except TimeoutError as error:
            self._shunned_until = time.monotonic() + _SHUN_SECONDS
            raise _unavailable(error) from error
        except NoSuchCollection as error:
            raise _unavailable(error) from error

    async def _own(self, name: CollectionName) -> str:
        tenant = principal.current().tenant_id
        return (await self._serves()).name_in_chroma(name, tenant)

    async def _serves(self) -> _Serving:
        asking, now = principal.current(), time.monotonic()
        serving, since = self._serving.get(asking, (None, 0.0))
        if serving is None or now - since > _SERVING_SECONDS:
            async with self._database.session() as session:
                serving = await session.row(_Serving, "serving_collections")
            if serving is None:
                raise ChromaUnavailable(
                    "The index is not made yet: searches use words alone until it is.",
                )
            refuse_other_model(serving, self._embedder)
            if len(self._serving) >= _REMEMBERED:
                self._serving.clear()
            # What a tenant stores first must be found at once.
            if serving.is_made:
                self._serving[asking] = serving, now
        return serving

    def _batches(self, ids: Sequence[str]) -> Iterator[list[str]]:
        size = max(_READ_NUMBERS // self._embedder.dimension, 1)
        return (list(ids[start : start + size]) for start in range(0, len(ids), size))

    @asynccontextmanager
    async def _faults(self) -> AsyncIterator[None]:
        """Turn every failure of Chroma into ours, except for a missing collection."""
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                yield
        except NoSuchCollection:
            raise
        except ChromaRefusal as error:
            raise _unavailable(error) from error
        except (ChromaFault, TimeoutError, ValueError) as error:
            self._collections.clear()
            raise _unavailable(error) from error


def _unavailable(error: Exception) -> ChromaUnavailable:
    return ChromaUnavailable(
        "Chroma does not answer as it should. Documents are stored and found by their words "
        "meanwhile. Is the stack running (`mcp-memory up`), or are CHROMA_HOST and CHROMA_PORT "
        "right?",
        details={"cause": (str(error) or type(error).__name__)[:300]},
    )


def _foreign(collection: str) -> ForeignCollection:
    return ForeignCollection(
        f"Chroma has a collection {collection!r} that this version did not make; it was left as it "
        "is, and nothing was written. Give this version a Chroma of its own; docs/from-v2.md has "
        "the steps where version 2 made it.",
        details={"collection": collection},
    )


def refuse_other_model(generation: Generation, embedder: Embedder) -> None:
    if not generation.fits(embedder):
        made_with, wanted = generation.label, label_of(embedder)
        raise EmbeddingMismatch(
            f"The index was made with {made_with['provider']}/{made_with['model']} "
            f"({made_with['dimension']} dimensions), but the settings name {wanted['provider']}/"
            f"{wanted['model']} ({wanted['dimension']}). Searches use words alone until "
            "`mcp-memory reindex` has made it for the new model, or the settings are restored.",
            details={"found": made_with, "configured": wanted},
        )


def is_labelled(metadata: Mapping[str, Any] | None) -> bool:
    """Whether this product made the collection, in this version or an earlier one."""
    return metadata is not None and {"provider", "model", "dimension"} <= metadata.keys()


def _packed(vector: Vector) -> str:
    """Little-endian 32-bit floats in base64: a quarter of the size of decimal text."""
    return base64.b64encode(array("f", vector).tobytes()).decode()


def _nearest_first(distances: Iterable[tuple[str, float]]) -> list[Hit]:
    nearest = sorted(dict(distances).items(), key=itemgetter(1))
    return [Hit(id_, float(distance)) for id_, distance in nearest]


def _distances(vector: Vector, vectors: Sequence[Vector]) -> list[float]:
    """Cosine distances, as Chroma computes them."""
    if not vectors:
        return []
    import numpy as np

    asked, others = np.asarray(vector), np.asarray(vectors)
    lengths = np.linalg.norm(others, axis=1) * np.linalg.norm(asked)
    distances: list[float] = (1.0 - others @ asked / np.maximum(lengths, _SHORTEST)).tolist()
    return distances


class IndexParts(Protocol):
    """What the index works with. A `Runtime` is one."""

    @property
    def database(self) -> Database: ...
    @property
    def vectors(self) -> VectorStore: ...
    @property
    def embedder(self) -> Embedder: ...
