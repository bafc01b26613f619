"""Each tenant has collections of its own, and what is hidden from a principal takes no place."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest
from pydantic import SecretStr

from memory_core.access import tenants as access
from memory_core.artifacts.document import ArtifactType, Document
from memory_core.artifacts.ingest import ingest, ingest_many
from memory_core.assistant import memories
from memory_core.assistant.memories import MemoryType
from memory_core.index import consistency, new_generation
from memory_core.index.chroma import ChromaClient
from memory_core.index.generation import CollectionName
from memory_core.index.store import IndexEntry
from memory_core.index.writer import settle_now
from memory_core.kernel import migrations
from memory_core.kernel.ids import sha256
from memory_core.kernel.principal import DEFAULT_TENANT, LOCAL, Principal, asking, system
from memory_core.kernel.settings import Settings
from memory_core.log.change import ChangeType, of_tenant
from memory_core.log.log_writer import append
from memory_core.projections import make_host
from memory_core.runtime import Runtime
from memory_core.search.passage_filters import Filters
from memory_core.search.passages import hybrid_search
from stack.connection import joined_runtime
from tests.conftest import IndexHost
from tests.indexing import assert_exact, caught_up, ids, serving
from tests.patience import PATIENCE
from tests.pipeline_client import with_openai
from tests.scripted_provider import ScriptedProvider, embed

ACME, OTHER = UUID(int=0xACE), UUID(int=0x07E)
ALICE, BOB, EVE = Principal(ACME, "alice"), Principal(ACME, "bob"), Principal(OTHER, "eve")
QUESTION = "where do the otters sleep"
NEARER = "Where do the otters sleep?"
OWN = "Some otters were seen to sleep in a boathouse."
CROWD = 1_000


@pytest.fixture
def tenants(sql: psycopg.Connection) -> Iterator[None]:
    for name, id_ in (("acme", ACME), ("other", OTHER)):
        sql.execute("INSERT INTO tenant (tenant_id, name) VALUES (%s, %s)", (id_, name))
    yield
    sql.execute("DELETE FROM tenant WHERE name <> 'default'")


def note(content: str, source_id: str) -> Document:
    return Document(ArtifactType.NOTE, "notes", content, source_id=source_id)


async def crowd(runtime: Runtime, who: Principal) -> None:
    """Documents and memories of another principal, all of them nearer to the question."""
    with asking(who):
        await ingest_many(runtime, [note(f"{NEARER} {n}", f"{n}") for n in range(CROWD)])
    with system("memories of a crowd", who.tenant_id):
        async with runtime.database.transaction() as session:
            await session.connection.execute(
                "INSERT INTO memory (memory_id, type, content, content_hash, confidence, owner, "
                "audience_id) SELECT 'mem_' || n, 'fact', %(text)s || n, n, 0.9, %(user)s, "
                "audience_of(%(tenant)s, ARRAY['user:' || %(user)s]) "
                "FROM generate_series(1, %(crowd)s) AS n",
                {"text": NEARER, "user": who.user, "tenant": who.tenant_id, "crowd": CROWD},
            )
    await settle_now(runtime, [f"mem_{n}" for n in range(1, CROWD + 1)])


async def found_by_meaning(runtime: Runtime, who: Principal) -> tuple[set[str], set[str]]:
    """Documents and memories."""
    with asking(who):
        passages = await hybrid_search(runtime, QUESTION, Filters(), limit=5, include_memory=False)
        [vector] = await runtime.embedder.embed([QUESTION])
        near = await runtime.vectors.query(CollectionName.ARTIFACTS, vector, limit=5)
        remembered = await memories.search(
            runtime, QUESTION, limit=5, min_confidence=0.5, memory_type=None
        )
    documents = {passage.artifact_id for passage in passages}
    assert {hit.id for hit in near} == documents
    return documents, {memory.memory_id for memory, _ in remembered}


async def own_entries(runtime: Runtime, who: Principal) -> tuple[str, str]:
    with asking(who):
        document = await ingest(runtime, note(OWN, "own"))
        memory = await memories.store(
            runtime,
            content=OWN,
            memory_type=MemoryType.FACT,
            confidence=0.9,
            conversation_id=None,
        )
    return document.artifact_id, memory.memory_id


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Everything that Chroma answers from now on."""
    seen: list[Any] = []
    really = ChromaClient.send

    async def watched(self: ChromaClient, method: str, path: str, body: object = None) -> Any:
        answer = await really(self, method, path, body)
        seen.append(answer)
        return answer

    monkeypatch.setattr(ChromaClient, "send", watched)
    return seen


async def test_what_a_tenant_stores_first_is_found_though_it_has_just_searched(
    runtime: Runtime, tenants: None
) -> None:
    assert await found_by_meaning(runtime, ALICE) == (set(), set())
    document, memory = await own_entries(runtime, ALICE)
    await caught_up(runtime)

    assert await found_by_meaning(runtime, ALICE) == ({document}, {memory})


