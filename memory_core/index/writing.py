"""Making Chroma say what Postgres says, for the artifacts and memories that are named.

What should stand there minus what stands there (`index_entry`) is written and deleted. Chroma is
never asked. One writer at a time, by a lock in Postgres; entries are announced before they are
written, so that whatever dies in between leaves nothing that is not known of.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

from memory_core.embedding import Vector
from memory_core.index import generation as generations
from memory_core.index.adopting import Legacy
from memory_core.index.chroma import NoSuchCollection
from memory_core.index.embeddings import Embeddings
from memory_core.index.expected import Key, Piece, difference, pieces
from memory_core.index.generation import CollectionName, Generation
from memory_core.index.parts import Parts
from memory_core.index.store import Entry, refuse_other_model
from memory_core.kernel.database import Session

log = logging.getLogger(__name__)

# Entries that were announced and not confirmed: their writer failed or was killed, and Chroma may
# still be at its last request, which could undo what is written before it is done. Chroma knows no
# conditional writes, so there is no fence: it is waited for, and looked at again later.
GRACE_SECONDS = 2.0


class Commit(Protocol):
    def __call__(self) -> AbstractAsyncContextManager[Session]: ...


@dataclass(slots=True)
class _Outcome:
    """What was done to the collections of one generation, to be told to Postgres."""

    generation: Generation
    written: list[Key] = field(default_factory=list)
    deleted: list[Key] = field(default_factory=list)

    async def record(self, session: Session) -> None:
        number = self.generation.generation
        if self.written:
            await session.run(
                "confirm_entries",
                generation=number,
                collections=[key.collection.value for key in self.written],
                ids=[key.id for key in self.written],
                hashes=[key.hash for key in self.written],
            )
        if self.deleted:
            await session.run(
                "forget_entries",
                generation=number,
                collections=[key.collection.value for key in self.deleted],
                ids=[key.id for key in self.deleted],
            )


@asynccontextmanager
async def holding_index(runtime: Parts) -> AsyncIterator[Session]:
    """The one writer of Chroma. The session is for reading: a transaction that writes nothing does
    not hold back the readers of the log, however long Chroma takes."""
    async with runtime.database.transaction() as session:
        await session.run("lock_index")
        yield session


async def settle(
    runtime: Parts,
    owners: Sequence[str],
    commit: Commit,
    *,
    only: int | None = None,
    on_doubt: Callable[[], None] = lambda: None,
) -> int:
    """Bring the entries of these owners up to date in every generation that is in use, or in one
    alone. Returns how many were written or deleted. `commit` is entered once, last. `on_doubt` is
    called when a writer before this one died on its work."""
    async with holding_index(runtime) as session:
        if await session.value(bool, "unconfirmed_entries"):
            on_doubt()
            await asyncio.sleep(GRACE_SECONDS)
        live = await _live(runtime, session)
        if only is not None:
            live = [one for one in live if one.generation == only]
        outcomes = [await _settle(runtime, session, one, owners) for one in live]
        if live and not any(one.fits(runtime.embedder) for one in live):
            refuse_other_model(live[0], runtime.embedder)
        async with commit() as writing:
            for outcome in outcomes:
                await outcome.record(writing)
    return sum(len(one.written) + len(one.deleted) for one in outcomes)


async def settle_now(runtime: Parts, owners: Sequence[str]) -> int:
    return await settle(runtime, owners, runtime.database.transaction)


async def _live(runtime: Parts, session: Session) -> list[Generation]:
    """Those in use; a first one is begun where there is none."""
    if found := await generations.live(session):
        return found
    async with runtime.database.transaction() as writing:
        row = await writing.one("begin_generation", **generations.label_of(runtime.embedder))
    assert row is not None
    return [Generation.of(row)]


async def _settle(
    runtime: Parts, session: Session, generation: Generation, owners: Sequence[str]
) -> _Outcome:
    found = await difference(session, generation.generation, owners)
    outcome = _Outcome(generation)
    try:
        await _make(runtime, generation)
        # Vectors of another model cannot be made: what stands there for an older text goes.
        fits = generation.fits(runtime.embedder)
        gone = found.stale if fits else [*found.stale, *found.replaced]
        fresh = found.fresh if fits else []
        await _announce(runtime, generation, [*gone, *fresh])
        await _delete(runtime, outcome, gone)
        await _write(runtime, session, outcome, fresh)
    except NoSuchCollection:
        await _lose(runtime, generation)
    return outcome


async def _make(runtime: Parts, generation: Generation) -> None:
    if generation.made_at is None:
        await runtime.vectors.make(generation)
        async with runtime.database.session() as writing:
            await writing.run("generation_is_made", generation=generation.generation)


async def _lose(runtime: Parts, generation: Generation) -> None:
    """Its collections are gone from Chroma: a new generation is begun, and filled from Postgres."""
    log.warning("Chroma has lost the index: it is made again from what Postgres holds")
    async with runtime.database.transaction() as writing:
        await writing.run("lose_generation", generation=generation.generation)
        if not any(one.state == "filling" for one in await generations.live(writing)):
            await writing.one("begin_generation", **generations.label_of(runtime.embedder))
        await writing.run("set_projection_status", name="index", status="rebuilding")


async def _delete(runtime: Parts, outcome: _Outcome, keys: Sequence[Key]) -> None:
    for name in CollectionName:
        ids = [key.id for key in keys if key.collection is name]
        if ids:
            await runtime.vectors.delete(outcome.generation, name, ids)
    outcome.deleted += keys


async def _announce(runtime: Parts, generation: Generation, keys: Sequence[Key]) -> None:
    """Before Chroma is asked to write or delete: whatever happens then, these may stand there."""
    if not keys:
        return
    async with runtime.database.session() as writing:
        await writing.run(
            "announce_entries",
            generation=generation.generation,
            collections=[key.collection.value for key in keys],
            ids=[key.id for key in keys],
            owners=[key.owner for key in keys],
        )


async def _write(runtime: Parts, session: Session, outcome: _Outcome, fresh: Sequence[Key]) -> None:
    embeddings = Embeddings(runtime.database, runtime.embedder)
    legacy = Legacy(runtime.vectors, runtime.embedder) if outcome.generation.adopts else None
    means: dict[str, _Mean] = defaultdict(_Mean)
    async for page in pieces(session, fresh):
        known = await legacy.vectors(page) if legacy else {}
        vectors = await embeddings.of([piece.text for piece in page], known)
        entries: dict[CollectionName, list[tuple[Key, Entry]]] = defaultdict(list)
        for piece, vector in zip(page, vectors, strict=True):
            for key, made in _made(piece, vector, means):
                entry = Entry(key.id, made, key.hash or "", piece.marks)
                entries[key.collection].append((key, entry))
        for name, written in entries.items():
            await runtime.vectors.upsert(outcome.generation, name, [entry for _, entry in written])
            outcome.written += [key for key, _ in written]


def _made(piece: Piece, vector: Vector, means: dict[str, "_Mean"]) -> list[tuple[Key, Vector]]:
    """The entries that are complete with this piece."""
    complete = [(piece.entry, vector)] if piece.entry is not None else []
    if piece.part_of is not None:
        mean = means[piece.part_of.id]
        mean.add(vector)
        if mean.parts == piece.parts:
            complete.append((piece.part_of, means.pop(piece.part_of.id).vector))
    return complete


class _Mean:
    """The middle of vectors that come one after the other."""

    def __init__(self) -> None:
        self._sum: Vector = []
        self.parts = 0

    def add(self, vector: Vector) -> None:
        self._sum = (
            [a + b for a, b in zip(self._sum, vector, strict=True)] if self.parts else vector
        )
        self.parts += 1

    @property
    def vector(self) -> Vector:
        return [value / self.parts for value in self._sum] if self.parts > 1 else self._sum
