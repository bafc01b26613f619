"""The cost of the log: an append compared with the same transaction without it, and the lag of
readers.

    python -m benchmarks log

Both transactions write one row and commit; in turns, on the same connection. The lag is measured
from the commit of a change to the commit of a projection's checkpoint past it.
"""

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from memory_core.kernel.database import Database
from memory_core.kernel.settings import Settings
from memory_core.log.change import Change, ChangeType, of_artifact, of_memory
from memory_core.log.log_writer import append
from memory_core.log.projection import Commit
from memory_core.log.projection_wait import wait_until
from memory_core.log.worker import Worker
from stack.connection import connected

TRANSACTIONS = 600
WARM_UP = 50
APPEND_BAR_MS = 0.3
PER_SECOND = 50
CHANGES = 300
LAG_BAR_MS = 1000.0


class Nothing:
    """A projection that does nothing, to measure the runner's own cost."""

    name = "nothing"
    types = None
    batch = 256

    async def apply(self, changes: Sequence[Change], commit: Commit) -> None:
        async with commit():
            pass

    async def rebuild(self) -> None:
        return None


async def measure_append(database: Database) -> tuple[float, float, float]:
    """Medians in milliseconds: the statement, the transaction with it, and without it."""
    statement: list[float] = []
    whole: dict[bool, list[float]] = {True: [], False: []}
    for n in range(TRANSACTIONS):
        for appending in (True, False):
            begun = time.perf_counter()
            async with database.transaction() as session:
                await session.run(
                    "append_turn",
                    conversation_id=f"bench-{appending}",
                    turn_index=n,
                    role="user",
                    content="x",
                )
                if appending:
                    change = of_artifact(
                        ChangeType.ARTIFACT_CREATED, f"uid_{n:016x}", revision_id="rev_0"
                    )
                    started = time.perf_counter()
                    await append(session, [change])
                    appended = time.perf_counter() - started
            if n >= WARM_UP:
                whole[appending].append((time.perf_counter() - begun) * 1000)
                if appending:
                    statement.append(appended * 1000)
    return (*map(statistics.median, (statement, whole[True], whole[False])),)  # type: ignore[return-value]


async def measure_lag(database: Database) -> list[float]:
    """Milliseconds from each commit until the projection had passed it."""
    lags: list[float] = []

    async def one(n: int) -> None:
        async with database.transaction() as session:
            [position] = await append(session, [of_memory(ChangeType.MEMORY_STORED, f"mem_{n}")])
        committed = time.perf_counter()
        assert await wait_until(database, Nothing.name, position, 60)
        lags.append((time.perf_counter() - committed) * 1000)

    worker = asyncio.create_task(Worker(database, [Nothing()]).run())
    try:
        await one(-1)
        lags.clear()
        tasks = []
        for n in range(CHANGES):
            tasks.append(asyncio.create_task(one(n)))
            await asyncio.sleep(1 / PER_SECOND)
        await asyncio.gather(*tasks)
    finally:
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
    return lags


async def run(settings: Settings) -> None:
    database = Database(settings.dsn, unasked="a benchmark looks at what is stored")
    await database.open()
    try:
        statement, with_it, without = await measure_append(database)
        lags = await measure_lag(database)
    finally:
        await database.close()
    p95 = statistics.quantiles(lags, n=20)[-1]
    table = Table("what", "ms", "bar", title=f"load {os.getloadavg()[0]:.1f}")
    table.add_row("append, the statement (median)", f"{statement:.3f}", "")
    table.add_row("transaction with it (median)", f"{with_it:.3f}", "")
    table.add_row("transaction without it (median)", f"{without:.3f}", "")
    table.add_row("what appending costs", f"{with_it - without:.3f}", f"{APPEND_BAR_MS}")
    table.add_row(f"lag p95 at {PER_SECOND} changes/s", f"{p95:.1f}", f"{LAG_BAR_MS:.0f}")
    Console().print(table)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="bench-log-") as folder:
        settings = Settings(
            _env_file=None,  # type: ignore[call-arg]
            data_dir=Path(folder),
            embedder="local",
            extractor="rules",
        )
        with connected(settings) as resolved:
            asyncio.run(run(resolved))
