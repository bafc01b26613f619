"""Subscribed clients are notified of changes: over each transport, in both ages of the protocol."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
from mcp import Client
from mcp.client.subscriptions import ResourcesListChanged, ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp_types import ResourceListChangedNotification, ResourceUpdatedNotification

from mcp_server.server import build_server
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from tests.patience import PATIENCE
from tests.pipeline_client import Pipeline
from tests.serving import SERVE, HttpServer, stdio
from tests.tool_client import Json, ToolClient, in_one_task
from tests.typescript import Npm, Target, installed

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
DOCUMENT = {"artifact_type": "note", "source_system": "notes", "source_id": "otters"}
Heard = asyncio.Queue[str]
LIST = "the list"


@pytest.fixture(scope="module")
def http_server(
    services: Settings, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HttpServer]:
    with HttpServer(services, tmp_path_factory.mktemp("http") / "log") as server:
        yield server


@pytest.fixture(params=["stdio", "http"])
def server(request: pytest.FixtureRequest, settings: Settings, runtime: Runtime) -> Any:
    """What a client connects to."""
    if request.param == "stdio":
        return stdio(settings)
    return request.getfixturevalue("http_server").url + "/mcp"


@pytest.fixture(params=["listening", "subscribing"])
def age(request: pytest.FixtureRequest) -> str:
    """Of the protocol: one answer with an end in sight, or messages unasked."""
    return str(request.param)


@asynccontextmanager
async def subscribed(server: Any, age: str, *addresses: str) -> AsyncIterator[tuple[Client, Heard]]:
    notifications: Heard = asyncio.Queue()

    async def hear(message: object) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            notifications.put_nowait(str(message.params.uri))
        elif isinstance(message, ResourceListChangedNotification):
            notifications.put_nowait(LIST)

    if age == "subscribing":
        async with Client(server, mode="legacy", message_handler=hear) as client:
            await client.list_resources()
            for address in addresses:
                await client.subscribe_resource(address)
            yield client, notifications
        return

    async def listen() -> None:
        async for event in stream:
            notifications.put_nowait(event.uri if isinstance(event, ResourceUpdated) else LIST)
            assert isinstance(event, ResourceUpdated | ResourcesListChanged)

    async with (
        Client(server) as client,
        client.listen(resources_list_changed=True, resource_subscriptions=addresses) as stream,
    ):
        listening = asyncio.create_task(listen())
        try:
            yield client, notifications
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)


async def heard(notifications: Heard, number: int) -> set[str]:
    async with asyncio.timeout(PATIENCE):
        return {await notifications.get() for _ in range(number)}


async def stored(tools: ToolClient, content: str) -> Json:
    return await tools("artifact_ingest", **DOCUMENT, content=content)


@pytest.fixture
async def tools(runtime: Runtime, settings: Settings) -> AsyncIterator[ToolClient]:
    """Another client, of a server of its own."""
    async with in_one_task(Client(build_server(settings))) as client:
        yield ToolClient(client)


async def test_of_a_document_that_changes_comes_and_goes(
    server: Any, age: str, tools: ToolClient, runtime: Runtime
) -> None:
    first = await stored(tools, "Otters moved in.")
    uid = first["artifact_uid"]
    latest, timeline = f"memory://artifact/{uid}", f"memory://timeline/{uid}"
    old = f"{latest}/{first['revision_id']}"
    async with subscribed(server, age, latest, timeline, old, "memory://event/none") as (
        _,
        notifications,
    ):
        await stored(tools, "Otters moved out.")
        assert await heard(notifications, 2) == {latest, timeline}
        await tools("memory_store", content="Likes otters", type="preference", confidence=0.9)
        await tools("artifact_delete", artifact_uid=uid)
        assert await heard(notifications, 4) == {latest, timeline, old, LIST}
        await stored(tools, "Otters again.")
        assert LIST in await heard(notifications, 3)
        assert notifications.empty()


async def test_of_an_event_that_is_replaced_or_goes_with_its_document(
    server: Any, age: str, tools: ToolClient, runtime: Runtime
) -> None:
    pipeline = Pipeline(runtime)
    made = await stored(tools, "Decision: we charge per seat from May on.")
    await pipeline.extract()
    [event] = (await tools("event_search", query="charge"))["events"]
    address = f"memory://event/{event['event_id']}"
    async with subscribed(server, age, address, f"memory://event/evt_{event['event_id']}") as (
        _,
        notifications,
    ):
        await tools("artifact_delete", artifact_uid=made["artifact_uid"])
        assert await heard(notifications, 3) == {
            address,
            f"memory://event/evt_{event['event_id']}",
            LIST,
        }


async def test_the_list_of_resources_has_the_documents(
    server: Any, tools: ToolClient, runtime: Runtime
) -> None:
    made = await stored(tools, "Otters moved in.")
    async with Client(server) as client:
        [resource] = (await client.list_resources()).resources
        [content] = (await client.read_resource(resource.uri)).contents

    assert resource.uri == f"memory://artifact/{made['artifact_uid']}"
    assert content.text == "Otters moved in."


async def test_there_is_a_bound_on_subscriptions(server: Any, runtime: Runtime) -> None:
    addresses = [f"memory://artifact/uid_{n}" for n in range(10_001)]
    async with Client(server) as client:
        with pytest.raises(MCPError, match="10,000 resources"):
            async with client.listen(resource_subscriptions=addresses):
                pass
        async with client.listen(resource_subscriptions=addresses[:-1]) as stream:
            assert len(stream.honored.resource_subscriptions or ()) == 10_000


def followers(sql: psycopg.Connection) -> int:
    [count] = sql.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'mcp-memory resource%'"
    ).fetchone() or [0]
    return int(count)


async def test_the_log_is_followed_only_for_subscribed_clients(
    server: Any, age: str, services: Settings, runtime: Runtime
) -> None:
    with psycopg.connect(services.dsn, autocommit=True) as sql:
        async with subscribed(server, age, "memory://artifact/uid_1"):
            await until(lambda: followers(sql) == 1)
        await until(lambda: followers(sql) == 0)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.05)


@pytest.fixture(scope="module")
def npm() -> Npm:
    return installed()


@pytest.mark.parametrize("sdk", ["1", "2"], ids=["sdk1", "sdk2"])
async def test_clients_of_the_typescript_sdk_are_notified(
    request: pytest.FixtureRequest, npm: Npm, settings: Settings, tools: ToolClient, sdk: str
) -> None:
    made = await stored(tools, "Otters moved in.")
    address = f"memory://artifact/{made['artifact_uid']}"
    http = Target(url=request.getfixturevalue("http_server").url + "/mcp")
    local = Target(command=(sys.executable, *SERVE, "--stdio"), env=settings.environment())
    for number, target in enumerate([http, local]):
        with npm.client(sdk, target) as client:
            listening = client.ask("listen", resourceSubscriptions=[address])
            if "thrown" in listening:  # it speaks an earlier protocol
                assert "result" in client.ask("subscribeResource", uri=address)
            await stored(tools, f"Otters moved out, {number}.")
            asking = asyncio.to_thread(client.ask, "heard", number=1)
            answer = await asyncio.wait_for(asking, PATIENCE)

        addresses = [one["uri"] for one in answer["result"] if one["method"].endswith("updated")]
        assert addresses == [address]
