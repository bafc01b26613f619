"""Every tool as each of four principals, over a memory of three tenants: no answer has anything in
it that its principal may not see."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from typing import Any, Self

import psycopg
import pytest

from mcp_server.notifications import addresses_of
from memory_core.kernel.database import Database
from memory_core.kernel.settings import Settings
from memory_core.log.worker import Worker
from memory_core.runtime import Runtime
from memory_core.webhooks.delivering import Webhooks
from memory_core.webhooks.sending import Sender
from tests.access_server import AccessServer
from tests.isolation.asking import someone
from tests.isolation.filling import SCOPES, Filled
from tests.isolation.principals import ASKING, EVERYONE
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
STEPS = 300


@pytest.fixture(scope="module")
def server(services: Settings) -> Iterator[AccessServer]:
    options = {"auth": "keys", "rate_calls_per_minute": 0, "rate_tenant_calls_per_minute": 0}
    with AccessServer(services, **options) as server:
        yield server


@pytest.fixture
async def filled(
    runtime: Runtime, server: AccessServer, sql: psycopg.Connection[Any]
) -> AsyncIterator[Filled]:
    async with AsyncExitStack() as stack:
        filled = Filled(World(random.Random(SEED)), runtime, server, sql)
        await filled.begin(stack)
        await filled.fill()
        yield filled


async def walk(filled: Filled, steps: int, seed: int) -> None:
    rng = random.Random(seed)
    names = sorted(ORACLES)
    for step in range(steps):
        await ORACLES[rng.choice(names)](someone(filled, rng))
        if step % 100 == 99:
            await filled.extract()


async def test_every_tool_has_an_oracle(filled: Filled) -> None:
    for who in ASKING:
        offered = await filled.tools[who].client.list_tools()
        assert {tool.name for tool in offered.tools} == set(ORACLES)


async def test_no_answer_of_a_tool_has_what_its_principal_may_not_see(filled: Filled) -> None:
    await walk(filled, STEPS, SEED)


@asynccontextmanager
async def delivering(database: Database) -> AsyncIterator[None]:
    webhooks = Webhooks(database, Sender(allow_private=True))
    task = asyncio.create_task(Worker(database, [], [webhooks]).run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def change_everything(filled: Filled) -> None:
    """Each document is revised, some are deleted; more comes in."""
    for document in filled.world.documents():
        await filled.revise(document, document.owner)
    for person in EVERYONE:
        for scope, listed in SCOPES:
            await filled.store(person, scope, listed)
        await filled.memorise(person)
        await filled.append(person, "planning")
        document = filled.world.rng.choice(filled.world.documents(person))
        await filled.tools[person]("artifact_delete", artifact_uid=document.uid)
        document.is_gone = True
    await filled.extract()


async def test_no_stream_tells_a_principal_of_what_it_may_not_see(
    filled: Filled, database: Database
) -> None:
    guessed = {one for change in changes_since(filled, 0) for one in addresses_of(change)}
    with AllReceivers() as receivers:
        await subscribe_all(filled, receivers.of)
        since = last_number(filled)
        async with delivering(database), streams(filled, guessed) as told:
            await change_everything(filled)
            await compare(filled, told, receivers.of, since, guessed)


class AllReceivers(ExitStack):
    """One of each person's own."""

    def __enter__(self) -> Self:
        super().__enter__()
        self.of = {who: self.enter_context(Receiver()) for who in ASKING}
        return self
