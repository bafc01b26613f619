"""Importing 1,000 small notes, compared with embedding and storing their text in bulk directly.

    python -m benchmarks import

The floor is the same embeddings in one call, the vectors in one upsert to Chroma, and the same rows
in one Postgres transaction: no files, no comparison, no batches. Both are measured in turns, each
time over notes with new content. "Again" is measured twice: by default, when unchanged notes are
not read; and with `--reread`, when all are read and hashed. Memory is the peak of this process
during an import: ten times the notes may not take noticeably more.
"""

import asyncio
import random
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.bench_ingest import SEED, _note, _sentences
from benchmarks.index import own_generation
from memory_core.artifacts import ingest
from memory_core.artifacts.document import ArtifactType, Document
from memory_core.artifacts.idempotency import IngestRequest
from memory_core.artifacts.revision import Revision, RevisionDraft, cut
from memory_core.importing import safe_files
from memory_core.importing.given_paths import admit
from memory_core.importing.import_run import Import, Options, survey
from memory_core.importing.roots import Registry
from memory_core.index.generation import CollectionName
from memory_core.index.store import IndexEntry
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from stack.connection import connected, joined_runtime

NOTES = 1_000
NOTE_CHARS = 1_000
ROUNDS = 5
LARGE = 10_000
BAR = 1.5
AGAIN_BAR = 20.0
# The cache entry of each file takes some memory; keeping its text and vectors would take more.
MEMORY_BAR = 1.15


@dataclass
class Timings:
    first: list[float] = field(default_factory=list)
    floor: list[float] = field(default_factory=list)
    again: list[float] = field(default_factory=list)
    reread: list[float] = field(default_factory=list)
    peaks: dict[int, float] = field(default_factory=dict)


class Bench:
    def __init__(self, runtime: Runtime, folder: Path) -> None:
        self._runtime, self._folder = runtime, folder
        self._rng = random.Random(SEED)
        self._sentences = list(_sentences())

    async def run(self) -> Timings:
        timings = Timings()
        await self.import_folder(self.notes("warm-up", 50))
        await self.floor(50)
        rounds = [self.notes(f"round-{number}", NOTES) for number in range(ROUNDS)]
        # Files that were written within the last minute are always read again.
        await asyncio.sleep(safe_files._SETTLED_NS / 1e9)
        for notes in rounds:
            timings.floor.append(await self.floor(NOTES))
            timings.first.append(await self.import_folder(notes))
            timings.again.append(await self.import_folder(notes))
            timings.reread.append(await self.import_folder(notes, reread=True))
        for size in (NOTES, LARGE):
            notes = self.notes(f"memory-{size}", size)
            timings.peaks[size] = await self._peak(notes)
        return timings

    def notes(self, name: str, number: int) -> Path:
        folder = self._folder / name
        for index in range(number):
            inner = folder / f"{index % 20:02d}"
            inner.mkdir(parents=True, exist_ok=True)
            text = _note(self._rng, self._sentences, NOTE_CHARS)
            (inner / f"{index:05d}.md").write_text(text, encoding="utf-8")
        return folder

    async def import_folder(self, folder: Path, **options: bool) -> float:
        begun = time.perf_counter()
        registry = Registry(self._runtime.settings.data_dir)
        places = await admit(self._runtime, registry, [folder])
        surveyed = survey(places, registry, self._runtime.settings.data_dir)
        report = await Import(self._runtime, Options(**options), asyncio.Event()).run(surveyed)
        assert not report.failed, report.failed[:3]
        return time.perf_counter() - begun

    async def floor(self, number: int) -> float:
        """Embed, one upsert, one transaction. Generating and cutting the texts does not count."""
        drafts = []
        for index in range(number):
            text = _note(self._rng, self._sentences, NOTE_CHARS)
            name = f"{self._rng.random()} {index}"
            document = Document(ArtifactType.NOTE, "floor", text, source_id=name, title=name)
            revision = Revision.of(document)
            drafts.append(RevisionDraft(revision, await cut(revision, self._runtime.settings)))
        begun = time.perf_counter()
        texts = [draft.pieces[0].chunk.text for draft in drafts]
        vectors = await self._runtime.embedder.embed(texts)
        entries = [
            IndexEntry(draft.revision.artifact_id, vector, draft.pieces[0].content_hash, {})
            for draft, vector in zip(drafts, vectors, strict=True)
        ]
        generation = await own_generation(self._runtime)
        await self._runtime.vectors.upsert(
            generation.name_in_chroma(CollectionName.ARTIFACTS), entries
        )
        async with self._runtime.database.transaction() as session:
            columns = IngestRequest().columns(self._runtime.settings)
            await ingest._insert(session, drafts, columns, superseded=set())
        return time.perf_counter() - begun

    async def _peak(self, folder: Path) -> float:
        """The peak memory of this process during an import, in megabytes."""
        process = psutil.Process()
        peak = process.memory_info().rss
        importing = asyncio.create_task(self.import_folder(folder))
        while not importing.done():
            await asyncio.wait([importing], timeout=0.02)
            peak = max(peak, process.memory_info().rss)
        await importing
        return peak / 1e6


def report(timings: Timings, console: Console) -> None:
    first, floor = statistics.median(timings.first), statistics.median(timings.floor)
    again = statistics.median(timings.again)
    ratio = statistics.median(
        mine / direct for mine, direct in zip(timings.first, timings.floor, strict=True)
    )
    table = Table(title=f"{NOTES:,} notes of {NOTE_CHARS:,} characters, medians of {ROUNDS} rounds")
    for column in ("", "seconds", "ratio", "bar", ""):
        table.add_column(column, justify="right")
    table.add_row("embedded and stored in bulk", f"{floor:.2f}", "", "", "")
    table.add_row(
        "imported", f"{first:.2f}", f"{ratio:.2f} ×", f"≤ {BAR}", "ok" if ratio <= BAR else "OVER"
    )
    faster = first / again
    table.add_row(
        "imported again, unchanged", f"{again:.3f}", f"{faster:.0f} × faster",
        f"≥ {AGAIN_BAR:.0f}", "ok" if faster >= AGAIN_BAR else "UNDER",
    )  # fmt: skip
    reread = statistics.median(timings.reread)
    table.add_row("the same, every note read", f"{reread:.3f}", f"{first / reread:.0f} × faster")
    console.print(table)
    memory = Table(title="Memory while importing")
    for column in ("", "megabytes", "ratio", "bar", ""):
        memory.add_column(column, justify="right")
    memory.add_row(f"{NOTES:,} notes", f"{timings.peaks[NOTES]:.0f}", "", "", "")
    growth = timings.peaks[LARGE] / timings.peaks[NOTES]
    memory.add_row(
        f"{LARGE:,} notes", f"{timings.peaks[LARGE]:.0f}", f"{growth:.2f} ×",
        f"≤ {MEMORY_BAR}", "ok" if growth <= MEMORY_BAR else "OVER",
    )  # fmt: skip
    console.print(memory)


async def measure(settings: Settings, folder: Path) -> Timings:
    runtime = joined_runtime(settings, unasked="a benchmark looks at what is stored")
    await runtime.open()
    try:
        return await Bench(runtime, folder).run()
    finally:
        await runtime.close()


def main() -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        settings = Settings(
            _env_file=None,  # type: ignore[call-arg]
            data_dir=Path(folder) / "data",
            embedder="local",
            extractor="rules",
        )
        Path(folder).chmod(0o755)
        with connected(settings) as resolved:
            timings = asyncio.run(measure(resolved, Path(folder)))
    report(timings, Console(width=100))


if __name__ == "__main__":
    main()