@pytest.mark.parametrize("others", [EVE, BOB], ids=["of another tenant", "hidden in the tenant"])
async def test_a_thousand_foreign_entries_that_are_nearer_take_no_place(
    runtime: Runtime, tenants: None, answers: list[Any], others: Principal
) -> None:
    await crowd(runtime, others)
    document, memory = await own_entries(runtime, ALICE)
    await caught_up(runtime)
    answers.clear()

    assert await found_by_meaning(runtime, ALICE) == ({document}, {memory})
    if others.tenant_id != ALICE.tenant_id:
        text = json.dumps(answers)
        assert document in text
        assert text.count("art_") == text.count(document)
        assert text.count("mem_") == text.count(memory)


async def test_a_tenant_without_documents_finds_nothing_and_costs_no_question(
    runtime: Runtime, tenants: None, answers: list[Any]
) -> None:
    await own_entries(runtime, LOCAL)
    await caught_up(runtime)
    answers.clear()

    assert await found_by_meaning(runtime, ALICE) == (set(), set())
    with asking(ALICE):
        assert await runtime.vectors.count(CollectionName.ARTIFACTS) == 0
    assert answers == []


async def in_three_tenants(runtime: Runtime) -> dict[UUID, set[str]]:
    """Documents and a memory of each; the ids of the documents."""
    made: dict[UUID, set[str]] = {}
    for who in (LOCAL, ALICE, EVE):
        document, _ = await own_entries(runtime, who)
        with asking(who):
            more = await ingest_many(runtime, [note(f"{OWN} {n}", f"{n}") for n in range(30)])
        made[who.tenant_id] = {document, *(one.artifact_id for one in more)}
    await caught_up(runtime)
    return made


async def standing(runtime: Runtime) -> dict[UUID, set[str]]:
    return {
        tenant: await ids(runtime, CollectionName.ARTIFACTS, tenant)
        for tenant in (DEFAULT_TENANT, ACME, OTHER)
    }


async def test_entries_stand_with_their_tenant_before_and_after_a_rebuild(
    runtime: Runtime, tenants: None, index_host: IndexHost
) -> None:
    made = await in_three_tenants(runtime)
    assert await standing(runtime) == made
    await access.suspend(runtime.database, "acme")
    before = await serving(runtime)
    await index_host.stop()

    async with runtime.database.transaction() as session:
        await new_generation.generations.begin(session, runtime.embedder)
    await new_generation.rebuild(runtime)

    assert (await serving(runtime)).generation > before.generation
    assert await standing(runtime) == made, "what a suspended tenant has stays"
    left = await runtime.vectors.labels()
    assert not any(before.has_named(name) for name in left)
    await index_host.host(runtime)
    await assert_exact(runtime)


async def test_what_differs_in_the_collections_of_a_tenant_is_found_and_repaired(
    runtime: Runtime, tenants: None
) -> None:
    made = await in_three_tenants(runtime)
    generation = await serving(runtime)
    lost = min(made[ACME])
    of_acme = generation.name_in_chroma(CollectionName.ARTIFACTS, ACME)
    of_other = generation.name_in_chroma(CollectionName.ARTIFACTS, OTHER)
    [entry] = await entries(runtime, of_acme, lost)
    await runtime.vectors.delete(of_acme, [lost])
    await runtime.vectors.upsert(of_other, [entry])

    difference = await consistency.compare(runtime, sample=5)

    assert sorted(difference.differences()) == [
        f"artifacts: {lost} is missing",
        f"artifacts: {lost} is not in Postgres",
    ]
    assert await consistency.repair(runtime) == 2
    assert await standing(runtime) == made
    await assert_exact(runtime)


async def test_the_lost_collections_of_one_tenant_are_made_again(
    runtime: Runtime, tenants: None
) -> None:
    made = await in_three_tenants(runtime)
    lost = await serving(runtime)
    await runtime.vectors.drop(lost.names_of(ACME))

    await consistency.repair(runtime)

    async with asyncio.timeout(PATIENCE):
        while (filled := await new_generation.progress(runtime)) is None or not filled.is_filled:
            await asyncio.sleep(0.02)
    assert (await serving(runtime)).generation > lost.generation
    assert await standing(runtime) == made
    await assert_exact(runtime)


async def entries(runtime: Runtime, collection: str, id_: str) -> list[IndexEntry]:
    [hash_] = (await runtime.vectors.hashes(collection, ids=[id_])).values()
    [vector] = await runtime.embedder.embed([OWN])
    return [IndexEntry(id_, vector, hash_ or "", {})]


async def test_the_index_of_a_tenant_goes_with_the_tenant(
    runtime: Runtime, tenants: None, sql: psycopg.Connection
) -> None:
    made = await in_three_tenants(runtime)
    with system("a tenant is deleted", ACME):
        async with runtime.database.transaction() as session:
            for table in ("revision_chunk", "revision_text", "artifact_revision", "memory"):
                await session.connection.execute(
                    f"DELETE FROM {table} WHERE tenant_id = %s", [ACME]
                )
            await append(session, [of_tenant(ChangeType.TENANT_DELETED, ACME)])
    await caught_up(runtime)

    names = await runtime.vectors.labels()
    assert not any(ACME.hex in name for name in names)
    for table in ("index_entry", "index_collections", "embedding_cache"):
        left = sql.execute(f"SELECT count(*) FROM {table} WHERE tenant_id = %s", [ACME])
        assert left.fetchone() == (0,), table
    kept = {tenant: made[tenant] for tenant in (DEFAULT_TENANT, OTHER)}
    assert {tenant: await ids(runtime, CollectionName.ARTIFACTS, tenant) for tenant in kept} == kept
    await assert_exact(runtime)


