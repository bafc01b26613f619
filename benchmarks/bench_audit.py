"""What recording every call (span, masks, audit, log line) adds to ingest and search.

    python -m benchmarks.bench_audit

Pairs of the same call to the same server, one with its recorder and one without, so that the load
of the machine affects both.
"""

import asyncio
import logging
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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

PAIRS = 300
WARM_UP = 20
# For the cheapest call in milliseconds; for the most frequent calls as a share.
ADDED_BAR_MS = 0.2
ADDED_BAR_SHARE = 0.05
_SENTENCE = "Decision {n}: the pricing of plan {n} stays as it is until the review in May. "


class Unrecorded(Recorder):
    """A recorder that keeps nothing."""

    def __init__(self) -> None:
        pass

    @contextmanager
    def recording(self, kind: Kind, name: str, parameters: dict[str, Any]) -> Iterator[Call]:
        yield Call(kind, name, parameters)


def _ingest(number: int) -> tuple[str, dict[str, Any]]:
    note = {"artifact_type": "note", "source_system": "bench", "source_id": f"note-{number}"}
    return "artifact_ingest", {**note, "content": _SENTENCE.format(n=number) * 20}


def _search(number: int) -> tuple[str, dict[str, Any]]:
    return "hybrid_search", {"query": f"plan {number // 2 % 97}", "limit": 5}


def _nothing(_: int) -> tuple[str, dict[str, Any]]:
    return "memory_list", {}


@dataclass(frozen=True)
class Pair:
    """Milliseconds of two calls, one right after the other."""

    without: float
    recorded: float


async def _measure(server: MemoryServer, recorder: Recorder, call: Any) -> list[Pair]:
    pairs = []
    recorders = {"without": Unrecorded(), "recorded": recorder}
    async with Client(server) as client:
        for number in range(WARM_UP + PAIRS):
            took = {}
            # The order alternates, because the second call finds warm caches.
            names = sorted(recorders, reverse=number % 2 == 0)
            for place, name in enumerate(names):
                server.recorder = recorders[name]
                tool, arguments = call(2 * number + place)
                begun = time.perf_counter()
                answer = await client.call_tool(tool, arguments)
                took[name] = (time.perf_counter() - begun) * 1000
                assert not answer.is_error, answer.content
            pairs.append(Pair(**took))
    return pairs[WARM_UP:]


async def _run(settings: Settings) -> dict[str, list[Pair]]:
    async with following(settings) as runtime:
        server = build_server(settings, runtime=runtime)
        recorder = server.recorder
        took = {
            "memory_list, empty": await _measure(server, recorder, _nothing),
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


def _show(took: dict[str, list[Pair]]) -> None:
    table = Table(title=f"{PAIRS} pairs of calls: the median, and the median difference")
    for column in ("call", "without, ms", "added, ms", "added", "bar"):
        table.add_column(column, justify="left" if column == "call" else "right")
    for number, (name, pairs) in enumerate(took.items()):
        without = median(pair.without for pair in pairs)
        added = median(pair.recorded - pair.without for pair in pairs)
        # The cheapest call has a bar in milliseconds, the others as a share.
        good = added <= ADDED_BAR_MS if number == 0 else added / without <= ADDED_BAR_SHARE
        bar = f"{ADDED_BAR_MS} ms" if number == 0 else f"{ADDED_BAR_SHARE:.0%}"
        table.add_row(
            name,
            f"{without:.2f}",
            f"{added:+.3f}",
            f"{added / without:+.1%}",
            f"{bar}: {'met' if good else 'MISSED'}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
