"""The whole contract through a real client over every transport: in memory, stdio and HTTP."""

import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import httpx
import psycopg
import pytest
from mcp import Client

from mcp_server.server import build_server
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from stack import ports
from tests.serving import START_SECONDS, HttpServer, stdio, variables
from tests.tool_client import Json, ToolClient, in_one_task

TEXT_TOOLS = {
    "memory_store", "memory_search", "memory_list", "memory_delete", "history_append",
    "history_get", "history_delete", "artifact_ingest", "artifact_search", "artifact_get",
    "artifact_history", "artifact_delete", "hybrid_search", "embedding_health",
}  # fmt: skip
LONG = "\n\n".join(f"Paragraph {n}: otters number {n} swam by, 🦦. " * 6 for n in range(120))


@pytest.fixture(scope="module")
def http_server(
    services: Settings, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HttpServer]:
    with HttpServer(services, tmp_path_factory.mktemp("http") / "log") as server:
        yield server


@pytest.fixture(scope="module", params=["memory", "stdio", "http"])
async def _transport(request: pytest.FixtureRequest, services: Settings) -> AsyncIterator[Client]:
    if request.param == "memory":
        server: object = build_server(services)
    elif request.param == "stdio":
        server = stdio(services)
    else:
        server = request.getfixturevalue("http_server").url + "/mcp"
    async with in_one_task(Client(server)) as client:  # type: ignore[arg-type]
        yield client


@pytest.fixture
async def client(_transport: Client, runtime: Runtime) -> Client:
    """A client of each transport, over empty stores."""
    return _transport


async def test_every_tool_works(client: Client) -> None:
    """One story that calls each tool of the text memory at least once."""
    tools = ToolClient(client)
    called = Called(tools)

    memory = await called("memory_store", content="Likes otters", type="preference", confidence=0.9)
    assert [m["content"] for m in (await called("memory_search", query="otters"))["memories"]] == [
        "Likes otters"
    ]
    assert (await called("memory_list", type="preference"))["total"] == 1

    turn = {"conversation_id": "c1", "role": "user", "content": "Hello 👋", "turn_index": 0}
    assert (await called("history_append", **turn))["status"] == "created"
    assert (await called("history_get", conversation_id="c1"))["turns"][0]["content"] == "Hello 👋"
    assert (await called("history_delete", conversation_id="c1"))["turns"] == 1

    document = {"artifact_type": "doc", "source_system": "notes", "source_id": "otters"}
    first = await called("artifact_ingest", **document, content="Otters\r\n\x00 moved in.")
    second = await called("artifact_ingest", **document, content=LONG, title="Otters")
    uid = first["artifact_uid"]
    assert (first["status"], second["status"]) == ("created", "revised")
    assert (await called("artifact_get", artifact_uid=uid))["content"] == LONG
    old = await called("artifact_get", artifact_id=first["artifact_id"])
    assert old["content"] == "Otters\r\n\x00 moved in."
    history = await called("artifact_history", artifact_uid=uid)
    assert [r["revision_id"] for r in history["revisions"]] == [
        first["revision_id"],
        second["revision_id"],
    ]

    [found] = (await called("artifact_search", query="otters", type="doc"))["results"]
    assert found["passage"] == LONG[found["start_char"] : found["end_char"]]
    hits = (await called("hybrid_search", query="otters", expand_neighbors=True))["results"]
    assert {"chunk", "memory"} == {hit["kind"] for hit in hits}

    health = await called("embedding_health")
    assert health["collections"]["memory"] == 1

    assert (await called("artifact_delete", artifact_uid=uid))["revisions"] == 2
    assert (await called("memory_delete", memory_id=memory["memory_id"]))["deleted"] is True
    assert (await called("hybrid_search", query="otters"))["results"] == []

    assert called.names == TEXT_TOOLS, "a tool is missing in this story"
    assert {tool.name for tool in (await client.list_tools()).tools} >= TEXT_TOOLS


class Called:
    """Calls tools, and remembers which."""

    def __init__(self, tools: ToolClient) -> None:
        self._tools = tools
        self.names: set[str] = set()

    async def __call__(self, tool: str, /, **arguments: object) -> Json:
        self.names.add(tool)
        return await self._tools(tool, **arguments)


async def test_errors_are_structured(client: Client) -> None:
    tools = ToolClient(client)

    wrong = await tools.refusal("memory_search", query="x", limit="many")
    missing = await tools.refusal("artifact_get", artifact_uid="uid_nothing")

    assert (wrong["error_code"], wrong["details"]["parameter"]) == ("VALIDATION_ERROR", "limit")
    assert missing["error_code"] == "NOT_FOUND"


async def test_long_documents_report_progress(client: Client) -> None:
    reported: list[tuple[float, float | None]] = []

    async def note(done: float, total: float | None, _: str | None) -> None:
        reported.append((done, total))

    document = {"artifact_type": "doc", "source_system": "notes", "content": LONG}
    answer = await client.call_tool("artifact_ingest", document, progress_callback=note)

    chunks = answer.structured_content["num_chunks"]  # type: ignore[index]
    assert reported[-1] == (chunks, chunks)