@pytest.fixture
async def paying(
    openai_settings: Settings, index_host: IndexHost, tenants: None
) -> AsyncIterator[Runtime]:
    runtime = joined_runtime(openai_settings, unasked="a test looks at what is stored")
    await runtime.open()
    await index_host.serve(runtime)
    yield runtime
    await index_host.stop()
    await runtime.close()


async def test_a_tenant_does_not_profit_from_what_another_has_paid_for(
    paying: Runtime, provider: ScriptedProvider
) -> None:
    for who in (ALICE, EVE):
        with asking(who):
            await ingest(paying, note(OWN, "first"))
            await caught_up(paying)
            await ingest(paying, note(OWN, "second"))
            await caught_up(paying)

    assert [text for call in provider.embeddings for text in call.body["input"]] == [OWN, OWN]


TEXTS = {"mem_1": "The user likes otters", "mem_2": "Acme likes otters"}
DIMENSION = 64
BEFORE = 44  # the migration before tenants had collections of their own


async def test_an_index_that_tenants_shared_is_parted_and_nothing_of_the_default_tenant_paid_again(
    own_database: str, services: Settings, provider: ScriptedProvider, index_host: IndexHost
) -> None:
    await index_host.stop()
    migrations.apply(own_database, migrations.shipped()[:BEFORE])
    await plant_shared_index(own_database, services)
    own = {"events_db_dsn": SecretStr(own_database), "embedder": "openai"}
    settings = with_openai(
        services,
        provider,
        **own,
        openai_embed_dims=DIMENSION,
        openai_embed_model="scripted-embedding",
    )

    runtime = Runtime(settings, worker="always", make_host=make_host)
    await runtime.open()
    try:
        with system("a test looks at the whole index"):
            await rebuilt(own_database)
            assert await ids(runtime, CollectionName.MEMORY) == {"mem_1"}
            assert await ids(runtime, CollectionName.MEMORY, ACME) == {"mem_2"}
            sent = [text for call in provider.embeddings for text in call.body["input"]]
            assert sent == [TEXTS["mem_2"]]
            await assert_exact(runtime)
    finally:
        await runtime.close()


async def plant_shared_index(dsn: str, services: Settings) -> None:
    """A memory of the default tenant and one of another, in the same collection."""
    with psycopg.connect(dsn, autocommit=True) as sql:
        sql.execute("INSERT INTO tenant (tenant_id, name) VALUES (%s, 'acme')", [ACME])
        sql.execute(
            "INSERT INTO index_generation (state, token, provider, model, dimension, made_at, "
            "filled_at) VALUES ('serving', 'shared', 'openai', 'scripted-embedding', %s, now(), "
            "now())",
            [DIMENSION],
        )
        for (id_, text), tenant in zip(TEXTS.items(), (DEFAULT_TENANT, ACME), strict=True):
            sql.execute(
                "INSERT INTO memory (memory_id, type, content, content_hash, confidence, "
                "tenant_id, audience_id) VALUES (%s, 'fact', %s, '', 1, %s, "
                "audience_of(%s, '{user:local}'))",
                [id_, text, tenant, tenant],
            )
            sql.execute(
                "INSERT INTO index_entry (generation, collection, id, owner, hash) "
                "VALUES (1, 'memory', %s, %s, %s)",
                [id_, id_, f"{sha256(text)}/fact/1"],
            )
        sql.execute(
            "INSERT INTO log.projection_checkpoints (projection_name, status, rebuilt_at, "
            "transaction_id, sequence_number) VALUES ('index', 'running', now(), '1', 0)"
        )
    assert services.chroma_host is not None
    client = ChromaClient(services.chroma_host, services.chroma_port)
    label = {"provider": "openai", "model": "scripted-embedding", "dimension": DIMENSION}
    for name in CollectionName:
        made = await client.make(f"{name}-1-shared", label)
        if name is CollectionName.MEMORY:
            vectors = [embed(text, DIMENSION) for text in TEXTS.values()]
            hashes = [{"hash": f"{sha256(text)}/fact/1"} for text in TEXTS.values()]
            await made.call("upsert", ids=list(TEXTS), embeddings=vectors, metadatas=hashes)
    await client.close()


async def rebuilt(dsn: str) -> None:
    async with asyncio.timeout(PATIENCE):
        with psycopg.connect(dsn, autocommit=True) as sql:
            while not sql.execute(
                "SELECT 1 FROM log.projection_checkpoints WHERE status = 'running'"
            ).fetchone():
                await asyncio.sleep(0.05)
