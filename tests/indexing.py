"""What stands in Chroma, beside what should: for tests of the index."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from memory_core.index import comparing
from memory_core.index.chroma import Collection
from memory_core.index.expected import Key, pieces
from memory_core.index.generation import CollectionName, Generation
from memory_core.index.generation import serving as serving_generation
from memory_core.index.store import Entry
from memory_core.kernel import principal
from memory_core.log.reading import newest
from memory_core.log.waiting import wait_until
from memory_core.runtime import Runtime

CATCH_UP_SECONDS = 60.0
_SAMPLE = 20


async def serving(runtime: Runtime) -> Generation:
    async with runtime.database.session() as session:
        found = await serving_generation(session)
    assert found is not None
    return found


async def caught_up(runtime: Runtime, seconds: float = CATCH_UP_SECONDS) -> None:
    """The index has passed every change that was committed before."""
    async with runtime.database.session() as session:
        last = await newest(session)
    if last is not None:
        assert await wait_until(runtime.database, "index", last, seconds)


async def ids(runtime: Runtime, name: CollectionName) -> set[str]:
    """All that stand in a collection."""
    return set(await runtime.vectors.hashes(await serving(runtime), name, offset=0, limit=100_000))


async def counts(runtime: Runtime) -> dict[str, int]:
    generation = await serving(runtime)
    return {name.value: await runtime.vectors.size(generation, name) for name in CollectionName}


async def plant(
    runtime: Runtime, name: CollectionName, id_: str, text: str, hash_: str = "none"
) -> None:
    """An entry that nothing in Postgres stands for."""
    [vector] = await runtime.embedder.embed([text])
    entry = Entry(id_, vector, hash_, {})
    await runtime.vectors.upsert(await serving(runtime), name, [entry])


async def remove(runtime: Runtime, name: CollectionName, gone: Sequence[str]) -> None:
    """Entries that Chroma loses."""
    await runtime.vectors.delete(await serving(runtime), name, gone)


async def assert_exact(runtime: Runtime) -> None:
    """Chroma has what Postgres expects, entry by entry: ids, hashes, and vectors of a sample."""
    with principal.system("a test looks at the whole index"):
        await caught_up(runtime)
        found = await comparing.compare(runtime)
        wrong = list(found.told())
        assert not wrong, wrong[:10]
        assert found.postgres == found.chroma
        await _assert_vectors(runtime)


async def _assert_vectors(runtime: Runtime) -> None:
    async with runtime.database.session() as session:
        cursor = await session.connection.execute(
            "SELECT collection, id, owner, hash FROM index_entry JOIN index_generation "
            "USING (generation) WHERE state = 'serving' AND collection <> 'artifacts'"
        )
        rows = await cursor.fetchall()
        for row in random.sample(rows, min(len(rows), _SAMPLE)):
            key = Key(CollectionName(row["collection"]), row["id"], row["owner"], row["hash"])
            [[piece]] = [page async for page in pieces(session, [key]) if page]
            [wanted] = await runtime.embedder.embed([piece.text.text])
            stored = await runtime.vectors.vectors(key.collection, [key.id])
            assert stored[key.id] == pytest.approx(wanted, abs=1e-5)


async def upsert_texts(
    collection: Collection,
    texts: dict[str, str],
    vectors: Sequence[Sequence[float]],
    metadatas: Sequence[dict[str, Any]],
) -> None:
    """As older versions and other products write: with the texts beside the vectors."""
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
