"""A memory of the version before the log: one start brings it over, whole, and pays nothing."""

import asyncio
import gzip
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pydantic import SecretStr

from memory_core.assistant import conversations, memories
from memory_core.index.chroma import ChromaClient
from memory_core.kernel import migrations
from memory_core.kernel.settings import Settings
from memory_core.projections import make_host
from memory_core.runtime import Runtime
from memory_core.search.passage_filters import Filters
from memory_core.search.passages import hybrid_search
from tests.indexing import assert_exact, upsert_texts
from tests.patience import PATIENCE
from tests.pipeline_client import with_openai
from tests.scripted_provider import ScriptedProvider, embed

ROOT = Path(__file__).resolve().parents[2]
FIXTURE = ROOT / "tests" / "fixtures" / "before_the_log"
DIMENSION = 3072
ROWS = {"artifact_revision": 13, "revision_text": 13, "revision_chunk": 21, "semantic_event": 90,
        "event_evidence": 90, "event_jobs": 13, "memory": 3, "history_turn": 3}  # fmt: skip


# In the old memory the time of a commitment was when it is due.
PROMISED = """
    UPDATE semantic_event SET category = 'Commitment', event_time = '2026-03-06'
    WHERE event_id IN (SELECT event_id FROM semantic_event LIMIT 5)
    RETURNING event_id, event_time
"""


@pytest.fixture
async def old(own_database: str, services: Settings, provider: ScriptedProvider) -> Settings:
    """The old memory in a database and collections of its own, and settings that name them."""
    with psycopg.connect(own_database, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public")
        connection.execute(unpacked("postgres.sql.gz"))
    assert services.chroma_host is not None
    client = ChromaClient(services.chroma_host, services.chroma_port)
    for name, stored in json.loads(unpacked("chroma.json.gz")).items():
        collection = await client.make(name, stored["label"])
        texts = dict(zip(stored["ids"], stored["documents"], strict=True))
        vectors = [embed(text, DIMENSION) for text in texts.values()]
        await upsert_texts(collection, texts, vectors, stored["metadatas"])
    await client.close()
    own = {"events_db_dsn": SecretStr(own_database), "embedder": "openai"}
    return with_openai(services, provider, **own)


def unpacked(name: str) -> bytes:
    return gzip.decompress((FIXTURE / name).read_bytes())


@asynccontextmanager
async def started(settings: Settings) -> AsyncIterator[Runtime]:
    """A process that hosts the worker, as `serve` and `up` do."""
    runtime = Runtime(settings, worker="always", make_host=make_host)
    await runtime.open()
    try:
        yield runtime
    finally:
        await runtime.close()


async def filled(runtime: Runtime) -> None:
    """The index is complete, and follows the log."""
    async with asyncio.timeout(PATIENCE):
        while True:
            async with runtime.database.session() as session:
                cursor = await session.connection.execute(
                    "SELECT 1 FROM index_generation, log.projection_checkpoints "
                    "WHERE state = 'serving' AND filled_at IS NOT NULL "
                    "AND projection_name = 'index' AND status = 'running'"
                )
                if await cursor.fetchone():
                    return
            await asyncio.sleep(0.05)


def rows(dsn: str) -> dict[str, int]:
    with psycopg.connect(dsn) as connection:
        return {
            table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # type: ignore[index]
            for table in ROWS
        }


def asked(dsn: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn) as connection:
        return sorted(connection.execute(query).fetchall())


async def collections(settings: Settings) -> set[str]:
    assert settings.chroma_host is not None
    client = ChromaClient(settings.chroma_host, settings.chroma_port)
    try:
        return set(await client.labels())
    finally:
        await client.close()


async def test_one_start_brings_everything_over_and_embeds_nothing_again(
    old: Settings, provider: ScriptedProvider
) -> None:
    before = json.loads(unpacked("chroma.json.gz")).keys()
    assert before <= await collections(old)
    due = asked(old.dsn, PROMISED)
    assert due

    async with started(old) as runtime:
        await filled(runtime)

        assert provider.embeddings == []
        assert rows(old.dsn) == ROWS
        kept = "SELECT event_id, due_time FROM semantic_event WHERE due_time IS NOT NULL"
        assert asked(old.dsn, kept) == due
        assert asked(old.dsn, kept.replace("semantic_event", "event_entry")) == due
        place = "SELECT event_id, event_time FROM event_entry WHERE due_time IS NOT NULL"
        assert asked(old.dsn, place) == due
        assert not before & await collections(old), "texts are left in Chroma"
        await assert_exact(runtime)
        await assert_found(runtime)


async def assert_found(runtime: Runtime) -> None:
    results = await hybrid_search(
        runtime, "colour of room 3", Filters(), limit=3, include_memory=False
    )
    assert "Painting room 3" in {passage.title for passage in results}
    turns, total = await conversations.last_turns(runtime, "c1", 10)
    assert [turn.content for turn in turns] == ["Turn 0", "Turn 1", "Turn 2"]
    assert total == 3
    kept, _ = await memories.list_newest(runtime, memory_type=None, limit=10, offset=0)
    assert len(kept) == ROWS["memory"]


@pytest.mark.parametrize("applied", [15, 20, 26])
async def test_a_migration_that_was_ended_half_way_goes_on(
    old: Settings, provider: ScriptedProvider, applied: int
) -> None:
    migrations.apply(old.dsn, migrations.shipped()[:applied])

    async with started(old) as runtime:
        await filled(runtime)

        assert provider.embeddings == []
        assert rows(old.dsn) == ROWS
        await assert_exact(runtime)


async def test_a_worker_that_is_killed_while_it_takes_vectors_over_is_followed_by_another(
    old: Settings, provider: ScriptedProvider
) -> None:
    migrations.apply(old.dsn)
    environment = {**os.environ, **old.environment(), "LOG_LEVEL": "ERROR"}
    command = [sys.executable, "-m", "tests.index_worker"]
    process = subprocess.Popen(command, env=environment, cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        await some_entries(old.dsn)
    finally:
        process.kill()
        process.wait()

    async with started(old) as runtime:
        await filled(runtime)

        assert provider.embeddings == []
        await assert_exact(runtime)


async def some_entries(dsn: str) -> None:
    async with asyncio.timeout(PATIENCE):
        connection: Any = await psycopg.AsyncConnection.connect(dsn, autocommit=True)
        async with connection:
            while True:
                cursor = await connection.execute("SELECT 1 FROM index_entry LIMIT 1")
                if await cursor.fetchone():
                    return
                await asyncio.sleep(0.005)
