"""The cost of tenants and visibility: the same searches and ingests with and without them.

The same data at the same time: as the system, which sees everything, and as a user who sees the
whole of one tenant. A million events in one tenant, and in a hundred. The data is generated once
per version of the schema, under `.data`, and reused by later runs.
"""

import asyncio
import hashlib
import json
import logging
import os
import random
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from uuid import UUID, uuid4

import psycopg
from rich.console import Console
from rich.table import Table

from benchmarks.bench_events import KINDS, Kind, p95, several
from benchmarks.event_data import Size, fill, fingerprint
from memory_core.artifacts.document import ArtifactType, Document, VisibilityScope
from memory_core.artifacts.ingest import ingest
from memory_core.kernel.principal import Principal, asking
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from memory_core.search.event_search import search_events
from memory_core.search.passage_filters import Filters
from memory_core.search.passages import hybrid_search
from stack.connection import connected, joined_runtime

TENANTS = (1, 100)
SIZE = Size(events=1_000_000, revisions=200_000, quotes=1)
TARGET_RATIO = 1.1
ROUNDS = 60
_WARM_UP = 5
_SEED = 11
_DATA = Path(".data")
_KINDS = (
    *("rare: a seldom word", "common word", "two common words", "eight words"),
    *("common, by category", "common, in 90 days", "no words, by category"),
)
Work = Callable[[random.Random], Awaitable[object]]


def tenant_id(number: int) -> UUID:
    """The tenant ids of benchmarks/event_data.py."""
    return UUID(hashlib.md5(f"tenant{number}".encode()).hexdigest())


ALICE = Principal(tenant_id(0), "alice", frozenset({"sales"}), frozenset({"read", "write"}))
SYSTEM = replace(ALICE, user="system", system="a benchmark compares")


def searching(runtime: Runtime, kind: Kind) -> Work:
    async def search(dice: random.Random) -> object:
        query, filters = kind.make(dice)
        return await search_events(runtime, query, filters, limit=20)

    return search


def passages(runtime: Runtime, words: int) -> Work:
    async def search(dice: random.Random) -> object:
        return await hybrid_search(
            runtime, several(dice, words), Filters(), limit=10, include_memory=False
        )

    return search


def ingesting(runtime: Runtime) -> Work:
    async def store(dice: random.Random) -> object:
        document = Document(
            artifact_type=ArtifactType.NOTE,
            source_system="bench",
            source_id=uuid4().hex,
            title=several(dice, 4),
            content=several(dice, 150),
            visibility_scope=VisibilityScope.ORG,
        )
        return await ingest(runtime, document)

    return store


async def compared(work: Work, name: str) -> tuple[list[float], list[float]]:
    """Milliseconds without and with, one after the other, on the same questions."""
    without: list[float] = []
    narrowed: list[float] = []
    for number in range(_WARM_UP + ROUNDS):
        sides = [(SYSTEM, without), (ALICE, narrowed)]
        for who, times in sides if number % 2 else reversed(sides):
            dice = random.Random(f"{_SEED}{name}{number}")
            with asking(who):
                began = time.perf_counter()
                await work(dice)
                elapsed = 1000 * (time.perf_counter() - began)
            if number >= _WARM_UP:
                times.append(elapsed)
    return without, narrowed


async def run(settings: Settings, tenants: int, console: Console) -> None:
    runtime = joined_runtime(settings)
    await runtime.open()
    kinds = [kind for kind in KINDS if kind.name in _KINDS]
    works = {f"event_search: {kind.name}": searching(runtime, kind) for kind in kinds}
    works |= {f"hybrid_search: {n} words": passages(runtime, n) for n in (2, 5)}
    works["ingest of 1 kB"] = ingesting(runtime)
    table = Table(
        f"a million events in {tenants}", "without p50", "p95", "with p50", "p95", "ratio p50", ""
    )
    for name, work in works.items():
        without, narrowed = await compared(work, name)
        ratio = statistics.median(narrowed) / statistics.median(without)
        table.add_row(
            name,
            f"{statistics.median(without):.1f}",
            f"{p95(without):.1f}",
            f"{statistics.median(narrowed):.1f}",
            f"{p95(narrowed):.1f}",
            f"{ratio:.2f}",
            "[green]✓[/]" if ratio <= TARGET_RATIO else "[red]✗[/]",
        )
    console.print(table)
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    console.print(f"Target: ≤ {TARGET_RATIO} ×. Load: {load} on {os.cpu_count()} cores.")
    await runtime.close()


def data_dir(size: Size) -> Path:
    return _DATA / f"bench-tenants-{fingerprint(size)}"


def prepare(settings: Settings, size: Size, console: Console) -> None:
    marker = settings.data_dir / "filled.json"
    if marker.exists():
        return
    console.print(f"Making {size.events:,} events of {size.tenants} in {settings.data_dir} …")
    began = time.perf_counter()
    with psycopg.connect(settings.dsn, autocommit=True) as connection:
        fill(connection, size)
    marker.write_text(json.dumps(round(time.perf_counter() - began)))
    console.print(f"Made in {marker.read_text()} s.")


def main() -> None:
    logging.disable(logging.WARNING)  # the missing index: only words are compared
    console = Console(width=130)
    for tenants in TENANTS:
        size = replace(SIZE, tenants=tenants)
        settings = Settings(  # type: ignore[call-arg]
            _env_file=None, data_dir=data_dir(size), embedder="local", extractor="rules"
        )
        with connected(settings) as resolved:
            prepare(resolved, size, console)
            asyncio.run(run(resolved, tenants, console))


if __name__ == "__main__":
    main()
