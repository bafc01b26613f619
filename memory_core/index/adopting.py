"""Vectors that an older version of the product left in Chroma, with texts beside them.

They are taken over where their text is the expected one, so that nothing is embedded twice; then
the old collections go, and with them the texts.
"""

from collections import defaultdict
from collections.abc import Sequence

from memory_core.embedding import Embedder, Vector
from memory_core.index.chroma import Collection, NoSuchCollection
from memory_core.index.expected import Piece
from memory_core.index.generation import CollectionName, label_of
from memory_core.index.store import VectorStore, is_labelled
from memory_core.kernel import ids

_PARTS = ("", "_superseded", "_new", "_old")


class Legacy:
    def __init__(self, store: VectorStore, embedder: Embedder) -> None:
        self._store, self._embedder = store, embedder

    async def vectors(self, page: Sequence[Piece]) -> dict[str, Vector]:
        """By the hash of their texts, those that are there."""
        wanted: dict[CollectionName, list[str]] = defaultdict(list)
        for piece in page:
            key = piece.entry or piece.part_of
            if key is not None:
                wanted[key.collection].append(key.id)
        expected = {piece.text.hash for piece in page}
        found: dict[str, Vector] = {}
        for name, wanted_ids in wanted.items():
            found |= await self._read(name.value, wanted_ids)
        return {hash_: vector for hash_, vector in found.items() if hash_ in expected}

    async def _read(self, collection: str, wanted: list[str]) -> dict[str, Vector]:
        labels = await self._store.labels()
        if not self._is_ours(labels.get(collection)):
            return {}
        try:
            answer = await self._store.on(
                collection, Collection.get, ids=wanted, include=["embeddings", "documents"]
            )
        except NoSuchCollection:
            return {}
        told = zip(answer["documents"], answer["embeddings"], strict=True)
        return {ids.sha256(document): vector for document, vector in told if document is not None}

    def _is_ours(self, label: dict[str, object] | None) -> bool:
        """Of the model that is in use: another one's vectors mean something else."""
        wanted = label_of(self._embedder)
        return label is not None and all(label.get(key) == value for key, value in wanted.items())


async def drop_legacy(store: VectorStore) -> None:
    """The collections of older versions, those with our label alone."""
    names = [f"{name.value}{part}" for name in CollectionName for part in _PARTS]
    labels = await store.labels()
    await store.drop_named([name for name in names if is_labelled(labels.get(name))])
