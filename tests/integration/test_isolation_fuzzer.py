"""Every tool as each of four principals, over a memory of three tenants: no answer has anything in
it that its principal may not see."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from functools import partial
from typing import Any, Self

import psycopg
import pytest
from typer.testing import CliRunner

from mcp_server.cli import app
from mcp_server.resource_notifications import addresses_of
from mcp_server.server import build_server
from memory_core.access.audiences import Audience
from memory_core.index.generation import CollectionName, Generation
from memory_core.kernel import principal
from memory_core.kernel.database import Database
from memory_core.kernel.principal import asking
from memory_core.kernel.settings import Settings
from memory_core.log.worker import Worker
from memory_core.runtime import Runtime
from memory_core.webhooks.delivery import Webhooks
from memory_core.webhooks.sender import Sender
from tests.access_server import AccessServer, make_key
from tests.conftest import IndexHost, empty_tables
from tests.indexing import caught_up
from tests.indexing import ids as indexed_ids
from tests.isolation import planting
from tests.isolation.asking import Asking, Leak, any_person
from tests.isolation.command_oracles import OPERATORS, PERSONAL, THROUGH_TOOLS, names
from tests.isolation.filling import SCOPES, Filled
from tests.isolation.principals import ALICE, ASKING, BOB, EVERYONE, TENANTS, Person
from tests.isolation.resource_oracles import RESOURCES, TEMPLATES, read_missing
from tests.isolation.statements import Statements
from tests.isolation.streams import (
    changes_since,
    compare,
    last_number,
    streams,
    subscribe_all,
)
from tests.isolation.tool_oracles import ORACLES
from tests.isolation.world import World
from tests.webhook_receiver import Receiver

SEED = 17


@pytest.fixture(scope="module")
def server(services: Settings) -> Iterator[AccessServer]:
    options = {"auth": "keys", "rate_calls_per_minute": 0, "rate_tenant_calls_per_minute": 0}
    with AccessServer(services, **options) as server:
        yield server


@pytest.fixture(scope="module")
async def filled(
    services: Settings, _session_runtime: Runtime, index_host: IndexHost, server: AccessServer
) -> AsyncIterator[Filled]:
    """One world for all tests: they keep account of what they change."""
    empty_tables(services)
    await index_host.serve(_session_runtime)
    with psycopg.connect(services.dsn, autocommit=True) as sql:
        async with AsyncExitStack() as stack:
            filled = Filled(World(random.Random(SEED)), _session_runtime, server, sql)
            await filled.begin(stack)
            await filled.fill()
            yield filled


async def walk(filled: Filled, steps: int, seed: int) -> None:
    rng = random.Random(seed)
    oracles = {**ORACLES, **RESOURCES}
    names = sorted(oracles)
    for step in range(steps):
        # Each in turn, so that none is left out.
        name = names[step] if step < len(names) else rng.choice(names)
        await oracles[name](any_person(filled, rng))
        if step % 100 == 99:
            await filled.extract()


async def test_every_tool_and_resource_has_an_oracle(filled: Filled, services: Settings) -> None:
    for who in ASKING:
        client = filled.tools[who].client
        assert {tool.name for tool in (await client.list_tools()).tools} == set(ORACLES)
        offered = await client.list_resource_templates()
        assert {one.uri_template for one in offered.resource_templates} == set(TEMPLATES)
    at_home = await build_server(services, stdio=True).list_tools()
    assert {tool.name for tool in at_home} - set(ORACLES) == {"artifact_ingest_file"}


@pytest.mark.parametrize(
    "steps", [300, pytest.param(5_000, marks=pytest.mark.slow)], ids=["some", "many"]
)
async def test_no_answer_has_what_its_principal_may_not_see(filled: Filled, steps: int) -> None:
    await walk(filled, steps, SEED)
    await no_foreign_vectors(filled)


async def no_foreign_vectors(filled: Filled) -> None:
    """The collections of a tenant have entries of that tenant's alone."""
    await caught_up(filled.runtime)
    tenant_of = {id_: item.owner.tenant for item in filled.world.items for id_ in item.ids}
    entries = 0
    for tenant, tenant_id in TENANTS.items():
        for name in CollectionName:
            ids = await indexed_ids(filled.runtime, name, tenant_id)
            entries += len(ids)
            foreign = {id_ for id_ in ids if tenant_of.get(id_.split("::")[0]) != tenant}
            if foreign:
                raise Leak(f"in {name} of {tenant}: {sorted(foreign)[:5]}")
    assert entries


def test_no_statement_of_the_application_tells_or_changes_what_its_principal_may_not_see(
    filled: Filled, services: Settings
) -> None:
    statements = Statements(filled, services.dsn)
    for who in ASKING:
        statements.look_at_tables(who)
        sent = statements.send(who, random.Random(SEED))
        assert len(sent.answered) > 150, (len(sent.answered), sent.failed)
        assert sent.forbidden, "the application may do everything"


def test_every_command_is_of_one_kind() -> None:
    assert set(names(app)) == {*PERSONAL, *THROUGH_TOOLS, *OPERATORS}


async def test_no_command_shows_what_its_principal_may_not_see(
    filled: Filled, settings_in_environment: None
) -> None:
    rng = random.Random(SEED)
    for who in ASKING:
        for name, arguments in PERSONAL.items():
            ask = Asking(filled, who, rng)
            given = [*name.split(), *arguments(ask)]
            with asking(who.principal):
                done = await asyncio.to_thread(CliRunner().invoke, app, given)
            said = f"{done.output} {done.exception}"
            ask.look_through(" ".join(given), said, " ".join(given))


