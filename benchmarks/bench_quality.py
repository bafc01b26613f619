"""The quality of searches: questions with known answers, compared with plain BM25 in the same run.

    python -m benchmarks quality

Known items: questions about the documents of the demo and, if available, of a sample of public
documents; is the right document the first? Meetings: how much of the turns that answer a question
is within the first characters that are returned? BM25 ranks the same chunks, in Python, without
titles. Intervals are of the mean, by resampling the questions. Sample documents are not part of the
project: without them (SAMPLE_DIR names their folder) only the demo is measured.
"""

import asyncio
import json
import logging
import math
import os
import random
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import Stemmer
from rich.console import Console
from rich.table import Table

from benchmarks.known_items import CORPUS, DEMO
from memory_core.artifacts.document import ArtifactType, Document
from memory_core.artifacts.ingest import ingest_many
from memory_core.index.writer import settle_now
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from memory_core.search.passage_filters import Filters
from memory_core.search.passages import artifact_search, hybrid_search
from stack.connection import connected, joined_runtime

_ROOT = Path(__file__).parent.parent
SAMPLE = Path(os.environ.get("SAMPLE_DIR") or _ROOT.parent / "shared" / "sample")
_BUDGET = 12_000  # characters that are read
_HITS = 20
_RESAMPLED = 2_000
_AT_ONCE = 4
_REVISION = re.compile(r"\.r\d+(?=\.)")
_SOURCE = "quality"
_COMMON_WORDS = """
    a about an and are as at be by did do does for from had has have how i in is it its of
    on or our so that the their they this to was we were what when where which who why will
    with you your
"""
_STOP_WORDS = frozenset(_COMMON_WORDS.split())

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Meeting:
    name: str
    text: str
    questions: list[tuple[str, list[Span]]]  # with the spans that answer


@dataclass(frozen=True, slots=True)
class Chunk:
    source_id: str
    start: int
    end: int
    words: Counter[str]


