"""Vectors that an older version of the product left in Chroma, together with texts.

A vector is reused if its text is the expected one, so that nothing is embedded twice. Then the old
collections are dropped, and the texts with them. That version knew only one tenant.
"""

from collections.abc import Sequence

from memory_core.embedding import Embedder, Vector
from memory_core.index.chroma import NoSuchCollection
from memory_core.index.embeddings import Seen
from memory_core.index.expected import EmbeddableText
from memory_core.index.generation import CollectionName, label_of
from memory_core.index.store import VectorStore
from memory_core.kernel import ids
from memory_core.kernel.principal import DEFAULT_TENANT

_PARTS = ("", "_superseded", "_new", "_old")


class Legacy:
    def __init__(self, store: VectorStore, embedder: Embedder) -> None:
        self._store, self._label = store, label_of(embedder)

    async def vectors(self, page: Sequence[EmbeddableText]) -> dict[Seen, Vector]:
        """The stored vectors that were made of these texts."""
        usable: dict[Seen, Vector] = {}
        wanted = [id_ for piece in page for id_ in (piece.id, piece.document) if id_ is not None]
        labels = await self._store.labels()
        for name in CollectionName:
            # Vectors of another model cannot be compared with ours.
            label = labels.get(name, {})
            if wanted and all(label.get(key) == value for key, value in self._label.items()):
                usable |= await self._read(name, wanted)
        return usable

    async def _read(self, collection: str, wanted: list[str]) -> dict[Seen, Vector]:
        try:
            answer = await self._store.on(
                collection, "get", ids=wanted, include=["embeddings", "documents"]
            )
        except NoSuchCollection:
            return {}
        texts = zip(answer["documents"], answer["embeddings"], strict=True)
        return {(DEFAULT_TENANT, ids.sha256(text)): vector for text, vector in texts if text}


async def drop_legacy(store: VectorStore) -> None:
    """Drop the collections of older versions, if they have our label."""
    await store.drop([f"{name}{part}" for name in CollectionName for part in _PARTS])
