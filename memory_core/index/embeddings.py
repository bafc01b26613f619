"""Vectors of texts. Those that cost money are kept in Postgres, so that a rebuild or an edit pays
only for text that was never seen."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from memory_core.embedding import Embedder, Vector
from memory_core.kernel.database import Database


@dataclass(frozen=True, slots=True)
class Text:
    """`owner`: the artifact or memory that it is of; `hash`: of the text alone."""

    owner: str
    hash: str
    text: str


class Embeddings:
    def __init__(self, database: Database, embedder: Embedder) -> None:
        self._database, self._embedder = database, embedder
        self._is_kept = embedder.provider != "local"
        self._model = f"{embedder.provider}/{embedder.model}/{embedder.dimension}"

    async def of(self, texts: Sequence[Text], known: dict[str, Vector]) -> list[Vector]:
        """In the order of the texts. `known`: vectors by hash that need not be made."""
        vectors = dict(known)
        if self._is_kept:
            vectors |= await self._kept([text.hash for text in texts])
        missing = {text.hash: text.text for text in texts if text.hash not in vectors}
        if missing:
            made = await self._embedder.embed(list(missing.values()))
            vectors |= zip(missing, made, strict=True)
        if self._is_kept and texts:
            await self._keep(texts, vectors)
        return [vectors[text.hash] for text in texts]

    async def _kept(self, hashes: Sequence[str]) -> dict[str, Vector]:
        async with self._database.session() as session:
            rows = await session.all("cached_embeddings", model=self._model, hashes=list(hashes))
        return {row["text_hash"]: array("f", row["vector"]).tolist() for row in rows}

    async def _keep(self, texts: Sequence[Text], vectors: dict[str, Vector]) -> None:
        """At once, in a transaction of its own: what is paid for is kept, whatever comes after."""
        async with self._database.session() as session:
            await session.run(
                "keep_embeddings",
                model=self._model,
                hashes=[text.hash for text in texts],
                owners=[text.owner for text in texts],
                vectors=[array("f", vectors[text.hash]).tobytes() for text in texts],
            )
