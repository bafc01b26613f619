"""Searching text: 200,000 texts, each kind of search compared with the bare SQL of it.

The data is that of `bench_events`: the texts that prove its events. The second table compares the
scores of a search's candidates with the best scores of all passages.
"""

import os
import random
import statistics
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import psycopg
import Stemmer
from rich.console import Console
from rich.table import Table

from benchmarks.bench_events import (
    common,
    everyday,
    measure,
    on_data,
    rare,
    search_row,
    seldom,
    several,
    start_of_range,
    uid,
)
from benchmarks.candidate_scores import candidate_scores
from benchmarks.event_data import word
from benchmarks.index import own_generation
from memory_core.index.generation import CollectionName
from memory_core.index.store import IndexEntry
from memory_core.kernel import queries
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from memory_core.search.passage_filters import Filters
from memory_core.search.passages import hybrid_search
from stack.connection import joined_runtime

WITH_VECTORS = 40_000
_VECTORS_AT_ONCE = 1_000
PAGE = 10
COMMON_WORDS = 64
_STEMMER = Stemmer.Stemmer("english")


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    make: Callable[[random.Random], tuple[str, Filters]]


def days(dice: random.Random, many: int) -> Filters:
    start = start_of_range(dice)
    return Filters(time_from=start, time_to=start.replace(year=start.year + many))


KINDS = [
    Kind("a case number", lambda d: (rare(d), Filters())),
    Kind("a seldom word", lambda d: (seldom(d), Filters())),
    Kind("a common word", lambda d: (common(d), Filters())),
    Kind("two common words", lambda d: (everyday(d, 2), Filters())),
    Kind("eight words", lambda d: (several(d, 8), Filters())),
    Kind("eight common words", lambda d: (everyday(d, 8), Filters())),
    Kind("500 characters", lambda d: (several(d, 80)[:500], Filters())),
    Kind("a phrase", lambda d: (f'"{common(d)} {common(d)}"', Filters())),
    Kind("common, without a word", lambda d: (f"{common(d)} -{common(d)}", Filters())),
    Kind("all without a word", lambda d: (f"-{common(d)}", Filters())),
    Kind("common, of a type", lambda d: (common(d), Filters(artifact_type="transcript"))),
    Kind("common, of a source", lambda d: (common(d), Filters(source_system="drive"))),
    Kind("common, in a year", lambda d: (common(d), days(d, 1))),
    Kind("common, in a document", lambda d: (common(d), Filters(artifact_uid=uid(d)))),
    Kind("seldom, of a type", lambda d: (seldom(d), Filters(artifact_type="note"))),
]


def searching(
    runtime: Runtime, kind: Kind
) -> Callable[[random.Random], Callable[[], Awaitable[int]]]:
    def make(dice: random.Random) -> Callable[[], Awaitable[int]]:
        query, filters = kind.make(dice)

        async def search() -> int:
            found = await hybrid_search(runtime, query, filters, limit=PAGE, include_memory=True)
            return len(found)

        return search

    return make


async def index_texts(runtime: Runtime, console: Console) -> int:
    """The number of vectors."""
    generation = await own_generation(runtime)
    done = await runtime.vectors.count(CollectionName.ARTIFACTS)
    if done:
        return done
    console.print(f"Indexing {WITH_VECTORS:,} texts …")
    async with runtime.database.session() as session:
        cursor = await session.connection.execute(
            "SELECT c.chunk_id, r.is_chunked, left(text_of_chunk(c.text, t.content, c.start_char, "
            "c.end_char), 2000) AS text "
            "FROM artifact_revision r JOIN revision_text t USING (artifact_uid, revision_id) "
            "JOIN revision_chunk c USING (artifact_uid, revision_id) "
            "WHERE r.is_latest ORDER BY hashtext(c.chunk_id) LIMIT %s",
            [WITH_VECTORS],
        )
        rows = await cursor.fetchall()
    for start in range(0, len(rows), _VECTORS_AT_ONCE):
        batch = rows[start : start + _VECTORS_AT_ONCE]
        vectors = await runtime.embedder.embed([row["text"] for row in batch])
        for collection in (CollectionName.ARTIFACTS, CollectionName.CHUNKS):
            entries = [
                IndexEntry(row["chunk_id"], vector, "", {})
                for row, vector in zip(batch, vectors, strict=True)
                if row["is_chunked"] == (collection is CollectionName.CHUNKS)
            ]
            await runtime.vectors.upsert(generation.name_in_chroma(collection), entries)
    return len(rows)


async def run(settings: Settings, console: Console) -> None:
    runtime = joined_runtime(settings, unasked="a benchmark looks at what is stored")
    await runtime.open()
    vectors = await index_texts(runtime, console)
    table = Table("hybrid_search", "hits", "p50 ms", "p95 ms", "SQL p50", "SQL p95", "ratio", "")
    with psycopg.connect(settings.dsn, autocommit=True) as connection:
        connection.execute(queries.get("tune_connection"))
        for kind in KINDS:
            times = await measure(connection, kind.name, searching(runtime, kind))
            search_row(table, kind.name, times)
    console.print(table)
    load = statistics.mean(os.getloadavg()[:2])
    console.print(
        f"✓: p95 ≤ 100 ms and ≤ 1.5 × the bare SQL, as for events. {vectors:,} texts have vectors "
        f"here. Load: {load:.1f} on {os.cpu_count()} cores."
    )
    words = [_STEMMER.stemWord(word(rank)) for rank in range(COMMON_WORDS)]
    console.print(await candidate_scores(runtime, words))
    await runtime.close()


def main() -> None:
    on_data(run)


if __name__ == "__main__":
    main()