class Bm25:
    """As it stands in books: k1 = 1.2, b = 0.75, English stems."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = chunks
        self._having = Counter(word for chunk in chunks for word in chunk.words)
        self._average = statistics.mean(chunk.end - chunk.start for chunk in chunks)

    def best(self, query: str, source_id: str | None = None) -> list[Chunk]:
        asked = set(words_of(query))
        chunks = [c for c in self._chunks if source_id is None or c.source_id == source_id]
        scores = [(self._score(asked, chunk), chunk) for chunk in chunks]
        ranked = sorted(scores, key=lambda item: -item[0])
        return [chunk for score, chunk in ranked if score > 0]

    def _score(self, asked: set[str], chunk: Chunk) -> float:
        damping = 1.2 * (0.25 + 0.75 * (chunk.end - chunk.start) / self._average)
        total = 0.0
        for word in asked & chunk.words.keys():
            having, often = self._having[word], chunk.words[word]
            weight = math.log(1 + (len(self._chunks) - having + 0.5) / (having + 0.5))
            total += weight * often * 2.2 / (often + damping)
        return total


_STEMMER = Stemmer.Stemmer("english")


def words_of(text: str) -> list[str]:
    words = re.findall(r"\w+", text.lower())
    stems: list[str] = _STEMMER.stemWords([word for word in words if word not in _STOP_WORDS])
    return stems


# --- the documents ---------------------------------------------------------------------------


def demo_documents() -> Iterator[Document]:
    """The last revision of each."""
    last: dict[str, Path] = {}
    for file in sorted((_ROOT / "demo" / "corpus").iterdir()):
        last[_REVISION.sub("", file.name)] = file
    for name, file in last.items():
        yield document(name, file.read_text(encoding="utf-8"))


def corpus_documents() -> Iterator[Document]:
    for file in sorted((SAMPLE / "corpus").glob("*/docs/*")):
        yield document(file.name, file.read_text(encoding="utf-8"))


def meetings() -> list[Meeting]:
    found = []
    path = SAMPLE / "labels" / "qmsum_train.jsonl"
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        item = json.loads(line)
        found.append(Meeting(item["meeting"], item["text"], list(_questions(item))))
    return found


def _questions(item: dict[str, Any]) -> Iterator[tuple[str, list[Span]]]:
    turns = item["turns"]
    for question in item["queries"]:
        gold = [(turns[a][0], turns[min(b, len(turns) - 1)][1]) for a, b in question["turn_spans"]]
        yield question["query"], gold


def document(source_id: str, content: str) -> Document:
    return Document(
        artifact_type=ArtifactType.DOC,
        source_system=_SOURCE,
        source_id=source_id,
        content=content,
    )


async def fill(runtime: Runtime, documents: Sequence[Document], console: Console) -> None:
    console.print(f"{len(documents)} documents …")
    for start in range(0, len(documents), _AT_ONCE):
        await ingest_many(runtime, documents[start : start + _AT_ONCE])
    async with runtime.database.session() as session:
        cursor = await session.connection.execute("SELECT artifact_uid FROM artifact_revision")
        owners = sorted({row["artifact_uid"] for row in await cursor.fetchall()})
    await settle_now(runtime, owners)


async def chunks_of(runtime: Runtime) -> tuple[list[Chunk], dict[str, str]]:
    """What BM25 goes through; and the uid of each document by its name."""
    async with runtime.database.session() as session:
        cursor = await session.connection.execute(
            "SELECT r.source_id, r.artifact_uid, c.start_char, c.end_char, t.content "
            "FROM artifact_revision r JOIN revision_chunk c USING (artifact_uid, revision_id) "
            "JOIN revision_text t USING (artifact_uid, revision_id) "
            "WHERE r.is_latest AND r.source_system = %s",
            [_SOURCE],
        )
        rows = await cursor.fetchall()
    chunks = [
        Chunk(
            row["source_id"],
            row["start_char"],
            row["end_char"],
            Counter(words_of(row["content"][row["start_char"] : row["end_char"]])),
        )
        for row in rows
    ]
    return chunks, {row["source_id"]: row["artifact_uid"] for row in rows}


# --- the measurements ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Compared:
    name: str
    ours: list[float]
    plain: list[float]


async def known_items(
    runtime: Runtime, plain: Bm25, uids: dict[str, str], questions: dict[str, str], name: str
) -> list[Compared]:
    first: tuple[list[float], list[float]] = ([], [])
    five: tuple[list[float], list[float]] = ([], [])
    for question, file in questions.items():
        hits = await artifact_search(runtime, question, Filters(), limit=5)
        ranked = [hit.artifact_uid for hit in hits]
        plainly = list(dict.fromkeys(uids[chunk.source_id] for chunk in plain.best(question)))
        for number, order in enumerate((ranked, plainly)):
            first[number].append(float(order[:1] == [uids[file]]))
            five[number].append(float(uids[file] in order[:5]))
    return [
        Compared(f"{name}: right document first", *first),
        Compared(f"{name}: in the first five", *five),
    ]


async def in_meetings(
    runtime: Runtime, plain: Bm25, uids: dict[str, str], held: Sequence[Meeting]
) -> Compared:
    ours, plainly = [], []
    for meeting in held:
        filters = Filters(artifact_uid=uids[meeting.name])
        for question, gold in meeting.questions:
            hits = await hybrid_search(
                runtime, question, filters, limit=_HITS, include_memory=False, full_chunks=True
            )
            spans = [(hit.start_char or 0, hit.end_char or 0) for hit in hits]
            ours.append(covered(spans, gold))
            best = plain.best(question, meeting.name)[:_HITS]
            plainly.append(covered([(chunk.start, chunk.end) for chunk in best], gold))
    return Compared(f"meetings: gold turns in {_BUDGET:,} characters", ours, plainly)


def covered(spans: Sequence[Span], gold: Sequence[Span]) -> float:
    """Which share of the gold is in the spans, as far as the budget goes."""
    wanted = {place for start, end in gold for place in range(start, end)}
    got: set[int] = set()
    left = _BUDGET
    for start, end in spans:
        end = min(end, start + left)
        got.update(range(start, end))
        left -= end - start
    return len(got & wanted) / max(len(wanted), 1)


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Of the mean, 95 %."""
    dice = random.Random(1)
    means = sorted(statistics.fmean(dice.choices(values, k=len(values))) for _ in range(_RESAMPLED))
    return means[_RESAMPLED // 40], means[-_RESAMPLED // 40]


def row_of(compared: Compared) -> list[str]:
    difference = [a - b for a, b in zip(compared.ours, compared.plain, strict=True)]
    low, high = interval(difference)
    percent: Callable[[float], str] = lambda value: f"{100 * value:.1f}"  # noqa: E731
    return [
        compared.name,
        str(len(difference)),
        percent(statistics.fmean(compared.ours)),
        percent(statistics.fmean(compared.plain)),
        f"{100 * statistics.fmean(difference):+.1f} ({100 * low:+.1f} … {100 * high:+.1f})",
    ]


async def run(settings: Settings, console: Console) -> None:
    runtime = joined_runtime(settings, unasked="a benchmark looks at what is stored")
    await runtime.open()
    held = meetings()
    documents = [*demo_documents(), *corpus_documents()]
    documents += [document(meeting.name, meeting.text) for meeting in held]
    await fill(runtime, documents, console)
    chunks, uids = await chunks_of(runtime)
    plain = Bm25(chunks)
    table = Table("what", "questions", "ours", "BM25", "difference (95 %)")
    for compared in await known_items(runtime, plain, uids, DEMO, "demo"):
        table.add_row(*row_of(compared))
    here = {question: file for question, file in CORPUS.items() if file in uids}
    if here:
        for compared in await known_items(runtime, plain, uids, here, "corpus"):
            table.add_row(*row_of(compared))
        for compared in await known_items(runtime, plain, uids, DEMO | here, "both"):
            table.add_row(*row_of(compared))
    if held:
        everyone = {question: m.name for m in held for question, _ in m.questions}
        for compared in await known_items(runtime, plain, uids, everyone, "meetings"):
            table.add_row(*row_of(compared))
        table.add_row(*row_of(await in_meetings(runtime, plain, uids, held)))
    else:
        console.print(f"No sample documents in {SAMPLE}: only the demo is measured.")
    console.print(table)
    console.print(f"RANKING={settings.ranking}, {len(chunks):,} chunks of {len(uids)} documents.")
    await runtime.close()


def main() -> None:
    logging.disable(logging.INFO)
    console = Console(width=130)
    mark = sha256("".join(sorted(DEMO | CORPUS)).encode()).hexdigest()[:8]
    settings = Settings(  # type: ignore[call-arg]
        _env_file=None,
        data_dir=Path(".data") / f"bench-quality-{mark}",
        embedder="local",
        extractor="rules",
    )
    with connected(settings) as resolved:
        asyncio.run(run(resolved, console))


if __name__ == "__main__":
    main()
