"""What a chunk of a large document costs: as much as one of a small document.

Counted are pages that Postgres reads, not time: cutting a chunk out of the whole text would read
that text up to its place, for every chunk again.
"""

import math
from typing import Any

import pytest

from memory_core.artifacts.document import ArtifactType, Document
from memory_core.artifacts.ingest import ingest
from memory_core.events.diff import diff_revisions
from memory_core.index.expected import EntryKey, pieces
from memory_core.index.generation import CollectionName
from memory_core.kernel import queries
from memory_core.kernel.database import Session
from memory_core.kernel.ids import sha256
from memory_core.kernel.principal import DEFAULT_TENANT
from memory_core.runtime import Runtime

SMALL, LARGE = 80_000, 1_200_000
# Pages for a chunk of the large document, compared with those for one of the small document.
MOST = 1.5
AT_ONCE = 20


def text(length: int) -> str:
    lines = (f"{number} {sha256(str(number))} lies in the harbour.\n\n" for number in range(length))
    made = ""
    while len(made) < length:
        made += "".join(next(lines) for _ in range(1_000))
    return made[:length]


async def chunks_of(runtime: Runtime, length: int) -> list[str]:
    document = Document(ArtifactType.DOC, "test", text(length), source_id=str(length))
    return (await ingest(runtime, document)).stored_ids[1:]


async def pages_read(session: Session, query: str, **parameters: Any) -> int:
    explain = b"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + queries.get(query)
    cursor = await session.connection.execute(explain, parameters)
    row = await cursor.fetchone()
    assert row is not None
    plan = row["QUERY PLAN"][0]["Plan"]
    return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])


@pytest.mark.parametrize(
    ("query", "chunks", "more"),
    [
        ("texts_to_embed", "chunks", {"documents": [], "events": [], "memories": []}),
        ("neighbors_of_chunks", "ids", {}),
    ],
    ids=["to embed", "to show around a passage"],
)
async def test_a_chunk_of_a_large_document_is_read_for_itself(
    runtime: Runtime, query: str, chunks: str, more: dict[str, Any]
) -> None:
    small, large = await chunks_of(runtime, SMALL), await chunks_of(runtime, LARGE)
    async with runtime.database.session() as session:
        await session.connection.execute("ANALYZE revision_chunk, revision_text, artifact_revision")
        # The last ones: to reach them, the whole text would be read.
        for ids in (small, large):
            await pages_read(session, query, **{chunks: ids[-AT_ONCE:]}, **more)
        few = await pages_read(session, query, **{chunks: small[-AT_ONCE:]}, **more)
        many = await pages_read(session, query, **{chunks: large[-AT_ONCE:]}, **more)

    assert many <= few * MOST


async def test_the_texts_of_a_document_are_read_in_pages(runtime: Runtime) -> None:
    chunks = await chunks_of(runtime, LARGE)
    keys = [EntryKey(DEFAULT_TENANT, CollectionName.CHUNKS, id_, "", None) for id_ in chunks]

    async with runtime.database.transaction() as session:
        sizes = [len(page) async for page in pieces(session, keys)]

    assert sum(sizes) == len(chunks)
    assert len(sizes) == math.ceil(len(chunks) / max(sizes))
    assert max(sizes) <= 256


async def test_a_diff_of_large_texts_is_one_that_a_reader_can_take_in(runtime: Runtime) -> None:
    before = text(LARGE)
    for content in (before, before.replace("harbour", "quarry")):
        stored = await ingest(runtime, Document(ArtifactType.DOC, "t", content, source_id="d"))

    diff = await diff_revisions(runtime, stored.artifact_uid, None, None)

    assert len(diff.text_diff) < 50_000
