"""AUTH=keys: without a key in force no route answers; with one, what the key allows."""

import asyncio
import hashlib
import re
from collections.abc import Iterator

import httpx
import psycopg
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from memory_core.access import keys
from memory_core.kernel.database import Database
from memory_core.kernel.errors import InvalidInput, NotFound
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from tests.access_server import ROUTES, AccessServer, make_key, make_tenant
from tests.patience import PATIENCE

WORD = "quillfeather"
CLOSED = sorted(ROUTES.keys() - {"/health"})


@pytest.fixture(scope="module")
def server(services: Settings) -> Iterator[AccessServer]:
    with AccessServer(services, auth="keys") as server:
        yield server


@pytest.fixture
async def key(runtime: Runtime) -> str:
    return await make_key(runtime.database)


@pytest.fixture
async def document(server: AccessServer, key: str) -> str:
    async with server.client(key) as tools:
        stored = await tools(
            "artifact_ingest",
            artifact_type="note",
            source_system="notes",
            content=f"The {WORD} was decided on by Alice.",
        )
    return str(stored["artifact_uid"])


class TestClients:
    @pytest.mark.parametrize("mode", ["auto", "legacy"])
    async def test_a_key_opens_the_memory(
        self, server: AccessServer, document: str, key: str, mode: str
    ) -> None:
        async with server.client(key, mode=mode) as tools:
            answer = await tools("artifact_get", artifact_uid=document)
        assert WORD in answer["content"]

    @pytest.mark.parametrize("mode", ["auto", "legacy"])
    async def test_every_call_is_made_as_the_user_of_its_key(
        self, server: AccessServer, runtime: Runtime, sql: psycopg.Connection, mode: str
    ) -> None:
        key = await make_key(runtime.database, user="bob")
        async with server.client(key, mode=mode) as tools:
            await tools("memory_store", content="Likes otters", type="fact", confidence=0.9)
        who = sql.execute(
            "SELECT DISTINCT actor_id FROM log.events WHERE event_type = 'memory.stored'"
        ).fetchall()
        assert who == [("bob",)]

    async def test_a_session_belongs_to_the_key_that_opened_it(
        self, server: AccessServer, runtime: Runtime, key: str
    ) -> None:
        other = await make_key(runtime.database, user="mallory")
        opened = initialize(server, key)
        stolen = {"mcp-session-id": opened.headers["mcp-session-id"]}
        assert server.ask("/mcp", key, **stolen).status_code == 200
        assert server.ask("/mcp", other, **stolen).status_code == 404


