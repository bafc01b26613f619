"""Rates: over all servers together; 429 with Retry-After, over stdio an error of the tool."""

from collections.abc import AsyncIterator

import pytest
from mcp import Client

from mcp_server.server import build_server
from memory_core.access.credential import RateLimited
from memory_core.access.rate_limits import RateLimiter
from memory_core.kernel.database import Database
from memory_core.kernel.principal import Principal
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from tests.access_server import AccessServer, make_key
from tests.tool_client import ToolClient, in_one_task

ALICE, BOB = Principal(user="alice"), Principal(user="bob")


class Servers:
    """Limiters as several servers have them, each with its own counts."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.limiters: list[RateLimiter] = []

    def add(self, *, of_user: int = 0, of_tenant: int = 0) -> RateLimiter:
        async def opened() -> Database:
            return self._database

        limiter = RateLimiter(opened, of_user=of_user, of_tenant=of_tenant)
        self.limiters.append(limiter)
        return limiter


@pytest.fixture
async def servers(database: Database) -> AsyncIterator[Servers]:
    servers = Servers(database)
    yield servers
    for limiter in servers.limiters:
        await limiter.close()


async def let_in(limiter: RateLimiter, principal: Principal, calls: int) -> int:
    for number in range(calls):
        try:
            await limiter.admit(principal)
        except RateLimited:
            return number
    return calls


class TestLimiter:
    async def test_each_user_has_a_limit_of_its_own(self, servers: Servers) -> None:
        limiter = servers.add(of_user=5)
        assert await let_in(limiter, ALICE, 9) == 5
        assert await let_in(limiter, BOB, 9) == 5

    async def test_a_tenant_has_one_for_all_its_users(self, servers: Servers) -> None:
        limiter = servers.add(of_tenant=8)
        assert await let_in(limiter, ALICE, 5) == 5
        assert await let_in(limiter, BOB, 5) == 3

    async def test_a_server_that_comes_later_knows_what_the_others_let_in(
        self, servers: Servers
    ) -> None:
        first = servers.add(of_user=10)
        assert await let_in(first, ALICE, 7) == 7
        await first.exchange()
        assert await let_in(servers.add(of_user=10), ALICE, 7) == 3

    async def test_servers_learn_of_each_other_again_and_again(self, servers: Servers) -> None:
        first, second = servers.add(of_user=20), servers.add(of_user=20)
        for limiter in (first, second, first):
            assert await let_in(limiter, ALICE, 5) == 5
            await limiter.exchange()
        await second.exchange()
        assert await let_in(second, ALICE, 9) == 5

    async def test_counts_are_told_once(self, servers: Servers, database: Database) -> None:
        limiter = servers.add(of_user=10)
        await let_in(limiter, ALICE, 3)
        for _ in range(3):
            await limiter.exchange()
        async with database.session() as session:
            cursor = await session.connection.execute("SELECT sum(calls) AS calls FROM rate_window")
            assert await cursor.fetchone() == {"calls": 3}

    async def test_refused_calls_do_not_count(self, servers: Servers, database: Database) -> None:
        limiter = servers.add(of_user=2)
        for _ in range(5):
            await let_in(limiter, ALICE, 9)
        await limiter.exchange()
        async with database.session() as session:
            cursor = await session.connection.execute("SELECT sum(calls) AS calls FROM rate_window")
            assert await cursor.fetchone() == {"calls": 2}

    async def test_without_postgres_each_server_keeps_the_limit_itself(self) -> None:
        async def opened() -> Database:
            database = Database("postgresql://u:s3cr3t@127.0.0.1:1/db")
            await database.open()
            opened_ones.append(database)
            return database

        opened_ones: list[Database] = []
        limiter = RateLimiter(opened, of_user=3, of_tenant=0)
        assert await let_in(limiter, ALICE, 5) == 3
        await limiter.close()
        for database in opened_ones:
            await database.close()


class TestTransports:
    async def test_http_answers_429_and_others_are_served(
        self, services: Settings, runtime: Runtime
    ) -> None:
        alice, bob = [await make_key(runtime.database, user=user) for user in ("alice", "bob")]
        with AccessServer(services, auth="keys", rate_calls_per_minute=4) as server:
            answers = [server.ask("/nothing-here", alice) for _ in range(6)]
            other = server.ask("/nothing-here", bob)
        assert [answer.status_code for answer in answers] == [404] * 4 + [429] * 2
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 66
        assert answers[-1].json()["error_code"] == "RATE_LIMITED"
        assert other.status_code == 404

    async def test_the_user_of_this_machine_has_a_limit_when_one_is_set(
        self, services: Settings, runtime: Runtime
    ) -> None:
        with AccessServer(services, rate_calls_per_minute=2) as server:
            assert [server.ask("/nothing-here").status_code for _ in range(3)] == [404, 404, 429]

    async def test_stdio_gives_an_error_of_the_tool(
        self, services: Settings, runtime: Runtime
    ) -> None:
        limited = services.model_copy(update={"rate_calls_per_minute": 2})
        server = build_server(limited, stdio=True, runtime=runtime)
        async with in_one_task(Client(server)) as client:
            tools = ToolClient(client)
            for _ in range(2):
                await tools("memory_list")
            refused = await tools.refusal("memory_list")
        assert refused["error_code"] == "RATE_LIMITED"
        assert 1 <= refused["details"]["retry_after"] <= 66

    def test_without_settings_the_user_of_this_machine_has_none(self) -> None:
        local, keyed = Settings(_env_file=None), Settings(_env_file=None, auth="keys")
        assert (local.calls_per_minute, local.tenant_calls_per_minute) == (0, 0)
        assert (keyed.calls_per_minute, keyed.tenant_calls_per_minute) == (600, 6000)
