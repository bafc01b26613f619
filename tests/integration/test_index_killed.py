"""kill -9 of the worker at random, while many write: afterwards Chroma is what Postgres expects."""

import asyncio
import contextlib
import os
import random
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

from memory_core.artifacts.deletion import delete_artifact
from memory_core.artifacts.document import ArtifactType, Document
from memory_core.artifacts.ingest import ingest
from memory_core.index.generation import CollectionName
from memory_core.kernel.errors import NotFound
from memory_core.kernel.principal import LOCAL, Principal, asking
from memory_core.kernel.settings import Settings
from memory_core.log import checkpoint
from memory_core.log.change import START, Position
from memory_core.runtime import Runtime
from tests.conftest import IndexHost
from tests.indexing import assert_exact, ids
from tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
CLIENTS = 8
DOCUMENTS = 40
ACME = UUID(int=0xACE)
WRITERS = (LOCAL, Principal(ACME, "alice"))


class MortalWorker:
    """Started again and again, and killed once it has got on a little."""

    def __init__(self, settings: Settings, runtime: Runtime, dice: random.Random) -> None:
        self._environment = {**os.environ, **settings.environment(), "LOG_LEVEL": "ERROR"}
        self._runtime, self._dice = runtime, dice
        self.kills = 0

    async def live_and_die(self) -> None:
        while True:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.index_worker"],
                env=self._environment,
                cwd=ROOT,
                stderr=subprocess.DEVNULL,
            )
            try:
                await self._got_on(await self._position())
                await asyncio.sleep(self._dice.uniform(0, 0.3))
            finally:
                process.kill()
                process.wait()
            self.kills += 1

    async def _position(self) -> Position:
        async with self._runtime.database.session() as session:
            point = await checkpoint.load(session, "index")
        return START if point is None else point.position

    async def _got_on(self, since: Position) -> None:
        while await self._position() <= since:
            await asyncio.sleep(0.005)


async def write(
    runtime: Runtime, dice: random.Random, operations: int, who: Principal = LOCAL
) -> None:
    """Ingests, revisions, restores and deletions of documents that others write as well."""
    with asking(who):
        await _write(runtime, dice, operations)


async def _write(runtime: Runtime, dice: random.Random, operations: int) -> None:
    for _ in range(operations):
        name = f"doc-{dice.randrange(DOCUMENTS)}"
        length = dice.choice([1, 1, 1, 400])
        content = f"{name}: otter {dice.randrange(3)} sleeps in the boathouse. " * length
        document = Document(ArtifactType.NOTE, "chaos", content, source_id=name)
        stored = await ingest(runtime, document)
        if dice.random() < 0.25:
            with contextlib.suppress(NotFound):
                await delete_artifact(runtime, artifact_uid=stored.artifact_uid)


@pytest.mark.parametrize(
    "operations", [240, pytest.param(2_000, marks=pytest.mark.slow)], ids=["some", "many"]
)
async def test_a_worker_that_is_killed_at_random_leaves_the_index_exact(
    runtime: Runtime,
    index_host: IndexHost,
    settings: Settings,
    sql: psycopg.Connection,
    operations: int,
) -> None:
    dice = random.Random(20261118)
    await index_host.stop()
    worker = MortalWorker(settings, runtime, dice)
    dying = asyncio.create_task(worker.live_and_die())
    sql.execute("INSERT INTO tenant (tenant_id, name) VALUES (%s, 'acme')", [ACME])
    each = operations // CLIENTS
    writers = [
        write(runtime, random.Random(seed), each, WRITERS[seed % len(WRITERS)])
        for seed in range(CLIENTS)
    ]
    await asyncio.gather(*writers)
    async with asyncio.timeout(PATIENCE):
        while worker.kills < 3:
            await write(runtime, dice, 1)
            await asyncio.sleep(0.02)
    dying.cancel()
    await asyncio.gather(dying, return_exceptions=True)

    await index_host.host(runtime)
    await assert_exact(runtime)

    documents = sql.execute(
        "SELECT tenant_id, array_agg(artifact_id) FROM artifact_revision WHERE is_latest "
        "GROUP BY tenant_id"
    ).fetchall()
    assert len(documents) == len(WRITERS)
    for tenant_id, expected in documents:
        assert await ids(runtime, CollectionName.ARTIFACTS, tenant_id) == set(expected)
    letters = sql.execute("SELECT count(*) FROM log.dead_letter_queue").fetchone()
    assert letters == (0,)
    orphans = sql.execute(
        "SELECT count(*) FROM index_entry e WHERE NOT EXISTS "
        "(SELECT 1 FROM artifact_revision r WHERE r.artifact_uid = e.owner)"
    ).fetchone()
    assert orphans == (0,)
