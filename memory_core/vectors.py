"""Chroma: the derived index for search by meaning. It can be rebuilt from Postgres at any time.

Always over HTTP: a persistent client in more than one process loses vectors silently.

What has revisions is kept in two parts: the entries of latest revisions, and those of superseded
ones. The usual question is about the first alone, where nothing has to be passed over: Chroma looks
at all entries whenever it filters, and the copies in a hundred old revisions are all equally near.
"""

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from operator import itemgetter
from typing import Any, Concatenate, ParamSpec, TypeVar

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
P = ParamSpec("P")
Metadata = Mapping[str, str | int | float | bool | None]
_UPSERT_BATCH = 1000
# Vectors are read as decimal figures: this many numbers at a time.
_READ_NUMBERS = 200_000
# Compared one by one, unless they are very long.
_COMPARED = 300
_COMPARED_NUMBERS = 300_000
_CALL_SECONDS = 60.0
# So often is a collection renamed while others make one of that name.
_RENAMES = 20
_SHORTEST = 1e-12  # a vector of nothing has no direction


class CollectionName(StrEnum):
    MEMORY = "memory"
    ARTIFACTS = "artifacts"
    CHUNKS = "artifact_chunks"
    EVENTS = "events"


_REVISED = {CollectionName.ARTIFACTS, CollectionName.CHUNKS, CollectionName.EVENTS}


@dataclass(frozen=True, slots=True)
class Entry:
    """With "latest" among the metadata, false for what belongs to a superseded revision."""

    id: str
    vector: Vector
    document: str
    metadata: Metadata


