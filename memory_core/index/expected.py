"""What should stand in Chroma for artifacts and memories, as Postgres tells it now.

The entries and their hashes are described once, by `expected_entries` in sql/queries/index.sql;
here the texts are read whose vectors are wanted.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from memory_core.index.embeddings import Text
from memory_core.index.generation import CollectionName
from memory_core.index.store import Marks
from memory_core.kernel import ids
from memory_core.kernel.database import Row, Session

T = TypeVar("T")
# Texts that are read, embedded and written at once.
_PAGE = 256


@dataclass(frozen=True, slots=True)
class Key:
    """An entry by its name; `hash`: what it should be, None when it should not be there."""

    collection: CollectionName
    id: str
    owner: str
    hash: str | None


@dataclass(frozen=True, slots=True)
class Difference:
    """What is to be written, and what is to be deleted."""

    fresh: list[Key] = field(default_factory=list)
    stale: list[Key] = field(default_factory=list)
    replaced: list[Key] = field(default_factory=list)  # of the fresh ones: stands with another hash


@dataclass(frozen=True, slots=True)
class Piece:
    """A text and the entry that its vector is for: of itself, or as a part of its document's."""

    text: Text
    entry: Key | None
    marks: Marks = field(default_factory=dict)
    part_of: Key | None = None
    parts: int = 1


async def difference(session: Session, generation: int, owners: Sequence[str]) -> Difference:
    found = Difference()
    for row in await session.all("index_difference", generation=generation, owners=list(owners)):
        key = Key(CollectionName(row["collection"]), row["id"], row["owner"], row["wanted"])
        (found.stale if key.hash is None else found.fresh).append(key)
        if key.hash is not None and row["stands"]:
            found.replaced.append(key)
    return found


async def pieces(session: Session, fresh: Sequence[Key]) -> AsyncIterator[list[Piece]]:
    """The texts behind these entries, a page at a time. What is gone since is left out: a later
    change says so."""
    by_name: dict[CollectionName, dict[str, Key]] = {name: {} for name in CollectionName}
    for key in fresh:
        by_name[key.collection][key.id] = key
    documents, chunks = by_name[CollectionName.ARTIFACTS], by_name[CollectionName.CHUNKS]
    if documents or chunks:
        async for page in _pieces_of_texts(session, documents, chunks):
            yield page
    for page_of_ids in _pages(list(by_name[CollectionName.EVENTS])):
        rows = await session.all("texts_of_events", ids=page_of_ids)
        yield [_piece_of_event(row, by_name[CollectionName.EVENTS][row["id"]]) for row in rows]
    for page_of_ids in _pages(list(by_name[CollectionName.MEMORY])):
        rows = await session.all("texts_of_memories", ids=page_of_ids)
        yield [_piece_of_memory(row) for row in rows]


async def _pieces_of_texts(
    session: Session, documents: dict[str, Key], chunks: dict[str, Key]
) -> AsyncIterator[list[Piece]]:
    """The vector of a document in chunks is the middle of theirs."""
    rows = await session.all("chunks_to_embed", artifacts=list(documents), chunks=list(chunks))
    parts: dict[str, int] = {}
    for row in rows:
        parts[row["artifact_id"]] = parts.get(row["artifact_id"], 0) + 1
    for page in _pages(rows):
        texts = await session.all("texts_of_chunks", ids=[row["chunk_id"] for row in page])
        by_id = {row["id"]: row["text"] for row in texts}
        yield [
            Piece(
                text=Text(row["owner"], row["hash"], by_id[row["chunk_id"]]),
                entry=chunks.get(row["chunk_id"]),
                part_of=documents.get(row["artifact_id"]),
                parts=parts[row["artifact_id"]],
            )
            for row in page
            if row["chunk_id"] in by_id
        ]


def _piece_of_event(row: Row, key: Key) -> Piece:
    digest = ids.sha256(row["text"])
    entry = Key(key.collection, key.id, key.owner, digest)
    return Piece(Text(row["owner"], digest, row["text"]), entry)


def _piece_of_memory(row: Row) -> Piece:
    entry = Key(CollectionName.MEMORY, row["id"], row["owner"], row["hash"])
    text = Text(row["owner"], ids.sha256(row["text"]), row["text"])
    return Piece(text, entry, marks={"type": row["type"], "confidence": row["confidence"]})


def _pages(items: Sequence[T]) -> Iterator[list[T]]:
    return (list(items[start : start + _PAGE]) for start in range(0, len(items), _PAGE))
