"""What should stand in Chroma for artifacts and memories, as Postgres tells it now.

The entries and their hashes are described once, by `expected_entries` in sql/queries/index.sql;
here the texts are read whose vectors are wanted.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from memory_core.index.generation import CollectionName
from memory_core.kernel.database import Session


@dataclass(frozen=True, slots=True)
class Key:
    """An entry by its place. `hash`: what it should be, None when it should not be there.
    `stands`: it may be there now."""

    tenant_id: UUID
    collection: str
    id: str
    owner: str
    hash: str | None
    stands: bool = False


@dataclass(frozen=True, slots=True)
class Piece:
    """A text that an entry is made of, or that is one of the parts of a document. `id` and `hash`
    are the entry's, `text_hash` is of the text alone."""

    tenant_id: UUID
    owner: str
    id: str
    hash: str
    text: str
    text_hash: str
    document: str | None
    parts: int
    type: str | None
    confidence: float | None

    @property
    def marks(self) -> dict[str, str | float]:
        """What searches filter by: of memories alone."""
        if self.type is None or self.confidence is None:
            return {}
        return {"type": self.type, "confidence": self.confidence}


async def difference(session: Session, generation: int, owners: Sequence[str]) -> list[Key]:
    """The entries of these owners that do not stand as they should."""
    return await session.rows(Key, "index_difference", generation=generation, owners=list(owners))


async def pieces(session: Session, keys: Sequence[Key]) -> AsyncIterator[list[Piece]]:
    """The texts behind these entries, to be embedded and written a page at a time; inside a
    transaction."""

    def ids(name: CollectionName) -> list[str]:
        return [key.id for key in keys if key.collection == name]

    async for page in session.pages(
        Piece,
        "texts_to_embed",
        documents=ids(CollectionName.ARTIFACTS),
        chunks=ids(CollectionName.CHUNKS),
        events=ids(CollectionName.EVENTS),
        memories=ids(CollectionName.MEMORY),
    ):
        yield page