class TestRefusals:
    @pytest.mark.parametrize("path", CLOSED)
    async def test_without_a_key_in_force_every_route_gives_the_same_answer(
        self, server: AccessServer, runtime: Runtime, sql: psycopg.Connection, document: str,
        path: str,
    ) -> None:  # fmt: skip
        expired = await make_key(runtime.database, user="late", days=1)
        sql.execute(
            "UPDATE access_key SET expires_at = now() - interval '1 s' WHERE user_id = 'late'"
        )
        revoked = await make_key(runtime.database, user="gone")
        async with runtime.database.transaction() as session:
            await keys.revoke(session, revoked.rpartition("_")[0])
        real = await make_key(runtime.database)
        wrong = forged(real)

        answers = [
            server.ask(path, token)
            for token in (None, expired, revoked, wrong, keys.new_text(), "x", real[:-1])
        ]

        assert {answer.status_code for answer in answers} == {401}
        assert len({answer.text for answer in answers}) == 1
        assert len({answer.headers["www-authenticate"] for answer in answers}) == 1
        assert WORD not in answers[0].text
        assert answers[0].json()["error_code"] == "UNAUTHENTICATED"

    @pytest.mark.parametrize("path", sorted(ROUTES))
    def test_foreign_hosts_and_pages_are_refused_before_any_key_is_read(
        self, server: AccessServer, key: str, path: str
    ) -> None:
        assert server.ask(path, key, host="evil.example").status_code == 421
        assert server.ask(path, key, origin="https://evil.example").status_code == 403

    @pytest.mark.parametrize("path", CLOSED)
    def test_a_key_in_the_address_or_sent_twice_does_not_count(
        self, server: AccessServer, key: str, path: str
    ) -> None:
        method, body = ROUTES[path]
        twice = [("authorization", f"Bearer {key}"), ("authorization", f"Bearer {key}")]
        with httpx.Client(trust_env=False) as client:
            by_address = client.request(method, f"{server.url}{path}?access_token={key}", json=body)
            sent_twice = client.request(method, server.url + path, json=body, headers=twice)
        assert (by_address.status_code, sent_twice.status_code) == (401, 401)

    async def test_the_key_of_a_suspended_tenant_is_refused(
        self, server: AccessServer, runtime: Runtime, sql: psycopg.Connection
    ) -> None:
        make_tenant(sql, "acme")
        key = await make_key(runtime.database, tenant="acme")
        assert server.ask("/nothing-here", key).status_code == 404
        sql.execute("UPDATE tenant SET status = 'suspended' WHERE name = 'acme'")
        await refused_soon(server, key)

    @given(header=st.binary(min_size=1, max_size=300))
    @examples(max_examples=60)
    def test_no_header_opens_or_breaks_it(self, server: AccessServer, header: bytes) -> None:
        clean = bytes(byte for byte in header if byte > 32 and byte != 127) or b"x"
        with httpx.Client(trust_env=False) as client:
            for sent in (clean, b"Bearer " + clean, b"Bearer mcpmem_" + clean):
                answer = client.get(f"{server.url}/changes", headers=[(b"authorization", sent)])
                assert answer.status_code in (400, 401, 429)
                assert "Traceback" not in answer.text


class TestRevocation:
    async def test_it_takes_effect_in_every_server(
        self, server: AccessServer, services: Settings, runtime: Runtime, key: str
    ) -> None:
        with AccessServer(services, auth="keys") as second:
            for one in (server, second):
                assert one.ask("/nothing-here", key).status_code == 404
            async with runtime.database.transaction() as session:
                await keys.revoke(session, key.rpartition("_")[0])
            for one in (server, second):
                await refused_soon(one, key)

    async def test_streams_that_are_open_end_with_their_key(
        self, server: AccessServer, runtime: Runtime, key: str
    ) -> None:
        session_id = initialize(server, key).headers["mcp-session-id"]
        headers = {
            "authorization": f"Bearer {key}",
            "accept": "text/event-stream",
            "mcp-session-id": session_id,
        }
        async with (
            httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as client,
            client.stream("GET", f"{server.url}/mcp", headers=headers) as stream,
        ):
            assert stream.status_code == 200
            async with runtime.database.transaction() as session:
                await keys.revoke(session, key.rpartition("_")[0])
            async for _ in stream.aiter_bytes():
                pass  # it ends, or the client's own time is up
        assert server.ask("/mcp", key).status_code == 401


class TestScopes:
    async def test_a_tool_that_changes_something_needs_write(
        self, server: AccessServer, runtime: Runtime, document: str
    ) -> None:
        key = await make_key(runtime.database, scopes=["read"])
        async with server.client(key) as tools:
            assert WORD in (await tools("artifact_get", artifact_uid=document))["content"]
            refused = await tools.refusal("artifact_delete", artifact_uid=document)
            listed = {tool.name for tool in (await tools.client.list_tools()).tools}
        assert (refused["error_code"], refused["details"]) == ("FORBIDDEN", {"scope": "write"})
        assert "artifact_get" in listed
        assert "artifact_delete" not in listed

    async def test_a_key_to_write_reads_nothing(
        self, server: AccessServer, runtime: Runtime, document: str
    ) -> None:
        key = await make_key(runtime.database, scopes=["write"])
        async with server.client(key) as tools:
            refused = await tools.refusal("artifact_get", artifact_uid=document)
            with pytest.raises(Exception, match="scope 'read'"):
                await tools.client.read_resource(f"memory://artifact/{document}")
        assert WORD not in str(refused)
        assert server.ask("/changes", key).status_code == 403

    async def test_metrics_are_for_admins(self, server: AccessServer, runtime: Runtime) -> None:
        key = await make_key(runtime.database)
        admin = await make_key(runtime.database, scopes=["admin"])
        assert server.ask("/metrics", key).json()["error_code"] == "FORBIDDEN"
        assert server.ask("/metrics", admin).status_code in (200, 404)


