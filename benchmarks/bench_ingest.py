"""artifact_ingest over HTTP, compared with its floor: the work that every ingest needs.

    python -m benchmarks ingest

The floor is cutting the text and one Postgres transaction with the same rows, without HTTP and MCP.
The cost of these is measured by a call of a tool that does not exist, with the same arguments over
the same session ("protocol"). It is printed next to the others, and subtracted in a second ratio,
"ours"; the bar is for the first ratio. An ingest is measured without waiting for the index
(INDEX_WAIT_MS=0; the bar is for this) and by default, when it waits until its text can be found by
meaning. All are measured in turns in the same run, on the same servers, over new documents of the
same kind.
"""

import asyncio
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from mcp import Client
from psycopg.rows import dict_row
from rich.console import Console
from rich.table import Table

from benchmarks.index import following
from memory_core.artifacts import ingest
from memory_core.artifacts.document import ArtifactType, Document
from memory_core.artifacts.idempotency import IngestRequest
from memory_core.artifacts.revision import Revision, RevisionDraft, cut
from memory_core.kernel.database import Session
from memory_core.kernel.settings import Settings
from stack import ports
from stack.connection import connected

CORPUS = Path(__file__).resolve().parents[1] / "demo" / "corpus"
SEED = 20260301
# Characters of a note, and the number of measurements.
SIZES = {"1 kB": (1_000, 80), "10 kB": (10_000, 80), "100 kB": (100_000, 40)}
WARM_UP = 5
BAR = 1.3
NO_TOOL = "no_such_tool"
START_SECONDS = 60.0


@dataclass
class Timings:
    ingest: list[float] = field(default_factory=list)
    waiting: list[float] = field(default_factory=list)
    protocol: list[float] = field(default_factory=list)
    floor: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        return p95(self.ingest) / p95(self.floor)

    @property
    def ratio_of_ours(self) -> float:
        """The ratio per round, without the time of the protocol."""
        ours = [a - b for a, b in zip(self.ingest, self.protocol, strict=True)]
        return p95(ours) / p95(self.floor)


class Floor:
    """The necessary work alone."""

    def __init__(self, settings: Settings, connection: Any) -> None:
        self._settings = settings
        self._session = Session(connection)

    @classmethod
    @asynccontextmanager
    async def opened(cls, settings: Settings) -> AsyncIterator["Floor"]:
        async with await psycopg.AsyncConnection.connect(
            settings.dsn, autocommit=True, row_factory=dict_row
        ) as connection:
            yield cls(settings, connection)

    async def store(self, content: str, source_id: str) -> float:
        """Returns seconds."""
        begun = time.perf_counter()
        revision = Revision.of(
            Document(ArtifactType.NOTE, "floor", content, source_id=source_id, title=source_id)
        )
        draft = RevisionDraft(revision, await cut(revision, self._settings))
        async with self._session.connection.transaction():
            columns = IngestRequest().columns(self._settings)
            await ingest._insert(self._session, [draft], columns, superseded=set())
        return time.perf_counter() - begun


async def measure(settings: Settings, url: str, waiting: str) -> dict[str, Timings]:
    """`url`: a server that does not wait for the index; `waiting`: one that does."""
    rng = random.Random(SEED)
    sentences = list(_sentences())
    measured = {size: Timings() for size in SIZES}
    async with (
        following(settings),
        Client(url) as client,
        Client(waiting) as patient,
        Floor.opened(settings) as floor,
    ):
        for size, (length, rounds) in SIZES.items():
            for number in range(-WARM_UP, rounds):
                name = f"{size} {number}"
                ingested = await _ingest(client, _note(rng, sentences, length), name)
                waited = await _ingest(patient, _note(rng, sentences, length), f"{name} waited")
                empty = await _ingest(client, _note(rng, sentences, length), name, tool=NO_TOOL)
                raw = await floor.store(_note(rng, sentences, length), name)
                if number >= 0:
                    measured[size].ingest.append(ingested)
                    measured[size].waiting.append(waited)
                    measured[size].protocol.append(empty)
                    measured[size].floor.append(raw)
    return measured


async def _ingest(
    client: Client, content: str, source_id: str, *, tool: str = "artifact_ingest"
) -> float:
    arguments = {
        "artifact_type": "note",
        "source_system": "bench",
        "source_id": source_id,
        "title": source_id,
        "content": content,
    }
    begun = time.perf_counter()
    answer = await client.call_tool(tool, arguments)
    elapsed = time.perf_counter() - begun
    assert answer.is_error == (tool == NO_TOOL), answer.content
    return elapsed


def _sentences() -> Iterator[str]:
    for file in sorted(CORPUS.iterdir()):
        for line in file.read_text(encoding="utf-8").splitlines():
            if len(line) > 40:
                yield line


def _note(rng: random.Random, sentences: list[str], length: int) -> str:
    """A note of that length, of sentences in a new random order."""
    parts: list[str] = []
    while sum(map(len, parts)) + 2 * len(parts) < length:
        parts.append(f"{rng.randrange(10**6)}. {rng.choice(sentences)}")
    return "\n\n".join(parts)[:length]


@contextmanager
def serving(settings: Settings, index_wait_ms: int = 2000) -> Iterator[str]:
    """`mcp-memory serve` over HTTP; yields its address."""
    port = ports.free_port()
    environment = {**os.environ, **settings.environment(), "MCP_PORT": str(port)}
    environment["INDEX_WAIT_MS"] = str(index_wait_ms)
    process = subprocess.Popen(
        [sys.executable, "-m", "mcp_server.cli", "serve"],
        env={**environment, "LOG_LEVEL": "WARNING"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _listens(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the MCP server does not start")
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20, method="inclusive")[-1]


def report(measured: dict[str, Timings], console: Console) -> None:
    table = Table(title=f"artifact_ingest over HTTP; the bar for the p95 ratio is {BAR}")
    table.add_column("note")
    columns = (
        *("n", "ingest p50", "p95", "indexed p50", "p95", "protocol p50", "p95"),
        *("floor p50", "p95", "p95 ratio", "ours", ""),
    )
    for column in columns:
        table.add_column(column, justify="right")
    for size, timings in measured.items():
        table.add_row(
            size,
            str(len(timings.ingest)),
            _ms(statistics.median(timings.ingest)),
            _ms(p95(timings.ingest)),
            _ms(statistics.median(timings.waiting)),
            _ms(p95(timings.waiting)),
            _ms(statistics.median(timings.protocol)),
            _ms(p95(timings.protocol)),
            _ms(statistics.median(timings.floor)),
            _ms(p95(timings.floor)),
            f"{timings.ratio:.2f}",
            f"{timings.ratio_of_ours:.2f}",
            "ok" if timings.ratio <= BAR else "OVER",
        )
    console.print(table)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


def main() -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        settings = Settings(
            _env_file=None,  # type: ignore[call-arg]
            data_dir=Path(folder) / "data",
            embedder="local",
            extractor="rules",
            # The library's own client, used for the floor, cannot connect to Unix sockets.
            chroma_port=ports.free_port(),
        )
        with (
            connected(settings) as resolved,
            serving(resolved, index_wait_ms=0) as url,
            serving(resolved) as waiting,
        ):
            measured = asyncio.run(measure(resolved, url, waiting))
    report(measured, Console(width=150))


if __name__ == "__main__":
    main()
