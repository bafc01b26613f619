"""What the record of every call (span, masks, audit, log line) adds to ingest and search.

    python -m benchmarks.bench_audit

The same calls of the same server, with its recorder and without, by turns: what the machine does
meanwhile falls on both.
"""

import asyncio
import logging
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from mcp import Client
from rich.console import Console
from rich.table import Table

from benchmarks.index import following
from mcp_server.recording import Call, Recorder
from mcp_server.server import build_server
from mcp_server.tool import MemoryServer
from memory_core.kernel.settings import Settings
from memory_core.telemetry.audit import Kind
from stack.connection import connected

CALLS = 300
WARM_UP = 50
ADDED_BAR_MS = 0.2
ADDED_BAR_SHARE = 0.05
_SENTENCE = "Decision {n}: the pricing of plan {n} stays as it is until the review in May. "


class Unrecorded(Recorder):
    """Calls pass, and nothing is kept of them."""

    def __init__(self) -> None:
        pass

    @contextmanager
    def recording(self, kind: Kind, name: str, parameters: dict[str, Any]) -> Iterator[Call]:
        yield Call(kind, name, parameters)


def _ingest(number: int) -> tuple[str, dict[str, Any]]:
    note = {"artifact_type": "note", "source_system": "bench", "source_id": f"note-{number}"}
    return "artifact_ingest", {**note, "content": _SENTENCE.format(n=number) * 20}


def _search(number: int) -> tuple[str, dict[str, Any]]:
    return "hybrid_search", {"query": f"plan {number % 97}", "limit": 5}


async def _measure(server: MemoryServer, recorder: Recorder, call: Any) -> dict[str, list[float]]:
    """Milliseconds of each call, recorded and not, in turns of ten."""
    took: dict[str, list[float]] = {"with": [], "without": []}
    without = Unrecorded()
    async with Client(server) as client:
        for number in range(WARM_UP + 2 * CALLS):
            which = "with" if number // 10 % 2 else "without"
            server.recorder = recorder if which == "with" else without
            tool, arguments = call(number)
            begun = time.perf_counter()
            answer = await client.call_tool(tool, arguments)
            if number >= WARM_UP:
                took[which].append((time.perf_counter() - begun) * 1000)
            assert not answer.is_error, answer.content
    return took


async def _run(settings: Settings) -> dict[str, dict[str, list[float]]]:
    async with following(settings) as runtime:
        server = build_server(settings, runtime=runtime)
        recorder = server.recorder
        took = {
            "ingest": await _measure(server, recorder, _ingest),
            "search": await _measure(server, recorder, _search),
        }
        await runtime.audit.close()
        assert runtime.audit.dropped == 0
        return took


def main() -> None:
    logging.basicConfig(level="INFO", handlers=[logging.NullHandler()], force=True)
    with tempfile.TemporaryDirectory(prefix="memory-bench-") as folder:
        settings = Settings(
            _env_file=None,  # type: ignore[call-arg]
            data_dir=Path(folder),
            embedder="local",
            extractor="rules",
            index_wait_ms=0,
        )
        with connected(settings) as resolved:
            took = asyncio.run(_run(resolved))
    _show(took)


def _show(took: dict[str, dict[str, list[float]]]) -> None:
    table = Table(title=f"{CALLS} calls each, p50")
    for column in ("call", "without, ms", "with, ms", "added, ms", "added", "bar"):
        table.add_column(column, justify="left" if column == "call" else "right")
    for name, times in took.items():
        without, with_ = median(times["without"]), median(times["with"])
        added = with_ - without
        good = added / without <= ADDED_BAR_SHARE and added <= ADDED_BAR_MS
        table.add_row(
            name,
            f"{without:.2f}",
            f"{with_:.2f}",
            f"{added:+.3f}",
            f"{added / without:+.1%}",
            f"{ADDED_BAR_SHARE:.0%}, {ADDED_BAR_MS} ms: {'met' if good else 'MISSED'}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
