"""A document of 10 MB compared with one of 100 kB: the cost per chunk, and the latency of other
requests.

    python -m benchmarks large

Each step is measured over both documents and divided by their chunks: a cost per chunk that grows
with the document would be quadratic. The last column is that growth. During the work on the large
document /health of the same server is requested continuously; its worst time is shown as well.
"""

import asyncio
import random
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psycopg
from mcp import Client
from rich.console import Console
from rich.table import Table

from benchmarks.bench_ingest import SEED, _sentences, serving
from benchmarks.index import following
from memory_core.index.new_generation import rebuild
from memory_core.kernel.settings import Settings
from memory_core.log.log_reader import newest
from memory_core.log.projection_wait import wait_until
from memory_core.runtime import Runtime
from stack import ports
from stack.connection import connected

SMALL, LARGE = 100_000, 10_000_000
EVENTS = 6_000
# How much more a chunk of the large document may cost.
GROWTH_BAR = 2.0
HEALTH_BAR_MS = 500.0
INDEX_SECONDS = 600.0


@dataclass
class Step:
    """Seconds of one step over a document, and the worst /health meanwhile."""

    seconds: float
    health: float


@dataclass
class Measured:
    chunks: int = 0
    steps: dict[str, Step] = field(default_factory=dict)


class Bench:
    def __init__(self, settings: Settings, runtime: Runtime, client: Client, url: str) -> None:
        self._settings, self._runtime, self._client = settings, runtime, client
        self._health = url.removesuffix("/mcp") + "/health"
        self._rng = random.Random(SEED)
        self._lines = list(_sentences())

    async def run(self, length: int) -> Measured:
        measured = Measured()
        name = f"{length:,} characters"
        text = self._text(length)
        stored = await self._step(measured, "ingest", lambda: self._ingest(name, text))
        uid = stored["artifact_uid"]
        measured.chunks = max(stored["num_chunks"], 1)
        await self._step(measured, "index", self._indexed)
        await self._step(
            measured, "artifact_get", lambda: self._call("artifact_get", artifact_uid=uid)
        )
        await self._step(measured, "search in it", lambda: self._search(uid))
        await self._step(measured, "rebuild", lambda: rebuild(self._runtime))
        return measured

    async def diff(self) -> Measured:
        """Two revisions with thousands of events each."""
        measured = Measured(chunks=EVENTS)
        revisions = [await self._with_events("diffed", edit) for edit in ("", " at last")]
        uid = revisions[0]["artifact_uid"]
        await self._step(measured, "event_diff", lambda: self._call("event_diff", artifact_uid=uid))
        return measured

    async def _step(self, measured: Measured, name: str, work: Callable[[], Awaitable[Any]]) -> Any:
        async with self._watched() as worst:
            begun = time.perf_counter()
            answer = await work()
            seconds = time.perf_counter() - begun
        measured.steps[name] = Step(seconds, max(worst, default=0.0))
        return answer

    @asynccontextmanager
    async def _watched(self) -> AsyncIterator[list[float]]:
        """Requests /health continuously, on a separate connection."""
        taken: list[float] = []

        async def ask() -> None:
            async with httpx.AsyncClient(trust_env=False, timeout=120) as client:
                while True:
                    begun = time.perf_counter()
                    await client.get(self._health)
                    taken.append(time.perf_counter() - begun)
                    await asyncio.sleep(0.02)

        task = asyncio.create_task(ask())
        await asyncio.sleep(0.1)
        taken.clear()
        try:
            yield taken
            # Wait for a request that started during the step.
            waiting = len(taken)
            while len(taken) == waiting:
                await asyncio.sleep(0.01)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = await self._client.call_tool(tool, arguments, read_timeout_seconds=600)
        assert not answer.is_error, answer.content
        assert answer.structured_content is not None
        return answer.structured_content

    async def _ingest(self, source_id: str, text: str) -> dict[str, Any]:
        return await self._call(
            "artifact_ingest", artifact_type="note", source_system="large", source_id=source_id,
            content=text,
        )  # fmt: skip

    async def _indexed(self) -> None:
        async with self._runtime.database.session() as session:
            position = await newest(session)
        assert position is not None
        assert await wait_until(self._runtime.database, "index", position, INDEX_SECONDS)

    async def _search(self, uid: str) -> None:
        for _ in range(5):
            words = " ".join(self._rng.choice(self._lines).split()[2:6])
            await self._call("hybrid_search", query=words, artifact_uid=uid)

    async def _with_events(self, source_id: str, edit: str) -> dict[str, Any]:
        lines = [
            f"Decision: team {number} goes with plan {number * 7919 % 10_000}"
            f"{edit if number % 10 == 0 else ''}."
            for number in range(EVENTS)
        ]
        stored = await self._ingest(source_id, "\n\n".join(lines))
        await asyncio.to_thread(self._plant, stored, lines)
        return stored

    def _plant(self, stored: dict[str, Any], lines: list[str]) -> None:
        """Events as the pipeline stores them, one per line."""
        with psycopg.connect(self._settings.dsn) as connection:
            starts, at = [], 0
            for line in lines:
                starts.append(at)
                at += len(line) + 2
            connection.execute(
                """WITH told AS (
                       SELECT gen_random_uuid() AS id, * FROM unnest(%s::text[], %s::int[])
                           AS t (line, start)
                   ), stored AS (
                       INSERT INTO semantic_event (event_id, artifact_uid, revision_id, category,
                           narrative, subject_json, actors_json, confidence, extraction_run_id)
                       SELECT id, %s, %s, 'Decision', line, '{"type": "project", "ref": "plan"}',
                              '[]', 0.9, %s
                       FROM told
                   )
                   INSERT INTO event_evidence (event_id, artifact_uid, revision_id, start_char,
                                               end_char, quote)
                   SELECT id, %s, %s, start, start + length(line), line FROM told""",
                [lines, starts, stored["artifact_uid"], stored["revision_id"], stored["job_id"],
                 stored["artifact_uid"], stored["revision_id"]],
            )  # fmt: skip

    def _text(self, length: int) -> str:
        parts: list[str] = []
        size = 0
        while size < length:
            line = f"{self._rng.randrange(10**6)}. {self._rng.choice(self._lines)}"
            parts.append(line)
            size += len(line) + 2
        return "\n\n".join(parts)[:length]