@pytest.fixture
def settings_in_environment(services: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in services.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("COLUMNS", "220")


async def test_no_route_tells_more(filled: Filled, services: Settings) -> None:
    app_ = build_server(services).streamable_http_app(host="127.0.0.1")
    paths = {str(getattr(route, "path", "")) for route in app_.routes}
    assert paths == {"/mcp", "/health", "/changes", "/metrics"}
    for who in ASKING:
        health = filled.server.ask("/health", filled.keys[who])
        assert health.text == filled.server.ask("/health").text
        metrics = filled.server.ask("/metrics", filled.keys[who])
        assert metrics.status_code == 403
    with principal.system("a test makes a key"):
        admin = await make_key(filled.runtime.database, scopes=["admin"])
    for path in ("/metrics", "/health"):
        shown = filled.server.ask(path, admin).text
        assert filled.world.leaks(Person("nowhere", "admin"), shown) == set()


@asynccontextmanager
async def delivering(database: Database) -> AsyncIterator[None]:
    webhooks = Webhooks(database, Sender(allow_private=True))
    with principal.system("webhooks are delivered"):
        task = asyncio.create_task(Worker(database, [], [webhooks]).run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def change_everything(filled: Filled) -> None:
    """Documents are revised, deleted, and come in. Each person hears of a last change: who has
    heard of it has heard of all before."""
    world, rng = filled.world, filled.world.rng
    last = [next(one for one in world.documents(who) if one.owner == who) for who in ASKING]
    others = [document for document in world.documents() if document not in last]
    for document in rng.sample(others, 15):
        await filled.revise(document, document.owner)
    for person in EVERYONE:
        await filled.store(person, *rng.choice(SCOPES))
        await filled.memorise(person)
        await filled.append(person, "planning")
        document = rng.choice([one for one in world.documents(person) if one not in last])
        await filled.tools[person]("artifact_delete", artifact_uid=document.uid)
        document.is_gone = True
    await filled.extract()
    for document in last:
        await filled.revise(document, document.owner)
    filled.take_note()


async def test_no_stream_tells_a_principal_of_what_it_may_not_see(filled: Filled) -> None:
    await follow_everything(filled)


async def follow_everything(filled: Filled) -> None:
    guessed = {one for change in changes_since(filled, 0) for one in addresses_of(change)}
    with AllReceivers() as receivers:
        await subscribe_all(filled, receivers.of)
        since = last_number(filled)
        async with (
            delivering(filled.runtime.database),
            streams(filled, guessed) as followed,
        ):
            await change_everything(filled)
            await compare(filled, followed, receivers.of, since, guessed)
        filled.sql.execute("DELETE FROM log.webhook_subscriptions")


class AllReceivers(ExitStack):
    """One of each person's own."""

    def __enter__(self) -> Self:
        super().__enter__()
        self.of = {who: self.enter_context(Receiver()) for who in ASKING}
        return self


READING = sorted(
    name for name in {**ORACLES, **RESOURCES}
    if not name.endswith(("ingest", "delete", "store", "append", "cancel", "reextract"))
)  # fmt: skip


async def read_everything(filled: Filled, services: Settings) -> None:
    """Whatever reads, and the tables themselves; the world stays as it is."""
    for who in ASKING:
        Statements(filled, services.dsn).look_at_tables(who)
    for name in READING:
        for who in ASKING:
            rng = random.Random(f"{name} {who}")
            await {**ORACLES, **RESOURCES}[name](Asking(filled, who, rng))


@pytest.mark.parametrize(
    "planted",
    [
        *(
            partial(planting.policy_off, table=table)
            for table in ("artifact_revision", "revision_text", "semantic_event", "memory",
                          "event_jobs", "history_turn", "log.events", "event_actor")
        ),
        partial(planting.not_narrowed, view="visible_event", table="event_entry"),
        partial(planting.not_narrowed, view="visible_chunk", table="chunk_entry"),
        partial(planting.not_narrowed, view="visible_entity", table="revision_entity"),
        partial(planting.marks_missing, table="event_entry"),
        partial(planting.marks_missing, table="chunk_entry"),
        planting.whole_tenant_seen,
        planting.words_counted_for_all,
    ],
    ids=lambda bug: " ".join(
        [getattr(bug, "func", bug).__name__, *getattr(bug, "keywords", {}).values()]
    ),
)  # fmt: skip
async def test_a_bug_in_the_database_is_found(
    filled: Filled, services: Settings, planted: Any
) -> None:
    with planted(filled.sql), pytest.raises(Leak):
        await read_everything(filled, services)


async def test_without_a_bug_nothing_is_found(filled: Filled, services: Settings) -> None:
    await read_everything(filled, services)


async def test_revisions_that_stay_behind_are_found(filled: Filled) -> None:
    document = await filled.store(ALICE, "org")
    await filled.revise(document, ALICE)
    with planting.revisions_apart(filled.sql):
        await filled.relabel(document, "me", ())
        address = f"memory://artifact/{document.uid}/{next(iter(document.contents))}"
        ask = Asking(filled, BOB, random.Random(SEED))
        with pytest.raises(Leak):
            await read_missing(ask, address, document.uid, "uid_0123456789abcdef")
    await filled.relabel(document, "org", ())
    await filled.relabel(document, "me", ())


async def test_notifications_by_tenant_alone_are_found(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Audience, "has", lambda self, who: who.tenant_id == self.tenant_id)
    with pytest.raises(Leak, match="notifications"):
        await follow_everything(filled)
    filled.sql.execute("DELETE FROM log.webhook_subscriptions")


async def test_a_collection_that_tenants_share_is_found(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    await no_foreign_vectors(filled)
    own = Generation.name_in_chroma
    monkeypatch.setattr(Generation, "name_in_chroma", lambda self, name, *_: own(self, name))
    await filled.store(ALICE, "org")
    with pytest.raises(Leak):
        await no_foreign_vectors(filled)