@dataclass(frozen=True, slots=True)
class Stored:
    """What an entry says, beside its vector. "latest" is which part it is in: None for both, when
    moving it was interrupted."""

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
        self._collections: dict[str, Collection] = {}

    async def heartbeat(self) -> None:
        async with self._faults():
            await self._client.heartbeat()

    async def count(self, name: CollectionName) -> int:
        return sum(await self.counts(name))

    async def counts(self, name: CollectionName) -> list[int]:
        """The latest, and the superseded ones of what has revisions."""
        return [await self._on(part, Collection.count) for part in _parts(name)]

    async def upsert(
        self, name: CollectionName, entries: Sequence[Entry], *, beside: bool = False
    ) -> None:
        """With `beside`, into the collection that is to take over (`start_beside`)."""
        old = [entry for entry in entries if _is_superseded(name, entry.metadata)]
        new = [entry for entry in entries if not _is_superseded(name, entry.metadata)]
        for part, wanted in ((_part(name), new), (_superseded(name), old)):
            for start in range(0, len(wanted), _UPSERT_BATCH):
                batch = wanted[start : start + _UPSERT_BATCH]
                await self._on(
                    _beside(part) if beside else part,
                    Collection.upsert,
                    [entry.id for entry in batch],
                    [entry.vector for entry in batch],
                    [entry.document for entry in batch],
                    [dict(entry.metadata) for entry in batch],
                )

    async def set_latest(self, name: CollectionName, ids: Sequence[str], *, latest: bool) -> None:
        """Entries of a revision that is latest now, or no longer, move to the other part. Missing
        ids are no error."""
        here, there = _part(name), _superseded(name)
        source, target = (there, here) if latest else (here, there)
        for batch in self._batches(ids):
            found = await self._on(
                source, Collection.get, ids=batch, include=["embeddings", "documents", "metadatas"]
            )
            if found["ids"]:
                metadatas = [{**told, "latest": latest} for told in found["metadatas"]]
                await self._on(
                    target,
                    Collection.upsert,
                    found["ids"],
                    found["embeddings"],
                    found["documents"],
                    metadatas,
                )
                await self._on(source, Collection.delete, found["ids"])

    async def delete(self, name: CollectionName, ids: Sequence[str]) -> None:
        """Ids that are not there are no error. A reindex that is under way, or broke off, has
        copies."""
        async with self._faults():
            there = await self._client.names()
        for part in _parts(name):
            for copy in (part, *({_beside(part), _retiring(part)} & there)):
                for start in range(0, len(ids), _UPSERT_BATCH):
                    await self._on(copy, Collection.delete, ids[start : start + _UPSERT_BATCH])

    async def ids_where(self, name: CollectionName, where: dict[str, Any]) -> list[str]:
        """Ids of all entries with that metadata."""
        answers = [await self._on(part, Collection.get, where=where) for part in _parts(name)]
        return list(dict.fromkeys(id_ for answer in answers for id_ in answer["ids"]))

    async def query(
        self,
        name: CollectionName,
        vector: Vector,
        *,
        limit: int,
        where: dict[str, Any] | None = None,
        superseded: bool = False,
    ) -> list[Hit]:
        """Nearest first, among the latest, or those and the superseded ones. With `where`, Chroma
        looks at every entry."""
        answers = [
            await self._on(part, Collection.query, vector, limit, where)
            for part in _parts(name, superseded)
        ]
        found = [zip(answer["ids"][0], answer["distances"][0], strict=True) for answer in answers]
        return _nearest_first(chain.from_iterable(found))[:limit]

    async def among(
        self, name: CollectionName, vector: Vector, ids: Sequence[str], *, limit: int
    ) -> list[Hit] | None:
        """The nearest of these latest entries, the quicker the more they are; None if some are
        missing."""
        if not ids:
            return []
        answer = await self._on(_part(name), _among, vector, limit, ids)
        if answer is None:
            return None
        return _nearest_first(zip(answer["ids"][0], answer["distances"][0], strict=True))

    @property
    def comparable(self) -> int:
        """How many entries may be compared one by one."""
        return min(_COMPARED, _COMPARED_NUMBERS // self._embedder.dimension)

    async def compare(
        self, name: CollectionName, vector: Vector, ids: Sequence[str], *, superseded: bool = False
    ) -> list[Hit]:
        """These entries alone, nearest first: for few, much quicker than a filter."""
        found = await self.vectors(name, ids, superseded=superseded)
        distances = _distances(vector, list(found.values()))
        return _nearest_first(zip(found, distances, strict=True))

    async def vectors(
        self, name: CollectionName, ids: Sequence[str], *, superseded: bool = True
    ) -> dict[str, Vector]:
        """Stored vectors of those ids that are there."""
        found: dict[str, Vector] = {}
        for part in _parts(name, superseded):
            for batch in self._batches([id_ for id_ in ids if id_ not in found]):
                answer = await self._on(part, Collection.get, ids=batch, include=["embeddings"])
                found |= zip(answer["ids"], answer["embeddings"], strict=True)
        return found

    async def stored(self, name: CollectionName, ids: Sequence[str]) -> dict[str, Stored]:
        """What those of these entries say that are there."""
        found: dict[str, Stored] = {}
        for part in _parts(name):
            answer = await self._on(
                part, Collection.get, ids=list(ids), include=["documents", "metadatas"]
            )
            for id_, told in _told(name, part, answer).items():
                both = {**told.metadata, "latest": None}
                found[id_] = Stored(told.document, both) if id_ in found else told
        return found

    async def present(self, name: CollectionName, ids: Sequence[str]) -> set[str]:
        """Those of these entries that are there."""
        answers = [await self._on(part, Collection.get, ids=list(ids)) for part in _parts(name)]
        return {id_ for answer in answers for id_ in answer["ids"]}

    async def page(self, name: CollectionName, offset: int, limit: int) -> dict[str, Stored]:
        """Entries in the order they came, from a place on, the latest first. Empty after the last;
        where a part ends, there are fewer."""
        for part in _parts(name):
            answer = await self._on(
                part, Collection.get, limit=limit, offset=offset, include=["documents", "metadatas"]
            )
            if answer["ids"]:
                return _told(name, part, answer)
            # One may have been added since.
            offset = max(offset - await self._on(part, Collection.count), 0)
        return {}

    async def start_beside(self, name: CollectionName) -> None:
        """Make an empty collection for the configured model that is to take the other's place."""
        async with self._faults():
            for part in _parts(name):
                if _beside(part) in await self._client.names():
                    await self._client.drop(_beside(part))
                self._collections.pop(_beside(part), None)
                await self._client.collection(_beside(part), self._label())

    async def take_over(self, name: CollectionName) -> None:
        """The collection beside becomes the one in use; only then the old one goes. What was
        written to the old one meanwhile is lost with it."""
        async with self._faults():
            for part in _parts(name):
                await self._take_over(part)

    async def _take_over(self, part: str) -> None:
        fresh = await self._client.collection(_beside(part), self._label())
        retiring = _retiring(part)
        names = await self._client.names()
        if retiring in names:
            await self._client.drop(retiring)
        if part in names:
            old = await self._client.collection(part, self._label())
            await self._client.rename(old, retiring)
        await self._rename(fresh, part)
        if part in names:
            await self._client.drop(retiring)
        for stale in (part, _beside(part)):
            self._collections.pop(stale, None)

    async def _rename(self, fresh: Collection, part: str) -> None:
        """Whoever looks for the collection in this moment makes an empty one."""
        for _ in range(_RENAMES):
            try:
                await self._client.rename(fresh, part)
            except ChromaRefusal:
                await self._client.drop(part)
            else:
                return
        await self._client.rename(fresh, part)

    async def recreate(self, name: CollectionName) -> None:
        """Drop the collection and make it anew, empty, for the configured model."""
        async with self._faults():
            for part in _parts(name):
                if part in await self._client.names():
                    await self._client.drop(part)
                self._collections.pop(part, None)
                await self._collection(part)

    async def close(self) -> None:
        self._client.close()

    async def _on(
        self,
        part: str,
        call: Callable[Concatenate[Collection, P], Awaitable[T]],
        *arguments: P.args,
        **named: P.kwargs,
    ) -> T:
        """Call a collection; look it up again when `reindex` has replaced it."""
        async with self._faults():
            try:
                return await call(await self._collection(part), *arguments, **named)
            except NoSuchCollection:
                self._collections.pop(part, None)
                return await call(await self._collection(part), *arguments, **named)

    def _batches(self, ids: Sequence[str]) -> Iterator[list[str]]:
        size = max(_READ_NUMBERS // self._embedder.dimension, 1)
        return (list(ids[start : start + size]) for start in range(0, len(ids), size))

    async def _collection(self, part: str) -> Collection:
        if part in self._collections:
            return self._collections[part]
        collection = await self._client.collection(part, self._label())
        if not part.endswith(_retiring("")):  # which may be of the model before
            self._refuse_other_model(part, collection.metadata)
        self._collections[part] = collection
        return collection

    def _label(self) -> dict[str, str | int]:
        return {
            "provider": self._embedder.provider,
            "model": self._embedder.model,
            "dimension": self._embedder.dimension,
        }

    def _refuse_other_model(self, part: str, found: Mapping[str, Any]) -> None:
        wanted = self._label()
        if any(found.get(key) != value for key, value in wanted.items()):
            raise EmbeddingMismatch(
                f"The collection {part!r} was made with {found.get('provider')}/"
                f"{found.get('model')} ({found.get('dimension')} dimensions), but the settings "
                f"name {wanted['provider']}/{wanted['model']} ({wanted['dimension']}). Vectors of "
                "two models cannot be mixed: run `mcp-memory reindex`, or restore the settings.",
                details={"collection": part, "found": dict(found), "configured": wanted},
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


def _parts(name: CollectionName, superseded: bool = True) -> list[str]:
    """The collections of Chroma that hold it, the latest first."""
    return [_part(name), _superseded(name)] if superseded and name in _REVISED else [_part(name)]


def _part(name: CollectionName) -> str:
    return name.value


def _superseded(name: CollectionName) -> str:
    return f"{name.value}_superseded"


def _is_superseded(name: CollectionName, metadata: Metadata) -> bool:
    return name in _REVISED and metadata.get("latest") is False


def _beside(part: str) -> str:
    return f"{part}_new"


def _retiring(part: str) -> str:
    return f"{part}_old"


def _told(name: CollectionName, part: str, answer: dict[str, Any]) -> dict[str, Stored]:
    where = {"latest": part == _part(name)} if name in _REVISED else {}
    told = zip(answer["ids"], answer["documents"], answer["metadatas"], strict=True)
    return {id_: Stored(document, {**(known or {}), **where}) for id_, document, known in told}


async def _among(
    collection: Collection, vector: Vector, limit: int, ids: Sequence[str]
) -> dict[str, Any] | None:
    """Chroma refuses ids of which one is not there."""
    try:
        return await collection.query(vector, limit, ids=ids)
    except NoSuchCollection:
        raise
    except ChromaRefusal:
        return None


def _nearest_first(found: Iterable[tuple[str, float]]) -> list[Hit]:
    nearest = sorted(dict(found).items(), key=itemgetter(1))
    return [Hit(id_, float(distance)) for id_, distance in nearest]


def _distances(vector: Vector, vectors: Sequence[Vector]) -> list[float]:
    """By their directions, as Chroma measures them."""
    if not vectors:
        return []
    import numpy as np

    asked, others = np.asarray(vector), np.asarray(vectors)
    lengths = np.linalg.norm(others, axis=1) * np.linalg.norm(asked)
    distances: list[float] = (1.0 - others @ asked / np.maximum(lengths, _SHORTEST)).tolist()
    return distances
