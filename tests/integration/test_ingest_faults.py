"""A dependency fails for real, in the middle: nothing half-written shows, and a retry works.

The servers of this module are its own, so that they can be killed, frozen, cut off and filled.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from mcp import Client
from pydantic import SecretStr

from mcp_server.server import build_server
from memory_core import vectors as vectors_module
from memory_core.artifacts import ingest as ingest_module
from memory_core.database import Row
from memory_core.runtime import Runtime
from memory_core.settings import Settings
from memory_core.stack import ports
from memory_core.stack.postgres import EmbeddedPostgres, identity
from memory_core.vectors import CollectionName
from tests.scripted_provider import ScriptedProvider, ServerError
from tests.tool_client import Json, ToolClient, in_one_task

START_SECONDS = 30.0
TABLES = ("artifact_revision", "revision_text", "revision_chunk", "event_jobs", "memory")
NOTE = {
    "artifact_type": "note",
    "source_system": "notes",
    "source_id": "otters",
    "content": "The otters moved into the boathouse.",
}
LONG = "\n\n".join(f"Paragraph {n}: otters number {n} swam by. " * 6 for n in range(120))


class Server:
    """A server process of our own on a fixed address, started and stopped at will."""

    def __init__(self, command: list[str], ready: Callable[[], object], **options: Any) -> None:
        self._command, self._ready, self._options = command, ready, options
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(self._command, **quiet, **self._options)

    async def ready(self) -> None:
        await until(self._ready)

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self, number: signal.Signals = signal.SIGKILL) -> None:
        if self.running:
            assert self._process is not None
            self._process.send_signal(signal.SIGCONT)
            self._process.send_signal(number)
            self._process.wait(timeout=START_SECONDS)


async def until(condition: Callable[[], object]) -> None:
    """Wait until it holds; an error counts as not yet."""
    async with asyncio.timeout(START_SECONDS):
        while True:
            try:
                if condition():
                    return
            except (httpx.HTTPError, psycopg.Error):
                pass
            await asyncio.sleep(0.02)


@pytest.fixture(scope="module")
def chroma_port() -> int:
    return ports.free_port()


@pytest.fixture(scope="module")
def chroma_server(chroma_port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("chroma")
    server = Server(
        [
            *(str(Path(sys.executable).with_name("chroma")), "run"),
            *("--path", str(folder), "--host", "127.0.0.1", "--port", str(chroma_port)),
        ],
        lambda: httpx.get(f"http://127.0.0.1:{chroma_port}/api/v2/heartbeat").is_success,
        env={**os.environ, "ANONYMIZED_TELEMETRY": "False"},
        cwd=folder,
    )
    yield server
    server.stop()


@pytest.fixture
async def chroma(chroma_server: Server) -> Server:
    """Running, whatever the test before did to it."""
    if not chroma_server.running:
        chroma_server.start()
        await chroma_server.ready()
    return chroma_server


@pytest.fixture
def own_settings(settings: Settings, chroma_port: int) -> Settings:
    return settings.model_copy(update={"chroma_port": chroma_port})


@pytest.fixture
async def own_runtime(own_settings: Settings, chroma: Server) -> AsyncIterator[Runtime]:
    runtime = Runtime(own_settings)
    await runtime.open()
    for name in CollectionName:
        await runtime.vectors.recreate(name)
    yield runtime
    await runtime.close()


@pytest.fixture
async def fragile(own_settings: Settings, own_runtime: Runtime) -> AsyncIterator[ToolClient]:
    """Every tool, over the session's Postgres and a Chroma that may be stopped."""
    async with in_one_task(Client(build_server(own_settings))) as client:
        yield ToolClient(client)


def stored_rows(dsn: str) -> int:
    with psycopg.connect(dsn, autocommit=True) as connection:
        counts = [connection.execute(f"SELECT count(*) FROM {t}").fetchone() for t in TABLES]
    return sum(row[0] for row in counts if row is not None)


async def visible(tools: ToolClient) -> list[str]:
    """What any search would show."""
    passages = (await tools("hybrid_search", query="otters boathouse"))["results"]
    documents = (await tools("artifact_search", query="otters boathouse"))["results"]
    assert {hit["artifact_uid"] for hit in passages} == {hit["artifact_uid"] for hit in documents}
    return [hit["text"] for hit in passages]


