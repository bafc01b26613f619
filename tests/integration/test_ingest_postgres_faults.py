"""Ingest while Postgres fails, waits or dies: all of a revision, or nothing."""

import asyncio
import signal
from collections.abc import Callable, Iterator

import psycopg
import pytest
from mcp import Client
from pydantic import SecretStr

from mcp_server.server import build_server
from memory_core.index.generation import CollectionName
from memory_core.kernel.database import Database
from memory_core.kernel.settings import Settings
from memory_core.log import log_reader
from memory_core.runtime import Runtime
from stack.postgres import EmbeddedPostgres, identity
from tests.integration.failing_servers import (
    LONG,
    NOTE,
    Server,
    stored_rows,
    until,
    visible,
)
from tests.patience import PATIENCE
from tests.tool_client import ToolClient

# --- Postgres --------------------------------------------------------------------------------


class Blocker:
    """Stops an ingest before its commit, by a lock it must wait for."""

    def __init__(self, dsn: str) -> None:
        self._holder = psycopg.connect(dsn)
        self._observer = psycopg.connect(dsn, autocommit=True)
        # Readers pass; a process that inserts a job waits.
        self._holder.execute("LOCK TABLE event_jobs IN EXCLUSIVE MODE")

    def waiting(self) -> list[int]:
        rows = self._observer.execute(
            "SELECT pid FROM pg_stat_activity "
            "WHERE wait_event_type = 'Lock' AND query LIKE '%INSERT INTO event_jobs%'"
        ).fetchall()
        return [pid for (pid,) in rows]

    def cut(self) -> None:
        for pid in self.waiting():
            self._observer.execute("SELECT pg_terminate_backend(%s)", [pid])

    def release(self) -> None:
        self._holder.close()
        self._observer.close()


@pytest.mark.parametrize("content", [NOTE["content"], LONG], ids=["short", "long"])
async def test_the_connection_is_cut_before_the_commit(
    tools: ToolClient, settings: Settings, runtime: Runtime, content: str
) -> None:
    blocker = Blocker(settings.dsn)
    failing = asyncio.create_task(tools.refusal("artifact_ingest", **{**NOTE, "content": content}))
    await until(blocker.waiting)

    blocker.cut()
    error = await failing
    blocker.release()

    assert error["error_code"] == "POSTGRES_CONNECTION_ERROR"
    assert stored_rows(settings.dsn) == 0
    assert await visible(tools) == []
    assert (await tools("artifact_ingest", **{**NOTE, "content": content}))["status"] == "created"
    assert await visible(tools)
    assert await runtime.vectors.count(CollectionName.ARTIFACTS) == 1


async def test_a_revision_that_is_cut_off_leaves_the_old_one_in_place(
    tools: ToolClient, settings: Settings
) -> None:
    await tools("artifact_ingest", **NOTE)
    blocker = Blocker(settings.dsn)
    revision = {**NOTE, "content": "Otters left."}
    failing = asyncio.create_task(tools.refusal("artifact_ingest", **revision))
    await until(blocker.waiting)
    blocker.cut()
    await failing
    blocker.release()

    [hit] = (await tools("hybrid_search", query="otters"))["results"]
    assert hit["text"] == NOTE["content"]
    assert "dense_artifacts" in hit["sources"]
    assert (await tools("artifact_ingest", **revision))["status"] == "revised"
    assert await visible(tools) == ["Otters left."]


async def test_a_client_that_goes_away_in_the_middle_leaves_nothing(
    settings: Settings, runtime: Runtime, tools: ToolClient
) -> None:
    blocker = Blocker(settings.dsn)
    async with Client(build_server(settings)) as leaving:
        call = asyncio.create_task(leaving.call_tool("artifact_ingest", {**NOTE}))
        await until(blocker.waiting)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    blocker.release()

    assert await visible(tools) == []
    assert stored_rows(settings.dsn) == 0
    assert (await tools("artifact_ingest", **NOTE))["status"] == "created"


@pytest.fixture
def full_disk(settings: Settings) -> Iterator[Callable[[], None]]:
    """Postgres fails as on a full disk, at the very commit. Call it to make room."""
    with psycopg.connect(settings.dsn, autocommit=True) as connection:
        connection.execute(
            "CREATE OR REPLACE FUNCTION disk_is_full() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' "
            "USING ERRCODE = 'disk_full'; END $$"
        )
        connection.execute(
            "CREATE CONSTRAINT TRIGGER full_disk AFTER INSERT ON event_jobs "
            "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION disk_is_full()"
        )

        def make_room() -> None:
            connection.execute("DROP TRIGGER IF EXISTS full_disk ON event_jobs")

        yield make_room
        make_room()
        connection.execute("DROP FUNCTION disk_is_full")


