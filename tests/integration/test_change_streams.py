"""GET /changes: the log as server-sent events, to a real client of a real server."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import httpx
import psycopg
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Route

from mcp_server import changes as changes_module
from mcp_server.changes import ChangeStreams
from memory_core.kernel.database import Database
from memory_core.kernel.settings import Settings
from memory_core.log.change import ChangeType, NewChange, of_artifact, of_memory
from memory_core.log.feed import Feed
from memory_core.log.lag import read_lags
from memory_core.log.log_writer import append
from memory_core.web.connections import BoundedConnection
from stack import ports
from tests.patience import PATIENCE
from tests.serving import HttpServer
from tests.sse_client import EventSource, Sent


@pytest.fixture(scope="module")
def server(services: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    with HttpServer(services, tmp_path_factory.mktemp("server") / "log") as server:
        yield server


def stored(name: str) -> NewChange:
    return of_memory(ChangeType.MEMORY_STORED, name)


async def change(database: Database, *changes: NewChange) -> None:
    async with database.transaction() as session:
        await append(session, changes)


async def take(events: AsyncIterator[Sent], number: int) -> list[Sent]:
    async with asyncio.timeout(PATIENCE):
        return [await anext(events) for _ in range(number)]


def names(events: list[Sent]) -> list[str]:
    return [event.data["data"].get("memory_id", event.type) for event in events]


async def test_changes_come_as_they_happen_with_ids_only(
    server: HttpServer, database: Database
) -> None:
    await change(database, stored("mem_before"))
    source = EventSource(server.url)
    async with source.connected() as events:
        await change(database, of_artifact(ChangeType.ARTIFACT_CREATED, "uid_1", revision_id="r"))
        [event] = await take(events, 1)

    assert event.type == event.data["type"] == "artifact.created"
    assert event.data["timestamp"].endswith("Z")
    assert event.data["data"].keys() == {"change_id", "artifact_uid", "revision_id"}
    assert source.last_id == event.id


async def test_a_client_takes_what_came_after_a_position(
    server: HttpServer, database: Database
) -> None:
    await change(database, *(stored(f"mem_{n}") for n in range(450)))
    async with EventSource(server.url, after="0:0").connected() as events:
        all_of_them = await take(events, 450)
    async with EventSource(server.url, after=all_of_them[99].id).connected() as events:
        rest = await take(events, 350)

    assert names(all_of_them) == [f"mem_{n}" for n in range(450)]
    assert rest == all_of_them[100:]


async def test_types_are_chosen_and_the_position_moves_on_all_the_same(
    server: HttpServer, database: Database
) -> None:
    wanted = EventSource(server.url, types="artifact.*,memory.deleted")
    async with wanted.connected() as events:
        await change(database, stored("mem_1"), of_artifact(ChangeType.ARTIFACT_DELETED, "uid_1"))
        await change(database, of_memory(ChangeType.MEMORY_DELETED, "mem_1"))
        sent = await take(events, 2)

    assert [event.type for event in sent] == ["artifact.deleted", "memory.deleted"]


async def test_an_open_transaction_holds_back_what_would_be_skipped_otherwise(
    server: HttpServer, database: Database, sql: psycopg.Connection
) -> None:
    async with EventSource(server.url).connected() as events:
        async with database.transaction() as slow:
            await append(slow, [stored("mem_slow")])
            for n in range(50):
                await change(database, stored(f"mem_{n}"))
        sent = await take(events, 51)

    assert names(sent) == ["mem_slow", *(f"mem_{n}" for n in range(50))]


async def test_nothing_is_lost_or_doubled_across_restarts_of_the_server(
    services: Settings, database: Database, tmp_path: Path
) -> None:
    wanted = [f"mem_{n}" for n in range(300)]
    server = HttpServer(services, tmp_path / "log")

    async def write() -> None:
        for name in wanted:
            await change(database, stored(name))

    source = EventSource(server.url)
    sent: list[Sent] = []
    writing: asyncio.Task[None] | None = None
    for part in (100, 100, 100):
        with server:
            async with source.connected() as events:
                writing = writing or asyncio.create_task(write())
                sent += await take(events, part)
    await writing

    assert names(sent) == wanted


async def test_a_server_that_stops_ends_its_streams(
    services: Settings, database: Database, tmp_path: Path
) -> None:
    with HttpServer(services, tmp_path / "log") as server:
        source = EventSource(server.url)
        async with source.connected() as events:
            server.terminate()
            async with asyncio.timeout(PATIENCE):
                assert [event async for event in events] == []

    assert source.ended, "the stream was cut, not ended"


@pytest.mark.parametrize(
    ("headers", "query", "status", "said"),
    [
        ({"host": "evil.example"}, {}, 421, "is not known here"),
        ({"origin": "https://evil.example"}, {}, 403, "may not ask"),
        ({"sec-fetch-site": "cross-site"}, {}, 403, "may not ask"),
        ({}, {"types": "artifacts"}, 400, "is no type of change"),
        ({}, {"after": "yesterday"}, 400, "is no position"),
        ({}, {"after": "-1:5"}, 400, "is no position"),
        ({}, {"after": "1:99999999999999999999"}, 400, "is no position"),
        ({"last-event-id": "9999999999999999999:1"}, {}, 400, "is no position of this log"),
    ],
    ids=["host", "origin", "page", "type", "word", "negative", "too large", "future"],
)
async def test_what_may_not_ask_or_asks_wrongly_is_refused(
    server: HttpServer,
    database: Database,
    headers: dict[str, str],
    query: dict[str, str],
    status: int,
    said: str,
) -> None:
    async with httpx.AsyncClient(trust_env=False) as client:
        answer = await client.get(f"{server.url}/changes", headers=headers, params=query)

    assert answer.status_code == status
    assert said in answer.text


async def test_a_look_at_the_headers_has_no_end_to_wait_for(server: HttpServer) -> None:
    async with httpx.AsyncClient(trust_env=False) as client:
        answer = await client.head(f"{server.url}/changes")

    assert answer.headers["content-type"].startswith("text/event-stream")


def followers(sql: psycopg.Connection) -> int:
    [count] = sql.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'mcp-memory change%'"
    ).fetchone() or [0]
    return int(count)


async def until_none_follows(sql: psycopg.Connection) -> None:
    async with asyncio.timeout(PATIENCE):
        while followers(sql):
            await asyncio.sleep(0.02)


async def test_the_log_is_followed_once_for_all_clients_and_not_without_one(
    server: HttpServer, database: Database, sql: psycopg.Connection
) -> None:
    first, second = EventSource(server.url), EventSource(server.url)
    async with first.connected() as some, second.connected() as others:
        await change(database, stored("mem_1"))
        assert names(await take(some, 1)) == names(await take(others, 1)) == ["mem_1"]
        assert followers(sql) == 1
        lags = {lag.point.name: lag for lag in await read_lags(database)}
        assert lags["change streams"].is_led

    await until_none_follows(sql)
    [lag] = [lag for lag in await read_lags(database) if lag.point.name == "change streams"]
    assert lag.as_json()["reason"] == "no client is subscribed"


async def test_a_client_that_vanishes_without_a_word_is_forgotten(
    server: HttpServer, sql: psycopg.Connection
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"GET /changes HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
    assert b"200 OK" in await reader.readline()
    writer.transport.abort()

    await until_none_follows(sql)


class Impatient(BoundedConnection):
    stall_seconds = 0.2


@asynccontextmanager
async def served_here(database: Database, heartbeat: float) -> AsyncIterator[str]:
    """The route in a server of this process, which waits less long than others."""

    async def opened() -> Database:
        return database

    streams = ChangeStreams(Feed("change streams", opened), heartbeat=heartbeat)
    app = Starlette(routes=[Route("/changes", streams.answer)])
    port = ports.free_port()
    config = uvicorn.Config(app, port=port, http=Impatient, log_level="warning")
    serving = uvicorn.Server(config)
    task = asyncio.create_task(serving.serve())
    async with asyncio.timeout(PATIENCE):
        while not serving.started:
            await asyncio.sleep(0.01)
    yield f"http://127.0.0.1:{port}"
    streams.end()
    serving.should_exit = True
    await task


async def test_a_heartbeat_moves_a_client_on_that_wants_none_of_what_comes(
    database: Database,
) -> None:
    async with served_here(database, heartbeat=0.05) as url:
        source = EventSource(url, types="artifact.*")
        async with source.connected() as events:
            begun = source.last_id
            coming = asyncio.create_task(anext(events))
            await change(database, stored("mem_1"))
            async with asyncio.timeout(PATIENCE):
                while source.last_id == begun or not source.comments:
                    await asyncio.sleep(0.01)
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)


async def test_a_client_that_does_not_read_is_cut_off_and_holds_up_no_other(
    database: Database, sql: psycopg.Connection
) -> None:
    ids = [str(uuid4()) for _ in range(2_000)]
    large = {"revision_id": "r", "added": ids, "removed": [], "kept": []}
    async with served_here(database, heartbeat=60) as url:
        stuck = socket.create_connection(("127.0.0.1", httpx.URL(url).port or 0))
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stuck.sendall(b"GET /changes?after=0:0 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        source = EventSource(url)
        async with source.connected() as events:
            for n in range(60):
                await change(database, of_artifact(ChangeType.EVENTS_REPLACED, f"uid_{n}", **large))
            assert len(await take(events, 60)) == 60
        await until_none_follows(sql)
        stuck.close()


async def test_there_is_a_bound_on_clients(
    database: Database, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes_module, "MAX_STREAMS", 1)
    async with served_here(database, heartbeat=60) as url:
        async with EventSource(url).connected(), httpx.AsyncClient(trust_env=False) as client:
            answer = await client.get(f"{url}/changes")
            assert answer.status_code == 503
            assert int(answer.headers["retry-after"]) > 0
        await until_none_follows(sql)
        async with EventSource(url).connected():
            pass