def report(small: Measured, large: Measured, diff: Measured, console: Console) -> None:
    title = (
        f"{SMALL:,} characters ({small.chunks} chunks), compared with {LARGE:,} ({large.chunks})"
    )
    table = Table(title=title)
    for column in ("", "small", "large", "growth per chunk", "bar", "/health meanwhile", ""):
        table.add_column(column, justify="right")
    for name, step in large.steps.items():
        before = small.steps[name]
        growth = step.seconds / large.chunks / (before.seconds / small.chunks)
        is_quick = step.health * 1000 <= HEALTH_BAR_MS
        table.add_row(
            name, f"{before.seconds:.2f} s", f"{step.seconds:.2f} s", f"{growth:.2f} ×",
            f"≤ {GROWTH_BAR}", f"{step.health * 1000:.0f} ms",
            "ok" if growth <= GROWTH_BAR and is_quick else "OVER",
        )  # fmt: skip
    for name, step in diff.steps.items():
        is_quick = step.health * 1000 <= HEALTH_BAR_MS
        table.add_row(
            f"{name}, {EVENTS:,} events", "", f"{step.seconds:.2f} s", "", "",
            f"{step.health * 1000:.0f} ms", "ok" if is_quick else "OVER",
        )  # fmt: skip
    console.print(table)


async def measure(settings: Settings, url: str) -> tuple[Measured, Measured, Measured]:
    async with following(settings) as runtime, Client(url) as client:
        bench = Bench(settings, runtime, client, url)
        await bench.run(SMALL // 2)  # warm
        small = await bench.run(SMALL)
        return small, await bench.run(LARGE), await bench.diff()


def main() -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        settings = Settings(
            _env_file=None,  # type: ignore[call-arg]
            data_dir=Path(folder) / "data",
            embedder="local",
            extractor="rules",
            chroma_port=ports.free_port(),
        )
        with connected(settings) as resolved, serving(resolved, index_wait_ms=0) as url:
            measured = asyncio.run(measure(resolved, url))
    report(*measured, Console(width=120))


if __name__ == "__main__":
    main()
