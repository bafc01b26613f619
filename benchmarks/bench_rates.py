"""A flood by one user: how long others wait for their answers, and what a key adds to a call.

    python -m benchmarks rates

Alice sends a search five times a second, alone; then while Bob sends as many as 64 connections can:
below his limit per minute, where only a few run at once, and beyond it.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from statistics import quantiles
from typing import Any

import httpx
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from rich.console import Console
from rich.table import Table

from memory_core.access import keys
from memory_core.access.key_verifier import KeyVerifier
from memory_core.access.rate_limits import RateLimiter
from memory_core.kernel.database import Database
from memory_core.kernel.settings import Settings
from stack import ports
from stack.connection import connected

CALLS = 40
PAUSE_SECONDS = 0.2
CONNECTIONS = 64
DOCUMENTS = 40
VERIFIED = 20_000
# How much slower a flood may make others: 1 means not at all.
TARGET_RATIO = 3.0
_CALL = {
    "jsonrpc": "2.0", "id": 1, "method": "tools/call",
    "params": {"name": "hybrid_search", "arguments": {"query": "who decided on the otters"}},
}  # fmt: skip
_OPENING = {
    "jsonrpc": "2.0", "id": 0, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {},
               "clientInfo": {"name": "bench", "version": "1"}},
}  # fmt: skip


@contextmanager
def serving(settings: Settings, log: Path) -> Iterator[str]:
    """`mcp-memory serve` with these settings, and its address."""
    port = ports.free_port()
    ours = settings.model_copy(update={"mcp_port": port}).environment()
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "mcp_server.cli", "serve"],
            env={**os.environ, **ours},
            stdout=out,
            stderr=out,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        while not _is_up(url):
            assert process.poll() is None, log.read_text()
            time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait()


def _is_up(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", trust_env=False, timeout=10).status_code == 200
    except httpx.HTTPError:
        return False


@asynccontextmanager
async def connected_client(url: str, key: str | None) -> AsyncIterator[Client]:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    async with httpx2.AsyncClient(headers=headers, trust_env=False, timeout=120) as http:
        transport = streamable_http_client(f"{url}/mcp", http_client=http)
        async with Client(transport) as client:
            yield client


async def times_of(url: str, key: str | None) -> list[float]:
    """Milliseconds of each call."""
    params: Any = _CALL["params"]
    times = []
    async with connected_client(url, key) as client:
        for _ in range(CALLS):
            begun = time.perf_counter()
            answer = await client.call_tool(params["name"], params["arguments"])
            times.append((time.perf_counter() - begun) * 1000)
            assert not answer.is_error, answer.content
            await asyncio.sleep(PAUSE_SECONDS)
    return times


async def store_documents(url: str, key: str) -> None:
    async with connected_client(url, key) as client:
        for number in range(DOCUMENTS):
            text = f"Note {number}. Alice decided on the otters of pond {number}. " * 20
            note = {"artifact_type": "note", "source_system": "bench", "content": text}
            await client.call_tool("artifact_ingest", note)


async def flood(url: str, key: str) -> None:
    """Send until stopped."""
    headers = {
        "authorization": f"Bearer {key}",
        "accept": "application/json, text/event-stream",
    }
    limits = httpx.Limits(max_connections=CONNECTIONS)
    async with httpx.AsyncClient(
        headers=headers, trust_env=False, timeout=60, limits=limits
    ) as client:
        opened = await client.post(f"{url}/mcp", json=_OPENING)
        client.headers["mcp-session-id"] = opened.headers.get("mcp-session-id", "")
        answers: Counter[int] = Counter()

        async def ask() -> None:
            while True:
                answers[(await client.post(f"{url}/mcp", json=_CALL)).status_code] += 1
                print(dict(answers), flush=True)

        await asyncio.gather(*(ask() for _ in range(CONNECTIONS)))


@contextmanager
def flooding(url: str, key: str, said: Path) -> Iterator[None]:
    """In a separate process, so that it takes no time from the measuring one."""
    with said.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.bench_rates"],
            env={**os.environ, "BENCH_URL": url, "BENCH_KEY": key},
            stdout=out,
            stderr=out,
        )
    try:
        while not said.read_text():
            assert process.poll() is None
            time.sleep(0.05)
        yield
    finally:
        process.kill()
        process.wait()


async def make_keys(dsn: str) -> tuple[str, str]:
    database = Database(dsn, max_connections=1)
    await database.open()
    made = []
    async with database.transaction() as session:
        for user in ("alice", "bob"):
            made.append((await keys.create(session, tenant="default", user=user)).text or "")
    await database.close()
    return made[0], made[1]


async def cost_of_a_key(dsn: str, key: str) -> float:
    """Microseconds that authentication and counting add to a call, with the look-ups twice a
    second."""
    database = Database(dsn, max_connections=1)
    await database.open()

    async def opened() -> Database:
        return database

    verifier, limiter = KeyVerifier(opened), RateLimiter(opened, of_user=10**9, of_tenant=10**9)
    begun = 0.0
    for number in range(VERIFIED + 1):
        credential = await verifier.verify(key, "127.0.0.1")
        assert credential is not None
        await limiter.admit(credential.principal)
        if number == 0:  # the slow comparison, once in five minutes
            begun = time.perf_counter()
    seconds = time.perf_counter() - begun
    await verifier.close()
    await limiter.close()
    await database.close()
    return seconds / VERIFIED * 1e6


def main() -> None:
    console = Console()
    table = Table("alice's searches", "p50 ms", "p95 ms", "bob's answers by status")
    measured: dict[str, list[float]] = {}

    def measure(name: str, url: str, key: str | None, said: Path | None = None) -> None:
        measured[name] = quantiles(asyncio.run(times_of(url, key)), n=20)
        last = said.read_text().splitlines()[-1] if said else ""
        table.add_row(name, f"{measured[name][9]:.1f}", f"{measured[name][18]:.1f}", last)

    with tempfile.TemporaryDirectory(prefix="memory-bench-", ignore_cleanup_errors=True) as place:
        folder = Path(place)
        local = Settings(_env_file=None, data_dir=folder, embedder="local", extractor="rules")
        with connected(local) as settings:
            alice, bob = asyncio.run(make_keys(settings.dsn))
            cost = asyncio.run(cost_of_a_key(settings.dsn, alice))
            with serving(settings, folder / "none.log") as url:
                asyncio.run(store_documents(url, alice))
                measure("AUTH=none, alone", url, None)
            # A limit that Bob does not reach, and one that he reaches at once.
            for limit, name in ((10**6, "below his limit"), (600, "beyond his limit")):
                keyed = settings.model_copy(update={"auth": "keys", "rate_calls_per_minute": limit})
                with serving(keyed, folder / f"{limit}.log") as url:
                    if limit == 600:
                        measure("AUTH=keys, alone", url, alice)
                    said = folder / f"{limit}.said"
                    with flooding(url, bob, said):
                        measure(f"bob floods {name}", url, alice, said)
    console.print(table)
    ratio = measured["bob floods beyond his limit"][9] / measured["AUTH=keys, alone"][9]
    console.print(
        f"beyond his limit: p50 {ratio:.2f} × that of alice alone (bar {TARGET_RATIO:g}); "
        f"a key and its count cost a call {cost:.0f} µs"
    )


if __name__ == "__main__":
    asyncio.run(flood(os.environ["BENCH_URL"], os.environ["BENCH_KEY"]))
