"""Readiness probes: one small request to each service."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import psycopg

from memory_core.index.chroma import ChromaClient
from memory_core.kernel import queries, tls

_TIMEOUT = 5.0
# A separate connection per probe: a shared channel would back off for seconds after a first
# refusal.
_FRESH = [("grpc.use_local_subchannel_pool", 1)]


async def postgres(dsn: str) -> None:
    async with await psycopg.AsyncConnection.connect(dsn, connect_timeout=3) as connection:
        await connection.execute("SELECT 1")


async def chroma(host: str, port: int) -> None:
    client = ChromaClient(host, port)
    try:
        async with asyncio.timeout(_TIMEOUT):
            await client.heartbeat()
    finally:
        await client.close()


async def mcp(url: str) -> None:
    async with httpx.AsyncClient(
        timeout=_TIMEOUT, trust_env=False, verify=tls.verify(url)
    ) as client:
        (await client.get(url)).raise_for_status()


async def worker(dsn: str, *, since: float) -> None:
    """Succeeds when a worker that was started since then listens to the log."""
    async with await psycopg.AsyncConnection.connect(dsn, connect_timeout=3) as connection:
        cursor = await connection.execute(queries.get("worker_listens"), {"since": since})
        if await cursor.fetchone() is None:
            raise RuntimeError("the worker does not listen to the log yet")


async def code_server(socket: Path) -> None:
    import grpc
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    async with grpc.aio.insecure_channel(f"unix:{socket}", options=_FRESH) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        answer = await stub.Check(
            health_pb2.HealthCheckRequest(service="DagsterApi"), timeout=_TIMEOUT
        )
    if answer.status != health_pb2.HealthCheckResponse.SERVING:
        raise RuntimeError(f"code server answers {answer.status}")


_LOCATIONS = """{ workspaceOrError { ... on Workspace { locationEntries {
    loadStatus locationOrLoadError { __typename ... on PythonError { message } } } } } }"""


async def webserver(graphql_url: str) -> None:
    """Succeeds when the web server is up *and* has loaded our code location."""
    data = await _graphql(graphql_url, _LOCATIONS)
    entries = data["workspaceOrError"]["locationEntries"]
    if not entries or any(entry["loadStatus"] != "LOADED" for entry in entries):
        raise RuntimeError("the code location is still loading")
    for entry in entries:
        if entry["locationOrLoadError"]["__typename"] == "PythonError":
            raise RuntimeError(entry["locationOrLoadError"]["message"])


_HEARTBEATS = """{ instance { daemonHealth { allDaemonStatuses {
    daemonType required lastHeartbeatTime } } } }"""


async def daemon(graphql_url: str, *, since: float) -> None:
    """Succeeds when every required daemon has sent a heartbeat since the start."""
    data = await _graphql(graphql_url, _HEARTBEATS)
    for status in data["instance"]["daemonHealth"]["allDaemonStatuses"]:
        if status["required"] and (status["lastHeartbeatTime"] or 0) < since:
            raise RuntimeError(f"daemon {status['daemonType']} has not beaten yet")


async def _graphql(url: str, query: str) -> Any:
    async with httpx.AsyncClient(
        timeout=_TIMEOUT, trust_env=False, verify=tls.verify(url)
    ) as client:
        answer = await client.post(url, json={"query": query})
    answer.raise_for_status()
    return answer.json()["data"]
