"""A rebuild of 100,000 entries of the index during ingests and searches.

    python -m benchmarks index [entries]

Most entries are short memories, the others notes. No search may fail, and afterwards Chroma must
have exactly the entries that Postgres expects, including those added meanwhile.
"""

import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.bench_ingest import SEED, _note, _sentences
from benchmarks.index import following
from memory_core.artifacts.document import ArtifactType, Document
from memory_core.artifacts.ingest import ingest, ingest_many
from memory_core.index.consistency import compare
from memory_core.index.generation import CollectionName
from memory_core.index.new_generation import rebuild
from memory_core.kernel.errors import MemoryFault
from memory_core.kernel.settings import Settings
from memory_core.log.log_reader import newest
from memory_core.log.projection_wait import wait_until
from memory_core.runtime import Runtime
from stack.connection import connected

ENTRIES = 100_000
# One of ten entries is a note.
NOTES = 10
_PAUSE_SECONDS = 0.05
_CATCH_UP_SECONDS = 300.0
_INSERT = """
INSERT INTO memory (memory_id, type, content, content_hash, confidence)
SELECT 'mem_' || left(md5(n::text), 16), 'fact', 'Fact ' || n || ': ' || line, md5(n::text), 0.9
FROM (SELECT n, (%s::text[])[1 + n %% %s] AS line FROM generate_series(1, %s) AS n) AS made
"""


@dataclass
class Measured:
    entries: int = 0
    filled: float = 0.0
    rebuilt: float = 0.0
    before: list[float] = field(default_factory=list)
    during: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    ingested: int = 0
    wrong: list[str] = field(default_factory=list)


class Bench:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._rng = random.Random(SEED)
        self._lines = list(_sentences())
        self.measured = Measured()

    async def run(self, entries: int) -> Measured:
        measured = self.measured
        await self._store(entries)
        measured.filled = await _seconds(lambda: rebuild(self._runtime))
        for _ in range(100):
            await self._search(measured.before)
        others = [asyncio.create_task(work()) for work in (self._searches, self._ingests)]
        measured.rebuilt = await _seconds(lambda: rebuild(self._runtime))
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._catch_up()
        comparison = await compare(self._runtime)
        measured.wrong, measured.entries = (
            list(comparison.differences()),
            sum(comparison.chroma.values()),
        )
        return measured

    async def _store(self, entries: int) -> None:
        notes = entries // NOTES
        async with self._runtime.database.session() as session:
            await session.connection.execute(
                _INSERT, [self._lines, len(self._lines), entries - notes]
            )
        for start in range(0, notes, 500):
            size = min(500, notes - start)
            await ingest_many(self._runtime, [self._document(start + n) for n in range(size)])

    def _document(self, number: int, source: str = "stored") -> Document:
        text = _note(self._rng, self._lines, 400)
        return Document(ArtifactType.NOTE, source, text, source_id=str(number))

    async def _searches(self) -> None:
        while True:
            await self._search(self.measured.during)
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _search(self, taken: list[float]) -> None:
        """By meaning alone: a search by words would hide a failure of Chroma."""
        [vector] = await self._runtime.embedder.embed([self._rng.choice(self._lines)])
        begun = time.perf_counter()
        for name in (CollectionName.MEMORY, CollectionName.ARTIFACTS):
            try:
                if not await self._runtime.vectors.query(name, vector, limit=5):
                    self.measured.failed.append(f"{name.value}: nothing was found")
            except MemoryFault as fault:
                self.measured.failed.append(f"{fault.message} {fault.details}")
        taken.append(time.perf_counter() - begun)

    async def _ingests(self) -> None:
        while True:
            await ingest(self._runtime, self._document(self.measured.ingested, "new"))
            self.measured.ingested += 1
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _catch_up(self) -> None:
        async with self._runtime.database.session() as session:
            position = await newest(session)
        assert position is not None
        assert await wait_until(self._runtime.database, "index", position, _CATCH_UP_SECONDS)


async def _seconds(work: Callable[[], Awaitable[None]]) -> float:
    begun = time.perf_counter()
    await work()
    return time.perf_counter() - begun


def report(measured: Measured, console: Console) -> None:
    table = Table(title=f"Rebuild of {measured.entries:,} entries")
    for column in ("", "", ""):
        table.add_column(column, justify="right")
    table.add_row("filled, with nothing else going on", f"{measured.filled:.0f} s", "")
    table.add_row("rebuilt, with searches and ingests", f"{measured.rebuilt:.0f} s", "")
    for name, taken in (("before", measured.before), ("meanwhile", measured.during)):
        quantiles = statistics.quantiles(taken, n=20, method="inclusive")
        words = f"p50 {statistics.median(taken) * 1000:.1f} ms, p95 {quantiles[-1] * 1000:.1f} ms"
        table.add_row(f"{len(taken)} searches {name}", words, "")
    failed, wrong = measured.failed, measured.wrong
    table.add_row("searches that failed", str(len(failed)), "ok" if not failed else "OVER")
    table.add_row("documents ingested meanwhile", str(measured.ingested), "")
    table.add_row(
        "entries that are wrong afterwards", str(len(wrong)), "ok" if not wrong else "OVER"
    )
    console.print(table)
    for line in (failed + wrong)[:5]:
        console.print(line)


async def measure(settings: Settings, entries: int) -> Measured:
    async with following(settings) as runtime:
        return await Bench(runtime).run(entries)


def main() -> None:
    given = [word for word in sys.argv[1:] if word.isdigit()]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        settings = Settings(
            _env_file=None,  # type: ignore[call-arg]
            data_dir=Path(folder) / "data",
            embedder="local",
            extractor="rules",
        )
        Path(folder).chmod(0o755)
        with connected(settings) as resolved:
            measured = asyncio.run(measure(resolved, int(given[0]) if given else ENTRIES))
    report(measured, Console(width=100))


if __name__ == "__main__":
    main()
