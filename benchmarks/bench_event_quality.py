"""The quality of event_search: questions with known answers, compared with plain BM25 in the same
run.

    python -m benchmarks event_quality

The events are those that the rules extract from the documents of the demo and, if available, from a
sample of public documents and meetings (SAMPLE_DIR names their folder). A question counts as
answered if one of the first three events contains the answer, in its narrative or its quotes. BM25
ranks the same events (narrative, quotes and title), in Python. The last line also counts the
passages that event_search adds if there are few events.
"""

import asyncio
import logging
import os
import statistics
from collections import Counter
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.bench_quality import (
    Bm25,
    Chunk,
    Compared,
    corpus_documents,
    demo_documents,
    document,
    fill,
    meetings,
    row_of,
    words_of,
)
from benchmarks.event_questions import ANSWERS
from memory_core.artifacts.document import Document
from memory_core.extraction.engine import open_engine
from memory_core.kernel.settings import Settings
from memory_core.processing.batch import process
from memory_core.queue import jobs
from memory_core.runtime import Runtime
from memory_core.search.event_filters import EventFilters
from memory_core.search.event_passages import additional_passages
from memory_core.search.event_search import search_events
from stack.connection import connected, joined_runtime

_FIRST = 3
_JOBS_AT_ONCE = 50
_TITLE_CHARS = 80


@dataclass(frozen=True, slots=True)
class Told:
    """What an event says, as a reader sees it."""

    event_id: str
    title: str
    text: str

    def answers(self, answer: str) -> bool:
        return plainly(answer) in plainly(self.text)


def plainly(text: str) -> str:
    return " ".join(text.lower().split())


def titled(document: Document) -> Document:
    """With its first line as its title."""
    first = next(line for line in document.content.splitlines() if line.strip(" #=-\t"))
    return replace(document, title=first.strip(" #=-\t")[:_TITLE_CHARS])


async def extract(runtime: Runtime) -> None:
    async with open_engine(runtime.settings, runtime.database) as engine:
        while due := await jobs.claimable(runtime.database, _JOBS_AT_ONCE):
            keys = [row.partition_key for row in due]
            claimed = await jobs.claim(runtime.database, keys, "bench")
            outcomes = await process(runtime, engine, claimed)
            assert not any(outcome.failure for outcome in outcomes), outcomes


async def told(runtime: Runtime) -> dict[str, Told]:
    async with runtime.database.session() as session:
        cursor = await session.connection.execute(
            "SELECT event_id::text, document_title, narrative, quotes "
            "FROM semantic_event WHERE is_latest"
        )
        rows = await cursor.fetchall()
    return {
        row["event_id"]: Told(
            row["event_id"], row["document_title"], f"{row['narrative']}\n{row['quotes']}"
        )
        for row in rows
    }


def chunk_of(event: Told) -> Chunk:
    text = f"{event.title}\n{event.text}"
    return Chunk(event.event_id, 0, len(text), Counter(words_of(text)))


async def answered(
    runtime: Runtime, events: dict[str, Told], plain: Bm25, asked: dict[str, str], console: Console
) -> list[Compared]:
    ours: tuple[list[float], list[float], list[float]] = ([], [], [])
    theirs: tuple[list[float], list[float], list[float]] = ([], [], [])
    empty = 0
    for question, answer in asked.items():
        page = await search_events(runtime, question, EventFilters(), limit=20)
        passages = await additional_passages(runtime, question, EventFilters(), page.answering)
        found = [events[str(row.event_id)] for row in page.events]
        best = [events[chunk.source_id] for chunk in plain.best(question)[:20]]
        for number, depth in enumerate((1, _FIRST)):
            ours[number].append(float(any(e.answers(answer) for e in found[:depth])))
            theirs[number].append(float(any(e.answers(answer) for e in best[:depth])))
        read = any(plainly(answer) in plainly(passage.text) for passage in passages)
        ours[2].append(max(ours[1][-1], float(read)))
        theirs[2].append(theirs[1][-1])
        empty += not found and not passages
        if not ours[1][-1] and "SHOW_MISSES" in os.environ:
            told_by = sum(event.answers(answer) for event in events.values())
            console.print(f"missed: {question} ({told_by} tell it, of {page.total} found)")
    console.print(f"{empty} of {len(asked)} questions came back empty.")
    names = ("answer first", f"in the first {_FIRST}", f"in the first {_FIRST} or the passages")
    return [
        Compared(name, mine, other) for name, mine, other in zip(names, ours, theirs, strict=True)
    ]


async def run(settings: Settings, console: Console) -> None:
    runtime = joined_runtime(settings, unasked="a benchmark looks at what is stored")
    await runtime.open()
    documents = [*demo_documents(), *corpus_documents()]
    documents += [document(meeting.name, meeting.text) for meeting in meetings()]
    await fill(runtime, [titled(item) for item in documents], console)
    await extract(runtime)
    await fill(runtime, [], console)
    events = await told(runtime)
    here = " ".join(plainly(item.content) for item in documents)
    asked = {question: answer for question, answer in ANSWERS.items() if plainly(answer) in here}
    plain = Bm25([chunk_of(event) for event in events.values()])
    table = Table("event_search", "questions", "ours", "BM25", "difference (95 %)")
    for compared in await answered(runtime, events, plain, asked, console):
        table.add_row(*row_of(compared))
    console.print(table)
    told_at_all = statistics.fmean(
        any(event.answers(answer) for event in events.values()) for answer in asked.values()
    )
    console.print(
        f"RANKING={settings.ranking}, EMBEDDER={settings.embedder}, {len(events):,} events; "
        f"{100 * told_at_all:.0f} of 100 answers are told by some event."
    )
    await runtime.close()


def main() -> None:
    logging.disable(logging.INFO)
    console = Console(width=130)
    chosen = os.environ.get("EMBEDDER", "local")
    mark = sha256(chosen.encode()).hexdigest()[:8]
    settings = Settings(  # type: ignore[call-arg]
        _env_file=None,
        data_dir=Path(".data") / f"bench-event-quality-{mark}",
        embedder=chosen,
        extractor="rules",
    )
    with connected(settings) as resolved:
        asyncio.run(run(resolved, console))


if __name__ == "__main__":
    main()