# --- the embedder ----------------------------------------------------------------------------


@pytest.mark.parametrize("content", [NOTE["content"], LONG], ids=["short", "long"])
async def test_no_embedding_no_document(
    openai_tools: ToolClient, provider: ScriptedProvider, settings: Settings, content: str
) -> None:
    provider.enqueue(*[ServerError(500)] * 50)

    error = await openai_tools.refusal("artifact_ingest", **{**NOTE, "content": content})
    provider.reset()

    assert error["error_code"] == "OPENAI_CONNECTION_ERROR"
    assert stored_rows(settings.dsn) == 0
    assert await visible(openai_tools) == []
    health = await openai_tools("embedding_health")
    assert set(health["collections"].values()) == {0}
    again = await openai_tools("artifact_ingest", **{**NOTE, "content": content})
    assert again["status"] == "created"


async def test_the_last_batch_fails_and_nothing_of_the_first_stays(
    openai_tools: ToolClient, provider: ScriptedProvider, settings: Settings
) -> None:
    last = LONG[-40:]
    provider.enqueue(
        *[ServerError(500, only=lambda body: any(last in text for text in body["input"]))] * 3
    )

    error = await openai_tools.refusal("artifact_ingest", **{**NOTE, "content": LONG})

    assert error["error_code"] == "OPENAI_CONNECTION_ERROR"
    assert stored_rows(settings.dsn) == 0
    assert await visible(openai_tools) == []


# --- Chroma ----------------------------------------------------------------------------------


async def test_chroma_killed(fragile: ToolClient, chroma: Server, own_settings: Settings) -> None:
    chroma.stop()

    for content in (NOTE["content"], LONG):
        error = await fragile.refusal("artifact_ingest", **{**NOTE, "content": content})
        assert error["error_code"] == "CHROMA_CONNECTION_ERROR"
        assert stored_rows(own_settings.dsn) == 0

    chroma.start()
    await chroma.ready()
    assert await visible(fragile) == []
    again = await fragile("artifact_ingest", **{**NOTE, "content": LONG})
    assert again["status"] == "created"
    assert await visible(fragile)


async def test_chroma_killed_before_the_first_call_of_a_server(
    own_settings: Settings, chroma: Server
) -> None:
    chroma.stop()
    async with Client(build_server(own_settings)) as client:
        tools = ToolClient(client)
        error = await tools.refusal("artifact_ingest", **NOTE)
        assert error["error_code"] == "CHROMA_CONNECTION_ERROR"
        assert stored_rows(own_settings.dsn) == 0

        chroma.start()
        await chroma.ready()
        assert (await tools("artifact_ingest", **NOTE))["status"] == "created"


