"""What one more document costs when there are many already.

    python -m benchmarks growth

CPU of the whole stack, bytes in Postgres and the time of a search, for the documents up to the
first size and for those up to the second, and their ratio. GROWTH_SIZES=200,1000 asks for others.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psycopg
from mcp import Client
from rich.console import Console
from rich.table import Table

from benchmarks.stack_cpu import RUNS, cpu_seconds
from stack.process import StackProcess, running_stack
from stack.stack_state import StackState

SIZES = tuple(int(size) for size in os.environ.get("GROWTH_SIZES", "1000,10000").split(","))
WARM_UP = 50
AT_ONCE = 8
SEARCHES = 20
RATIO_BAR, LATENCY_BAR = 1.15, 1.5
HISTORY_BAR_BYTES = 6_000
_OFFLINE = {"EXTRACTOR": "rules", "EMBEDDER": "local", "LOG_LEVEL": "WARNING"}
_FILLER = "The rest of the meeting was about the office move and the new coffee machine. " * 20


@dataclass(frozen=True)
class Mark:
    """All so far, but for the latency, which is of a search at that moment."""

    documents: int
    cpu_ms: float
    cpu_runs_ms: float
    bytes_ours: float
    bytes_dagster: float
    bytes_history: float
    bytes_ticks: float
    search_ms: float
    commitments_ms: float


_MEANINGS = {
    "cpu_ms": "CPU of the whole stack, ms",
    "cpu_runs_ms": "… of the code server and its runs, ms",
    "bytes_ours": "our tables, bytes on disk",
    "bytes_dagster": "Dagster's tables, bytes on disk",
    "bytes_history": "Dagster's history of documents, bytes of JSON",
    "bytes_ticks": "sensor ticks, bytes of JSON",
}

_LATENCIES = {
    "search_ms": "event_search, ms (median)",
    "commitments_ms": "commitment_list, ms (median)",
}


class Growth:
    def __init__(self, process: StackProcess, state: StackState) -> None:
        assert state.postgres_dsn is not None
        assert state.mcp_url is not None
        self._process, self._url = process, state.mcp_url
        self._postgres = psycopg.connect(state.postgres_dsn, autocommit=True)
        self._documents = 0

    def grow(self, size: int) -> Mark:
        """Ingest until there are that many documents, wait until all are done, and look."""
        asyncio.run(self._ingest(range(self._documents, size)))
        self._documents = size
        while self._number("SELECT count(*) FROM event_jobs WHERE status <> 'DONE'"):
            time.sleep(0.5)
        time.sleep(3.0)  # the last run ends
        cpu = cpu_seconds(self._process.layout.root, self._process.pid)
        self._postgres.execute("VACUUM")
        return Mark(
            documents=size,
            cpu_ms=1000 * sum(cpu.values()),
            cpu_runs_ms=1000 * cpu[RUNS],
            bytes_ours=self._size("public"),
            bytes_dagster=self._size("dagster"),
            bytes_history=self._number(
                "SELECT sum(length(event)) FROM dagster.event_logs WHERE partition IS NOT NULL"
            ),
            bytes_ticks=self._number("SELECT sum(length(tick_body)) FROM dagster.job_ticks"),
            search_ms=asyncio.run(self._median_ms("event_search", query="vendor {}")),
            commitments_ms=asyncio.run(
                self._median_ms("commitment_list", actor="Bob Stone", status="open")
            ),
        )

    async def _ingest(self, numbers: Sequence[int]) -> None:
        slots = asyncio.Semaphore(AT_ONCE)

        async def one(client: Client, number: int) -> None:
            async with slots:
                await client.call_tool("artifact_ingest", _document(number))

        async with Client(self._url) as client:
            await asyncio.gather(*(one(client, number) for number in numbers))

    async def _median_ms(self, tool: str, **arguments: str) -> float:
        async with Client(self._url) as client:
            times = []
            for number in range(SEARCHES):
                asked = {name: value.format(number) for name, value in arguments.items()}
                begun = time.perf_counter()
                answer = await client.call_tool(tool, {**asked, "limit": 10})
                times.append(time.perf_counter() - begun)
                assert not answer.is_error, answer
        return 1000 * median(times)

    def _size(self, schema: str) -> float:
        return self._number(
            "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c "
            "JOIN pg_namespace n ON n.oid = c.relnamespace "
            f"WHERE c.relkind = 'r' AND n.nspname = '{schema}'"
        )

    def _number(self, query: str) -> float:
        row = self._postgres.execute(query).fetchone()  # type: ignore[arg-type]
        return float(row[0] or 0) if row else 0.0


def _document(number: int) -> dict[str, str]:
    return {
        "artifact_type": "note",
        "source_system": "bench",
        "source_id": f"growth-{number}",
        "title": f"Stand-up {number}",
        "content": f"Decisions\n- We go with Postgres for round {number}.\n- The launch moves to "
        f"June because of {number} open bugs.\n\nAction items\n- Alice Morgan will write the "
        f"migration by 2024-06-11.\n- Bob Stone will call the vendor {number} on Monday.\n\n"
        f"{_FILLER}",
    }


def main() -> None:
    small, large = SIZES
    with (
        tempfile.TemporaryDirectory() as folder,
        running_stack(Path(folder), _OFFLINE) as (process, state),
    ):
        growth = Growth(process, state)
        marks = [growth.grow(size) for size in (WARM_UP, WARM_UP + small, WARM_UP + large)]
    _print(*marks)


def _print(start: Mark, small: Mark, large: Mark) -> None:
    table = Table(
        "per document", f"first {small.documents:,}", f"up to {large.documents:,}", "ratio"
    )
    for name, meaning in _MEANINGS.items():
        first, later = _each(name, start, small), _each(name, small, large)
        table.add_row(meaning, f"{first:,.1f}", f"{later:,.1f}", _verdict(later, first, RATIO_BAR))
    table.add_section()
    for name, meaning in _LATENCIES.items():
        before, after = getattr(small, name), getattr(large, name)
        verdict = _verdict(after, before, LATENCY_BAR)
        table.add_row(meaning, f"{before:.1f}", f"{after:.1f}", verdict)
    history = _each("bytes_history", small, large)
    table.add_row(
        "history of a document",
        "",
        f"{history:,.0f} B",
        _verdict(history, HISTORY_BAR_BYTES, 1.0, f"≤ {HISTORY_BAR_BYTES:,} B"),
    )
    Console(width=110).print(table)


def _each(name: str, before: Mark, after: Mark) -> float:
    grown = getattr(after, name) - getattr(before, name)
    return float(grown) / (after.documents - before.documents)


def _verdict(value: float, base: float, bar: float, shown: str | None = None) -> str:
    ratio = value / base if base else 0.0
    mark = "[green]✓[/]" if ratio <= bar else "[red]✗[/]"
    return f"{shown or f'{ratio:.2f} (≤ {bar:g})'} {mark}"


if __name__ == "__main__":
    main()
