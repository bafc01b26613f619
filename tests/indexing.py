"""What stands in Chroma, compared with what should: for tests of the index."""

import random
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from memory_core.index import consistency
from memory_core.index.chroma import Collection
from memory_core.index.expected import EntryKey, pieces
from memory_core.index.generation import CollectionName, Generation
from memory_core.index.generation import serving as serving_generation
from memory_core.index.store import IndexEntry
from memory_core.kernel import principal
from memory_core.kernel.principal import DEFAULT_TENANT
from memory_core.log.log_reader import newest
from memory_core.log.projection_wait import wait_until
from memory_core.runtime import Runtime
from tests.patience import PATIENCE

_SAMPLE = 20


async def serving(runtime: Runtime) -> Generation:
    async with runtime.database.session() as session:
        generation = await serving_generation(session)
    assert generation is not None
    return generation


async def caught_up(runtime: Runtime, seconds: float = PATIENCE) -> None:
    """The index has passed every change that was committed before."""
    async with runtime.database.session() as session:
        last = await newest(session)
    if last is not None:
        assert await wait_until(runtime.database, "index", last, seconds)


async def ids(runtime: Runtime, name: CollectionName, tenant_id: UUID = DEFAULT_TENANT) -> set[str]:
    """All that stand in a collection."""
    collection = (await serving(runtime)).name_in_chroma(name, tenant_id)
    return set(await runtime.vectors.hashes(collection, offset=0, limit=100_000))


async def counts(runtime: Runtime) -> dict[str, int]:
    generation = await serving(runtime)
    return {
        name.value: await runtime.vectors.size(generation.name_in_chroma(name))
        for name in CollectionName
    }


async def plant(
    runtime: Runtime, name: CollectionName, id_: str, text: str, hash_: str = "none"
) -> None:
    """An entry that nothing in Postgres stands for."""
    [vector] = await runtime.embedder.embed([text])
    entry = IndexEntry(id_, vector, hash_, {})
    await runtime.vectors.upsert((await serving(runtime)).name_in_chroma(name), [entry])


async def remove(runtime: Runtime, name: CollectionName, gone: Sequence[str]) -> None:
    """Entries that Chroma loses."""
    await runtime.vectors.delete((await serving(runtime)).name_in_chroma(name), gone)


async def assert_exact(runtime: Runtime) -> None:
    """Chroma has what Postgres expects, entry by entry: ids, hashes, and vectors of a sample."""
    with principal.system("a test looks at the whole index"):
        await caught_up(runtime)
        difference = await consistency.compare(runtime)
        wrong = list(difference.differences())
        assert not wrong, wrong[:10]
        assert difference.postgres == difference.chroma
        await _assert_vectors(runtime)


async def _assert_vectors(runtime: Runtime) -> None:
    generation = await serving(runtime)
    async with runtime.database.transaction() as session:
        cursor = await session.connection.execute(
            "SELECT tenant_id, collection, id, owner, hash FROM index_entry "
            "WHERE generation = %s AND collection <> 'artifacts'",
            [generation.generation],
        )
        rows = await cursor.fetchall()
        for row in random.sample(rows, min(len(rows), _SAMPLE)):
            key = EntryKey(**row)
            [[piece]] = [page async for page in pieces(session, [key])]
            [wanted] = await runtime.embedder.embed([piece.text])
            collection = generation.name_in_chroma(key.collection, key.tenant_id)
            answer = await runtime.vectors.on(
                collection, "get", ids=[key.id], include=["embeddings"]
            )
            assert answer["embeddings"] == [pytest.approx(wanted, abs=1e-5)]


async def upsert_texts(
    collection: Collection,
    texts: dict[str, str],
    vectors: Sequence[Sequence[float]],
    metadatas: Sequence[dict[str, Any]],
) -> None:
    """As older versions and other products write: with the texts next to the vectors."""
    await collection.client.send(
        "POST",
        f"/tenants/default_tenant/databases/default_database/collections/{collection.id}/upsert",
        {
            "ids": list(texts),
            "embeddings": list(vectors),
            "documents": list(texts.values()),
            "metadatas": list(metadatas),
        },
    )