class TestHealth:
    async def test_a_stranger_learns_that_it_is_up(self, server: AccessServer, key: str) -> None:
        for token in (None, key, "x"):
            answer = server.ask("/health", token)
            assert (answer.status_code, answer.json()) == (200, {"status": "up"})

    async def test_an_admin_sees_every_part(self, server: AccessServer, runtime: Runtime) -> None:
        admin = await make_key(runtime.database, scopes=["admin"])
        assert {"postgres", "chroma", "queue"} <= server.ask("/health", admin).json().keys()


class TestStore:
    async def test_what_is_kept_is_a_slow_hash(
        self, runtime: Runtime, key: str, sql: psycopg.Connection
    ) -> None:
        [row] = sql.execute("SELECT access_key::text, hash FROM access_key").fetchall()
        secret = key.rpartition("_")[2]
        assert row[1].startswith("$argon2id$v=19$m=19456,t=2,p=1$")
        assert secret not in row[0]
        assert hashlib.sha256(key.encode()).hexdigest() not in row[0]

    async def test_the_last_use_is_written_once_a_minute(
        self, server: AccessServer, key: str, sql: psycopg.Connection
    ) -> None:
        server.ask("/nothing-here", key)
        first = await last_use(sql)
        server.ask("/nothing-here", key)
        server.ask("/nothing-here", key)
        assert await last_use(sql) == first

    def test_scanners_find_a_key_and_what_is_no_key_is_known_without_a_look(self) -> None:
        text = keys.new_text()
        assert re.fullmatch(r"mcpmem_[0-9A-Za-z]{10}_[0-9A-Za-z]{49}", text)
        assert keys.prefix_of(text) == text[:17]
        changed = text[:20] + ("a" if text[20] != "a" else "b") + text[21:]
        assert keys.prefix_of(changed) is None

    @pytest.mark.parametrize(
        "wrong", [{"user": " "}, {"user": "a\x1b[2J"}, {"scopes": []}, {"scopes": ["root"]},
                  {"groups": [""]}, {"user": "system"}],
    )  # fmt: skip
    async def test_what_makes_no_sense_is_refused(
        self, database: Database, wrong: dict[str, object]
    ) -> None:
        with pytest.raises(InvalidInput):
            await make_key(database, **wrong)

    async def test_there_has_to_be_such_a_tenant(self, database: Database) -> None:
        with pytest.raises(NotFound, match="no tenant 'nowhere'"):
            await make_key(database, tenant="nowhere")


def forged(key: str) -> str:
    """The same prefix, another secret, and a checksum that fits."""
    while True:
        other = keys.new_text()
        text = key[:18] + other[18:]
        body = text[:-6]
        whole = body + keys.checksum(body)
        if keys.prefix_of(whole) == keys.prefix_of(key):
            return whole


def initialize(server: AccessServer, key: str) -> httpx.Response:
    body = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {},
                   "clientInfo": {"name": "t", "version": "1"}},
    }  # fmt: skip
    headers = {
        "authorization": f"Bearer {key}",
        "accept": "application/json, text/event-stream",
    }
    with httpx.Client(trust_env=False) as client:
        answer = client.post(f"{server.url}/mcp", json=body, headers=headers)
        assert answer.status_code == 200
        initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        headers["mcp-session-id"] = answer.headers["mcp-session-id"]
        client.post(f"{server.url}/mcp", json=initialized, headers=headers)
    return answer


async def refused_soon(server: AccessServer, key: str) -> None:
    """Until the key is refused; the test's own time is the limit."""
    while server.ask("/nothing-here", key).status_code != 401:
        await asyncio.sleep(0.02)


async def last_use(sql: psycopg.Connection) -> object:
    while True:
        row = sql.execute("SELECT last_used_at FROM access_key").fetchone()
        if row is not None and row[0] is not None:
            return row[0]
        await asyncio.sleep(0.01)
