"""The entries that Chroma should have for artifacts and memories, according to Postgres.

`index_difference` in sql/queries/index.sql describes the entries and their hashes. This module
reads the texts to embed.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from memory_core.index.generation import CollectionName
from memory_core.kernel.database import Session


@dataclass(frozen=True, slots=True)
class EntryKey:
    """An entry by its place. `hash`: the expected one, None if the entry should not exist.
    `stands`: the entry may exist now."""

    tenant_id: UUID
    collection: str
    id: str
    owner: str
    hash: str | None
    stands: bool = False


@dataclass(frozen=True, slots=True)
class EmbeddableText:
    """A text to embed: an entry, or a part of a document. `id` and `hash` are those of the entry,
    `text_hash` is the hash of the text alone."""

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
        """The metadata that searches filter by. Only memories have any."""
        if self.type is None or self.confidence is None:
            return {}
        return {"type": self.type, "confidence": self.confidence}


async def difference(session: Session, generation: int, owners: Sequence[str]) -> list[EntryKey]:
    """The entries of these owners that differ from the expected ones."""
    return await session.rows(
        EntryKey, "index_difference", generation=generation, owners=list(owners)
    )


async def pieces(session: Session, keys: Sequence[EntryKey]) -> AsyncIterator[list[EmbeddableText]]:
    """The texts of these entries, one page at a time. Needs a transaction."""

    def ids(name: CollectionName) -> list[str]:
        return [key.id for key in keys if key.collection == name]

    async for page in session.pages(
        EmbeddableText,
        "texts_to_embed",
        documents=ids(CollectionName.ARTIFACTS),
        chunks=ids(CollectionName.CHUNKS),
        events=ids(CollectionName.EVENTS),
        memories=ids(CollectionName.MEMORY),
    ):
        yield page
