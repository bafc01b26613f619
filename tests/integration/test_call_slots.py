"""EXTRACT_CONCURRENCY holds for the deployment: for all runs together, however they end."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager

import psycopg
import pytest

from memory_core.extraction.slots import SharedSlots
from memory_core.kernel.errors import PostgresUnavailable
from memory_core.kernel.settings import Settings
from tests.integration.failing_servers import until
from tests.scripted_provider import ScriptedProvider

RUNS = 3
CALLS = 24
MOST = 4
# A run: as many calls at once as it likes, each through a slot; then it says that it is done.
RUN = """
import asyncio, sys
import httpx
from memory_core.extraction.slots import SharedSlots

async def main(dsn, most, calls, url):
    slots = SharedSlots(dsn, most)
    async with httpx.AsyncClient(timeout=120) as client:
        async def call(number):
            async with slots.one():
                body = {"model": "m", "messages": [{"role": "user", "content": f"Bob {number}."}]}
                await client.post(url + "/chat/completions", json=body)
        await asyncio.gather(*(call(number) for number in range(calls)))
    await slots.close()

asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]))
"""
# Takes all slots, says so, and keeps them.
KEEPER = """
import asyncio, sys
from contextlib import AsyncExitStack
from memory_core.extraction.slots import SharedSlots

async def main(dsn, most):
    slots = SharedSlots(dsn, most)
    async with AsyncExitStack() as held:
        for _ in range(most):
            await held.enter_async_context(slots.one())
        print("held", flush=True)
        await asyncio.Event().wait()

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


def held(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted "
            "AND classid = hashtext('mcp-memory model calls')::bigint & 4294967295"
        ).fetchone()
    assert row is not None
    return int(row[0])


@contextmanager
def keeper(dsn: str) -> Iterator[subprocess.Popen[str]]:
    """A run that holds all slots."""
    process = subprocess.Popen(
        [sys.executable, "-c", KEEPER, dsn, str(MOST)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.wait()


async def test_calls_of_several_runs_together_stay_within_the_bound(
    services: Settings, provider: ScriptedProvider
) -> None:
    provider.latency = 0.05
    command = [sys.executable, "-c", RUN, services.dsn, str(MOST), str(CALLS), provider.base_url]
    runs = [await asyncio.create_subprocess_exec(*command) for _ in range(RUNS)]

    assert [await run.wait() for run in runs] == [0] * RUNS

    assert len(provider.chats) == RUNS * CALLS
    assert provider.peak_in_flight <= MOST
    assert held(services.dsn) == 0


async def test_a_killed_run_gives_its_slots_back(services: Settings) -> None:
    slots = SharedSlots(services.dsn, MOST)
    with keeper(services.dsn) as run:
        waiting = asyncio.create_task(_all(slots))
        await until(lambda: held(services.dsn) == MOST)
        assert not waiting.done()

        run.send_signal(signal.SIGKILL)
        await waiting

    await slots.close()


async def _all(slots: SharedSlots) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(MOST):
            await stack.enter_async_context(slots.one())


async def test_who_gives_up_waiting_leaves_no_slot_taken(services: Settings) -> None:
    slots = SharedSlots(services.dsn, MOST)
    with keeper(services.dsn):
        waiting = [asyncio.create_task(_all(slots)) for _ in range(8)]
        await until(lambda: held(services.dsn) == MOST)
        for task in waiting:
            task.cancel()
        ends = await asyncio.gather(*waiting, return_exceptions=True)

    assert all(isinstance(end, asyncio.CancelledError) for end in ends)
    await _all(slots)
    await slots.close()
    assert held(services.dsn) == 0


async def test_without_postgres_no_call_is_begun() -> None:
    slots = SharedSlots("postgresql://127.0.0.1:1/none", MOST)

    with pytest.raises(PostgresUnavailable):
        async with slots.one():
            pytest.fail("no process knows how many are in flight")


async def test_a_run_whose_connection_was_cut_goes_on_with_another(services: Settings) -> None:
    slots = SharedSlots(services.dsn, MOST)
    async with slots.one():
        with psycopg.connect(services.dsn, autocommit=True) as admin:
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' "
                "AND classid = hashtext('mcp-memory model calls')::bigint & 4294967295"
            )
        async with slots.one():
            assert held(services.dsn) == 1
    await _all(slots)
    await slots.close()
    assert held(services.dsn) == 0
