"""Servers that tests stop, freeze and kill, and what ingest must not leave behind then."""

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

from mcp_server.server import build_server
from memory_core.kernel import tls
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from stack import ports
from stack.connection import joined_runtime
from tests.conftest import IndexHost
from tests.patience import PATIENCE
from tests.tool_client import ToolClient, in_one_task

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
            self._process.wait(timeout=PATIENCE)


async def until(condition: Callable[[], object]) -> None:
    """Wait until it holds; an error counts as not yet."""
    async with asyncio.timeout(PATIENCE):
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
    address = f"http://127.0.0.1:{chroma_port}/api/v2/heartbeat"
    server = Server(
        [
            *(str(Path(sys.executable).with_name("chroma")), "run"),
            *("--path", str(folder), "--host", "127.0.0.1", "--port", str(chroma_port)),
        ],
        lambda: httpx.get(address, verify=tls.verify(address)).is_success,
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
async def own_runtime(
    own_settings: Settings, chroma: Server, index_host: IndexHost
) -> AsyncIterator[Runtime]:
    runtime = joined_runtime(own_settings, unasked="a test looks at what is stored")
    await runtime.open()
    await index_host.serve(runtime)
    yield runtime
    await index_host.stop()
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
