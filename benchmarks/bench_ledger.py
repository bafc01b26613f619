"""What the ledger adds to an ingest and to a claim: each with and without its triggers.

    python -m benchmarks ledger

Batches with and without alternate on the same data in the same run. The first of each is left out,
since Postgres plans its statements again. A claim is that of `bench_queue`; an ingest is a note of
1 kB, without HTTP.
"""

import asyncio
import random
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from uuid import uuid4

import psycopg
from rich.console import Console
from rich.table import Table

from benchmarks.bench_queue import AT_ONCE, fill
from memory_core.artifacts.document import ArtifactType, Document
from memory_core.artifacts.ingest import ingest
from memory_core.kernel.settings import Settings
from memory_core.queue import jobs
from memory_core.runtime import Runtime
from stack.connection import connected

JOBS = 50_000
BATCHES = 24
BATCH = 8
TARGET_PERCENT = 5.0
TRIGGERS = ("record_job_requests", "record_job_transitions")

Step = Callable[[], Awaitable[None]]


def switch(dsn: str, on: bool) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for trigger in TRIGGERS:
            doing = "ENABLE" if on else "DISABLE"
            connection.execute(f"ALTER TABLE event_jobs {doing} TRIGGER {trigger}")


async def times(dsn: str, step: Step) -> tuple[list[float], list[float]]:
    """Milliseconds per step: with the ledger, and without it."""
    measured: dict[bool, list[float]] = {True: [], False: []}
    for number in range(BATCHES):
        on = number % 2 == 0
        switch(dsn, on)
        for place in range(BATCH + 1):
            begun = time.perf_counter()
            await step()
            if place:
                measured[on].append((time.perf_counter() - begun) * 1000)
    switch(dsn, True)
    return measured[True], measured[False]


async def measure(settings: Settings) -> dict[str, tuple[list[float], list[float]]]:
    runtime = Runtime(settings, unasked="a benchmark claims the jobs of all")
    await runtime.open()
    rng = random.Random(1)
    words = ["plan", "price", "launch", "budget", "review", "team", "door", "train"]

    async def claim() -> None:
        due = await jobs.claimable(runtime.database, limit=AT_ONCE)
        keys = [job.partition_key for job in due]
        assert len(await jobs.claim(runtime.database, keys, str(uuid4()))) == AT_ONCE

    async def store() -> None:
        text = " ".join(rng.choices(words, k=160))
        await ingest(runtime, Document(ArtifactType.NOTE, "bench", text, source_id=str(uuid4())))

    try:
        return {
            "claim of 20": await times(settings.dsn, claim),
            "ingest of 1 kB": await times(settings.dsn, store),
        }
    finally:
        await runtime.close()


def main() -> None:
    console = Console()
    table = Table("what", "without ms", "with ms", "added")
    with tempfile.TemporaryDirectory(prefix="memory-bench-", ignore_cleanup_errors=True) as folder:
        settings = Settings(
            _env_file=None, data_dir=Path(folder), embedder="local", extractor="rules"
        )
        with connected(settings) as resolved:
            fill(resolved.dsn, 1, JOBS)
            measured = asyncio.run(measure(resolved))
    for what, (on, off) in measured.items():
        percent = (median(on) / median(off) - 1) * 100
        table.add_row(what, f"{median(off):.2f}", f"{median(on):.2f}", f"{percent:+.1f} %")
    console.print(table)
    console.print(f"medians of {BATCHES // 2 * BATCH} each; the bar is {TARGET_PERCENT:g} %")