async def test_resources_and_prompts(client: Client) -> None:
    stored = await ToolClient(client)(
        "artifact_ingest", artifact_type="note", source_system="notes", content="Otters.\r\n"
    )
    uid = stored["artifact_uid"]

    templates = (await client.list_resource_templates()).resource_templates
    latest = await client.read_resource(f"memory://artifact/{uid}")
    revision = await client.read_resource(f"memory://artifact/{uid}/{stored['revision_id']}")
    prompts = (await client.list_prompts()).prompts

    assert {template.uri_template for template in templates} >= {
        "memory://artifact/{artifact_uid}",
        "memory://artifact/{artifact_uid}/{revision_id}",
    }
    assert latest.contents[0].text == revision.contents[0].text == "Otters.\r\n"  # type: ignore[union-attr]
    assert "remember_document" in {prompt.name for prompt in prompts}


# --- HTTP ------------------------------------------------------------------------------------


async def test_a_client_that_leaves_does_not_disturb_the_others(
    http_server: HttpServer, runtime: Runtime
) -> None:
    async with AsyncExitStack() as stack:
        staying = ToolClient(await stack.enter_async_context(Client(http_server.url + "/mcp")))
        await staying("memory_list")
        async with Client(http_server.url + "/mcp") as leaving:
            await ToolClient(leaving)("memory_list")

        assert await staying("memory_list") == {"memories": [], "total": 0}


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_old_and_new_clients_are_served(http_server: HttpServer, mode: str) -> None:
    async with Client(http_server.url + "/mcp", mode=mode) as client:
        assert (await client.list_tools()).tools


async def test_a_lone_surrogate_on_the_wire_is_answered_with_an_error(
    http_server: HttpServer, sql_rows: "RowCount"
) -> None:
    """JSON can write what no text can hold; the request is refused, not left hanging."""
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": "artifact_ingest",
            "arguments": {"artifact_type": "note", "source_system": "s", "content": "SURROGATE"},
        },
    }
    body = json.dumps(call).replace("SURROGATE", "half an emoji \\ud83d")
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    async with httpx.AsyncClient(timeout=START_SECONDS) as client:
        answer = await client.post(http_server.url + "/mcp", content=body, headers=headers)

    assert "Traceback" not in answer.text
    assert answer.status_code == 400 or "error" in answer.text
    assert sql_rows() == 0


async def test_health_is_served_on_the_port_of_the_protocol(http_server: HttpServer) -> None:
    async with httpx.AsyncClient(timeout=START_SECONDS) as client:
        answer = await client.get(http_server.url + "/health")

    assert answer.status_code == 200
    assert answer.json()["postgres"]["state"] == answer.json()["chroma"]["state"] == "up"


class RowCount:
    def __init__(self, dsn: str) -> None:
        self._dsn = dsn

    def __call__(self) -> int:
        with psycopg.connect(self._dsn) as connection:
            row = connection.execute("SELECT count(*) FROM artifact_revision").fetchone()
        assert row is not None
        return int(row[0])


@pytest.fixture
def sql_rows(settings: Settings) -> RowCount:
    return RowCount(settings.dsn)


# --- the handshake comes before everything else ----------------------------------------------


@pytest.fixture
def nowhere(services: Settings) -> Settings:
    """Addresses at which nothing listens."""
    dead = ports.free_port()
    dsn = f"postgresql://nobody@127.0.0.1:{dead}/nothing"
    return Settings(
        _env_file=None,  # type: ignore[call-arg]
        **{
            **services.model_dump(),
            "events_db_dsn": dsn,
            "chroma_host": "127.0.0.1",
            "chroma_port": dead,
        },
    )


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_stdio_greets_without_any_store_and_then_says_what_is_missing(
    nowhere: Settings, mode: str, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = time.perf_counter()
    async with Client(stdio(nowhere), mode=mode) as client:
        greeted = time.perf_counter() - begun
        listed = (await client.list_tools()).tools
        error = await ToolClient(client).refusal("memory_list")

    assert client is not None
    assert {"artifact_ingest", "hybrid_search"} <= {tool.name for tool in listed}
    assert error["error_code"] == "POSTGRES_CONNECTION_ERROR"
    assert "nobody@" not in error["error"]
    with capsys.disabled():
        print(f"\n[cold start over stdio, {mode}: {greeted:.2f} s; the bar is 3 s when idle]")


def test_building_the_server_imports_no_model_and_no_store(services: Settings) -> None:
    """What takes seconds to import must not stand between a client and its handshake."""
    program = (
        "import sys\n"
        "from mcp_server.server import build_server\n"
        "from memory_core.kernel.settings import load_settings\n"
        "build_server(load_settings())\n"
        "print([name for name in ('chromadb', 'wordllama', 'openai', 'dagster', 'numpy') "
        "if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=variables(services),
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.strip() == "[]"