async def test_chroma_frozen(
    fragile: ToolClient,
    chroma: Server,
    own_settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await fragile("embedding_health")
    monkeypatch.setattr(vectors_module, "_CALL_SECONDS", 0.5)
    chroma.send(signal.SIGSTOP)

    error = await fragile.refusal("artifact_ingest", **NOTE)

    assert error["error_code"] == "CHROMA_CONNECTION_ERROR"
    assert stored_rows(own_settings.dsn) == 0
    monkeypatch.undo()
    chroma.send(signal.SIGCONT)
    assert (await fragile("artifact_ingest", **NOTE))["status"] == "created"
    assert await visible(fragile) == [NOTE["content"]]


async def test_a_revision_without_chroma_leaves_the_old_one_in_place(
    fragile: ToolClient, chroma: Server, own_settings: Settings
) -> None:
    await fragile("artifact_ingest", **NOTE)
    chroma.stop()

    error = await fragile.refusal("artifact_ingest", **{**NOTE, "content": "Otters left."})

    assert error["error_code"] == "CHROMA_CONNECTION_ERROR"
    chroma.start()
    await chroma.ready()
    assert await visible(fragile) == [NOTE["content"]]
    revised = await fragile("artifact_ingest", **{**NOTE, "content": "Otters left."})
    assert revised["status"] == "revised"
    assert await visible(fragile) == ["Otters left."]


async def test_chroma_killed_right_after_the_commit_does_not_undo_it(
    fragile: ToolClient, chroma: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old revision stays marked as latest in Chroma; Postgres knows better."""
    await fragile("artifact_ingest", **NOTE)
    retire = ingest_module._retire

    async def without_chroma(runtime: Runtime, superseded: Row) -> None:
        chroma.stop()
        await retire(runtime, superseded)

    monkeypatch.setattr(ingest_module, "_retire", without_chroma)
    revised = await fragile("artifact_ingest", **{**NOTE, "content": "Otters left."})

    assert revised["status"] == "revised"
    chroma.start()
    await chroma.ready()
    assert await visible(fragile) == ["Otters left."]


NEEDS_CHROMA: list[tuple[str, Json]] = [
    ("memory_store", {"content": "x", "type": "fact", "confidence": 1}),
    ("memory_search", {"query": "x"}),
    ("artifact_search", {"query": "x"}),
    ("hybrid_search", {"query": "x"}),
    ("embedding_health", {}),
]


async def test_every_tool_that_needs_chroma_says_that_it_is_missing(
    own_settings: Settings, chroma_server: Server
) -> None:
    chroma_server.stop()
    async with Client(build_server(own_settings)) as client:
        for tool, arguments in NEEDS_CHROMA:
            error = await ToolClient(client).refusal(tool, **arguments)
            assert error["error_code"] == "CHROMA_CONNECTION_ERROR", tool
            assert "mcp-memory up" in error["error"]
    assert stored_rows(own_settings.dsn) == 0


async def test_a_deletion_without_chroma_deletes_nothing_and_can_be_repeated(
    fragile: ToolClient, chroma: Server, own_settings: Settings
) -> None:
    stored = await fragile("artifact_ingest", **NOTE)
    before = stored_rows(own_settings.dsn)
    chroma.stop()

    error = await fragile.refusal("artifact_delete", artifact_uid=stored["artifact_uid"])

    assert error["error_code"] == "CHROMA_CONNECTION_ERROR"
    assert stored_rows(own_settings.dsn) == before
    chroma.start()
    await chroma.ready()
    deleted = await fragile("artifact_delete", artifact_uid=stored["artifact_uid"])
    assert (deleted["revisions"], deleted["vectors"]) == (1, 1)
    assert stored_rows(own_settings.dsn) == 0


# --- Postgres --------------------------------------------------------------------------------


class Blocker:
    """Stops an ingest between its write to Chroma and its commit, by a lock it must wait for."""

    def __init__(self, dsn: str) -> None:
        self._holder = psycopg.connect(dsn)
        self._observer = psycopg.connect(dsn, autocommit=True)
        # Readers pass; whoever inserts a job waits.
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
async def test_the_connection_is_cut_between_chroma_and_the_commit(
    tools: ToolClient, settings: Settings, runtime: Runtime, content: str
) -> None:
    blocker = Blocker(settings.dsn)
    failing = asyncio.create_task(tools.refusal("artifact_ingest", **{**NOTE, "content": content}))
    await until(blocker.waiting)
    await until_indexed(runtime)

    blocker.cut()
    error = await failing
    blocker.release()

    assert error["error_code"] == "POSTGRES_CONNECTION_ERROR"
    assert stored_rows(settings.dsn) == 0
    assert await visible(tools) == []
    assert (await tools("artifact_ingest", **{**NOTE, "content": content}))["status"] == "created"
    assert await visible(tools)
    assert await runtime.vectors.count(CollectionName.ARTIFACTS) == 1, "overwritten, not doubled"


async def until_indexed(runtime: Runtime) -> None:
    """Until Chroma has the document: what is left then is the commit."""
    async with asyncio.timeout(START_SECONDS):
        while await runtime.vectors.count(CollectionName.ARTIFACTS) == 0:
            continue


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
        await until_indexed(runtime)

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


async def recovered(tools: ToolClient) -> None:
    """The server finds its way back to Postgres by itself."""
    async with asyncio.timeout(START_SECONDS):
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
