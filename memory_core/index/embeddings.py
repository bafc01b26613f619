"""Vectors of texts. Paid vectors are cached in Postgres, so that a rebuild or an edit pays only for
new text. A tenant never uses a vector that another tenant paid for."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from memory_core.embedding import Embedder, Vector
from memory_core.index.expected import EmbeddableText
from memory_core.kernel.database import Database

# A tenant, and the hash of a text.
Seen = tuple[UUID, str]


@dataclass(frozen=True, slots=True)
class _Kept:
    tenant_id: UUID
    hash: str
    vector: bytes


class Embeddings:
    def __init__(self, database: Database, embedder: Embedder) -> None:
        self._database, self._embedder = database, embedder
        self._is_kept = embedder.provider != "local"
        self._model = f"{embedder.provider}/{embedder.model}/{embedder.dimension}"

    async def of(self, page: Sequence[EmbeddableText], given: dict[Seen, Vector]) -> list[Vector]:
        """The vectors in the order of the pieces. `given`: vectors that need not be made."""
        vectors = dict(given)
        seen = [(piece.tenant_id, piece.text_hash) for piece in page]
        if self._is_kept:
            vectors |= await self._kept(seen)
        texts = zip(seen, page, strict=True)
        missing = {key: piece.text for key, piece in texts if key not in vectors}
        if missing:
            made = await self._embedder.embed(list(missing.values()))
            vectors |= zip(missing, made, strict=True)
        in_order = [vectors[key] for key in seen]
        if self._is_kept and page:
            await self._keep(page, in_order)
        return in_order

    async def _kept(self, seen: Sequence[Seen]) -> dict[Seen, Vector]:
        async with self._database.session() as session:
            rows = await session.rows(
                _Kept,
                "cached_embeddings",
                model=self._model,
                tenants=[tenant for tenant, _ in seen],
                hashes=[hash_ for _, hash_ in seen],
            )
        return {(row.tenant_id, row.hash): array("f", row.vector).tolist() for row in rows}

    async def _keep(self, page: Sequence[EmbeddableText], vectors: Sequence[Vector]) -> None:
        """Store the vectors at once, in a transaction of their own, so that paid vectors survive a
        later failure."""
        async with self._database.session() as session:
            await session.run(
                "keep_embeddings",
                model=self._model,
                tenants=[piece.tenant_id for piece in page],
                hashes=[piece.text_hash for piece in page],
                owners=[piece.owner for piece in page],
                vectors=[array("f", vector).tobytes() for vector in vectors],
            )
