"""Writing to Chroma what Postgres says, for given artifacts and memories.

The difference between the expected entries and `index_entry` is written and deleted; Chroma itself
is never read. A lock in Postgres allows one writer at a time. Entries are announced before they are
written, so that a crash leaves no unknown entry.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

from memory_core.index import generation as generations
from memory_core.index.chroma import NoSuchCollection
from memory_core.index.embeddings import Embeddings
from memory_core.index.expected import EntryKey, difference, pieces
from memory_core.index.generation import Generation, belongs_to
from memory_core.index.legacy_vectors import Legacy
from memory_core.index.store import IndexEntry, IndexParts, refuse_other_model
from memory_core.kernel.database import Session
from memory_core.kernel.principal import DEFAULT_TENANT
from memory_core.log.checkpoint import ask_for_rebuild
from memory_core.log.projection import Commit

log = logging.getLogger(__name__)

# Announced and unconfirmed entries: their writer failed or was killed, and Chroma may still be
# executing its last request, which could undo later writes. Chroma has no conditional writes, so
# there is no fence. We wait for this time, and compare again later.
GRACE_SECONDS = 2.0


@asynccontextmanager
async def holding_index(runtime: IndexParts) -> AsyncIterator[Session]:
    """Become the one writer of Chroma. The session only reads: a transaction that writes nothing
    does not hold back readers of the log, however long Chroma takes."""
    async with runtime.database.transaction() as session:
        await session.run("lock_index")
        yield session


async def settle(
    runtime: IndexParts,
    owners: Sequence[str],
    commit: Commit,
    *,
    only: int | None = None,
    on_doubt: Callable[[], None] = lambda: None,
) -> int:
    """Bring the entries of these owners up to date, in every live generation or in one. Returns how
    many were written or deleted. `commit` is entered once, last. `on_doubt` is called when an
    earlier writer died during its work."""
    async with holding_index(runtime) as session:
        if await session.value(bool, "unconfirmed_entries"):
            on_doubt()
            await asyncio.sleep(GRACE_SECONDS)
        live = await _live(runtime, session)
        if only is not None:
            live = [one for one in live if one.generation == only]
        done = [(one, await _settle(runtime, session, one, owners)) for one in live]
        if live and not any(one.fits(runtime.embedder) for one in live):
            refuse_other_model(live[0], runtime.embedder)
        async with commit() as writing:
            for generation, keys in done:
                await _record(writing, "confirm_entries", generation, keys)
    return sum(len(keys) for _, keys in done)


async def settle_now(runtime: IndexParts, owners: Sequence[str]) -> int:
    return await settle(runtime, owners, runtime.database.transaction)


async def drop_tenant(runtime: IndexParts, tenant_id: UUID) -> None:
    """Drop the tenant's collections, their entries, and its cached vectors. If Postgres still has
    rows of the tenant, its next change indexes them again."""
    async with holding_index(runtime):
        # By name, so that collections of a generation that Postgres no longer knows are dropped
        # too.
        names = await runtime.vectors.labels()
        await runtime.vectors.drop(filter(belongs_to(tenant_id), names))
        async with runtime.database.transaction() as writing:
            await writing.run("forget_index_of_tenant", tenant_id=tenant_id)


async def _live(runtime: IndexParts, session: Session) -> list[Generation]:
    """The live generations; begins a first one if there is none."""
    if live := await generations.live(session):
        return live
    async with runtime.database.transaction() as writing:
        return [await generations.first(writing, runtime.embedder)]


async def _settle(
    runtime: IndexParts, session: Session, generation: Generation, owners: Sequence[str]
) -> list[EntryKey]:
    """The entries that are now written or deleted as they should be."""
    keys = await difference(session, generation.generation, owners)
    if not generation.fits(runtime.embedder):
        # Vectors of another model cannot be made, so the entries of older texts are deleted.
        keys = [replace(key, hash=None) for key in keys if key.stands]
    try:
        await _make(runtime, session, generation, keys)
        if keys:
            # From here on these entries may exist in Chroma.
            async with runtime.database.session() as writing:
                await _record(writing, "announce_entries", generation, keys)
        gone = [key for key in keys if key.hash is None]
        for place, of_place in _by_place(gone).items():
            collection = generation.name_in_chroma(*place)
            await runtime.vectors.delete(collection, [key.id for key in of_place])
        fresh = {key.id: key for key in keys if key.hash is not None}
        return gone + await _write(runtime, session, generation, fresh)
    except NoSuchCollection:
        await lose(runtime, generation)
        return []


async def _make(
    runtime: IndexParts, session: Session, generation: Generation, keys: Sequence[EntryKey]
) -> None:
    """Create the collections of tenants that have none."""
    tenants = list({DEFAULT_TENANT, *(key.tenant_id for key in keys)})
    number = generation.generation
    for tenant_id in await session.values(
        UUID, "tenants_without_collections", generation=number, tenants=tenants
    ):
        await runtime.vectors.make(generation.names_of(tenant_id), generation.label)
        async with runtime.database.session() as writing:
            await writing.run("collections_are_made", generation=number, tenant_id=tenant_id)


async def lose(runtime: IndexParts, generation: Generation) -> None:
    """Chroma has lost the collections: begin a new generation, to be filled from Postgres."""
    log.warning("Chroma has lost the index: it is made again from what Postgres holds")
    async with runtime.database.transaction() as writing:
        await writing.run("lose_generation", generation=generation.generation)
        if not any(one.state == "filling" for one in await generations.live(writing)):
            await generations.first(writing, runtime.embedder)
        await ask_for_rebuild(writing, "index")


async def _write(
    runtime: IndexParts, session: Session, generation: Generation, fresh: dict[str, EntryKey]
) -> list[EntryKey]:
    """The written entries, with the hashes of the texts that were embedded."""
    import numpy as np

    embeddings = Embeddings(runtime.database, runtime.embedder)
    legacy = Legacy(runtime.vectors, runtime.embedder) if generation.adopts else None
    sums: dict[str, tuple[int, Any]] = {}
    written: list[EntryKey] = []
    async for page in pieces(session, list(fresh.values())):
        legacy_vectors = await legacy.vectors(page) if legacy else {}
        vectors = await embeddings.of(page, legacy_vectors)
        made: dict[EntryKey, IndexEntry] = {}
        for piece, vector in zip(page, vectors, strict=True):
            if piece.id in fresh:
                key = replace(fresh[piece.id], hash=piece.hash)
                made[key] = IndexEntry(key.id, vector, piece.hash, piece.marks)
            if piece.document in fresh:  # the document's vector is the mean of those of its parts
                key = fresh[piece.document]
                parts, total = sums.pop(key.id, (0, 0.0))
                sums[key.id] = parts + 1, total + np.asarray(vector)
                if parts + 1 == piece.parts:
                    middle = (sums.pop(key.id)[1] / piece.parts).tolist()
                    made[key] = IndexEntry(key.id, middle, key.hash or "", {})
        for place, keys in _by_place(made).items():
            collection = generation.name_in_chroma(*place)
            await runtime.vectors.upsert(collection, [made[key] for key in keys])
        written += made
    return written


def _by_place(keys: Iterable[EntryKey]) -> dict[tuple[str, UUID], list[EntryKey]]:
    """Keys by collection and tenant."""
    places: dict[tuple[str, UUID], list[EntryKey]] = defaultdict(list)
    for key in keys:
        places[key.collection, key.tenant_id].append(key)
    return places


async def _record(
    session: Session, query: str, generation: Generation, keys: Sequence[EntryKey]
) -> None:
    if keys:
        await session.run(
            query,
            generation=generation.generation,
            tenants=[key.tenant_id for key in keys],
            collections=[key.collection for key in keys],
            ids=[key.id for key in keys],
            owners=[key.owner for key in keys],
            hashes=[key.hash for key in keys],
        )