async def test_the_disk_is_full(
    tools: ToolClient, settings: Settings, full_disk: Callable[[], None]
) -> None:
    error = await tools.refusal("artifact_ingest", **NOTE)

    assert error["error_code"] == "POSTGRES_CONNECTION_ERROR"
    assert stored_rows(settings.dsn) == 0
    assert await visible(tools) == []
    full_disk()
    assert (await tools("artifact_ingest", **NOTE))["status"] == "created"
    assert await visible(tools) == [NOTE["content"]]


@pytest.fixture(scope="module")
def _own_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, str]]:
    embedded = EmbeddedPostgres(tmp_path_factory.mktemp("own") / "postgres")
    embedded.prepare()

    def ready() -> bool:
        with psycopg.connect(embedded.dsn) as connection:
            return connection.execute("SELECT 1").fetchone() is not None

    server = Server(embedded.command(), ready, cwd="/", **identity(embedded.account))
    yield server, embedded.dsn
    server.stop(signal.SIGQUIT)


@pytest.fixture
async def own_postgres(
    _own_postgres: tuple[Server, str], settings: Settings, runtime: Runtime
) -> tuple[Server, Settings]:
    """A Postgres that may be stopped, running, and settings that point at it."""
    server, dsn = _own_postgres
    if not server.running:
        server.start()
        await server.ready()
    return server, settings.model_copy(update={"events_db_dsn": SecretStr(dsn)})


async def test_postgres_stops_between_chroma_and_the_commit(
    own_postgres: tuple[Server, Settings], runtime: Runtime
) -> None:
    server, own = own_postgres
    async with Client(build_server(own)) as client:
        tools = ToolClient(client)
        await tools("memory_list")  # opens the stores and applies the migrations
        blocker = Blocker(own.dsn)
        failing = asyncio.create_task(tools.refusal("artifact_ingest", **NOTE))
        await until(blocker.waiting)

        server.stop(signal.SIGQUIT)
        error = await failing

        assert error["error_code"] == "POSTGRES_CONNECTION_ERROR"
        down = await tools.refusal("hybrid_search", query="otters")
        assert down["error_code"] == "POSTGRES_CONNECTION_ERROR"

        server.start()
        await server.ready()
        assert stored_rows(own.dsn) == 0
        await recovered(tools)
        assert await visible(tools) == []
        assert (await tools("artifact_ingest", **NOTE))["status"] == "created"
        assert await visible(tools) == [NOTE["content"]]
        await tools("artifact_delete", artifact_uid=(await visible_uid(tools)))


async def test_the_first_session_after_a_restart_is_served_however_many_connections_died(
    own_postgres: tuple[Server, Settings],
) -> None:
    server, own = own_postgres
    database = Database(own.dsn, system="a test asks before and after a restart")
    await database.open()
    try:
        at_once = asyncio.Barrier(8)

        async def ask() -> object:
            async with database.session() as session:
                await at_once.wait()
                return await log_reader.end(session)

        await asyncio.gather(*(ask() for _ in range(8)))
        server.stop(signal.SIGKILL)
        server.start()
        await server.ready()

        async with database.session() as session:
            assert await log_reader.end(session) is not None
    finally:
        await database.close()


async def recovered(tools: ToolClient) -> None:
    """The server finds its way back to Postgres by itself."""
    async with asyncio.timeout(PATIENCE):
        while (await tools.client.call_tool("memory_list", {})).is_error:
            continue


async def visible_uid(tools: ToolClient) -> str:
    [hit] = (await tools("artifact_search", query="otters"))["results"]
    return str(hit["artifact_uid"])


async def test_postgres_takes_no_writes(own_postgres: tuple[Server, Settings]) -> None:
    """A standby that was not promoted, or a server put into maintenance."""
    _, own = own_postgres
    async with Client(build_server(own)) as client:
        await ToolClient(client)("memory_list")
    with psycopg.connect(own.dsn, autocommit=True) as connection:
        connection.execute("ALTER DATABASE postgres SET default_transaction_read_only = on")
        try:
            async with Client(build_server(own)) as client:
                error = await ToolClient(client).refusal("artifact_ingest", **NOTE)
        finally:
            connection.execute("SET default_transaction_read_only = off")
            connection.execute("ALTER DATABASE postgres RESET default_transaction_read_only")

    assert error["error_code"] == "POSTGRES_CONNECTION_ERROR"
    assert stored_rows(own.dsn) == 0
    async with Client(build_server(own)) as client:
        tools = ToolClient(client)
        assert await visible(tools) == []
        assert (await tools("artifact_ingest", **NOTE))["status"] == "created"
        await tools("artifact_delete", artifact_uid=await visible_uid(tools))
