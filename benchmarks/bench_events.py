"""Searching a million events: each kind of search compared with the bare SQL that it consists of.

The data (benchmarks/event_data.py) is generated once per version of the schema, under `.data`, and
reused by later runs. Bare SQL means: exactly the statements that the search executed, with their
parameters, sent again by psycopg alone on one connection.
"""

import asyncio
import json
import logging
import os
import random
import statistics
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from rich.console import Console
from rich.table import Table

from benchmarks.event_data import CASES, Size, fill, fingerprint, person, word
from benchmarks.index import own_generation
from memory_core.events.reextraction import job_status
from memory_core.events.stored_events import get_event
from memory_core.index.generation import CollectionName
from memory_core.index.store import IndexEntry
from memory_core.kernel import principal, queries
from memory_core.kernel.database import Session
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from memory_core.search.event_filters import EventFilters
from memory_core.search.event_search import search_events
from stack.connection import connected, joined_runtime

SIZE = Size(events=1_000_000, revisions=200_000)
# The number of narratives with vectors: enough to see whether a search depends on their number.
WITH_VECTORS = 100_000
_VECTORS_AT_ONCE = 2_000
SEED = 7
SEARCHES = 100
LOOKUPS = 200
WARM_UP = 5
SEARCH_TARGET_MS = 100.0
SEARCH_TARGET_RATIO = 1.5
LOOKUP_TARGET_MS = 10.0
PAGE = 20
_DATA = Path(".data")
# What the generator is: a change of it generates the data again.


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of search, and how to make one."""

    name: str
    make: Callable[[random.Random], tuple[str | None, EventFilters]]


@dataclass(slots=True)
class Times:
    ours: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)
    found: list[int] = field(default_factory=list)


# --- what is searched for --------------------------------------------------------------------


def rare(dice: random.Random) -> str:
    """A number that twenty events have."""
    return f"case{dice.randrange(CASES)}"


def seldom(dice: random.Random) -> str:
    """A word that some hundreds have."""
    return word(dice.randrange(5_000, 20_000))


def common(dice: random.Random) -> str:
    """One of the twenty words that 10 % to 25 % of all events have."""
    return word(dice.randrange(20))


def start_of_range(dice: random.Random) -> datetime:
    return datetime(2016, 1, 1, tzinfo=UTC) + timedelta(days=dice.randrange(3_000))


def within(dice: random.Random, days: int) -> EventFilters:
    start = start_of_range(dice)
    return EventFilters(time_from=start, time_to=start + timedelta(days=days))


def category(dice: random.Random) -> str:
    return dice.choice(("Execution", "Decision", "Commitment", "Change", "QualityRisk"))


def uid(dice: random.Random) -> str:
    return f"uid_{dice.randrange(SIZE.revisions // 5) * 5:016x}"


def several(dice: random.Random, many: int) -> str:
    """Words as they are drawn in texts: some common, most seldom."""
    return " ".join(common(dice) if dice.random() < 0.4 else seldom(dice) for _ in range(many))


def everyday(dice: random.Random, many: int) -> str:
    """Nothing but common words, of the sixty-four that are the most common."""
    return " ".join(word(rank) for rank in dice.sample(range(64), many))


LONGEST = 500  # characters; longer queries are refused

KINDS = [
    Kind("rare: a case number", lambda d: (rare(d), EventFilters())),
    Kind("rare: a seldom word", lambda d: (seldom(d), EventFilters())),
    Kind("rare: in a sentence", lambda d: (f"what about {seldom(d)}?", EventFilters())),
    Kind("common word", lambda d: (common(d), EventFilters())),
    Kind("common and seldom word", lambda d: (f"{common(d)} {seldom(d)}", EventFilters())),
    Kind("two common words", lambda d: (f"{common(d)} {common(d)}", EventFilters())),
    Kind("three common words", lambda d: (everyday(d, 3), EventFilters())),
    Kind("eight words", lambda d: (several(d, 8), EventFilters())),
    Kind("eight common words", lambda d: (everyday(d, 8), EventFilters())),
    Kind("twenty words", lambda d: (several(d, 20), EventFilters())),
    Kind("500 characters", lambda d: (several(d, 80)[:LONGEST], EventFilters())),
    Kind("500 characters, all common", lambda d: (everyday(d, 64)[:LONGEST], EventFilters())),
    Kind("a phrase of common words", lambda d: (f'"{everyday(d, 2)}"', EventFilters())),
    Kind("one common word or another", lambda d: (f"{common(d)} OR {common(d)}", EventFilters())),
    Kind("common, without a word", lambda d: (f"{common(d)} -{common(d)}", EventFilters())),
    Kind("all without a word", lambda d: (f"-{common(d)}", EventFilters())),
    Kind("common, by category", lambda d: (common(d), EventFilters(category=category(d)))),
    Kind(
        "common, by a busy actor",
        lambda d: (common(d), EventFilters(actor=person(d.randrange(10)))),
    ),
    Kind(
        "common, by an actor", lambda d: (common(d), EventFilters(actor=person(d.randrange(5000))))
    ),
    Kind("common, in 90 days", lambda d: (common(d), within(d, 90))),
    Kind("common, in 4 years", lambda d: (common(d), within(d, 1_460))),
    Kind("common, as of a day", lambda d: (common(d), EventFilters(as_of=start_of_range(d)))),
    Kind("seldom, as of a day", lambda d: (seldom(d), EventFilters(as_of=start_of_range(d)))),
    Kind("common, in a document", lambda d: (common(d), EventFilters(artifact_uid=uid(d)))),
    Kind("rare, by category", lambda d: (seldom(d), EventFilters(category=category(d)))),
    Kind("no words, by category", lambda d: (None, EventFilters(category=category(d)))),
    Kind(
        "no words, by a busy actor", lambda d: (None, EventFilters(actor=person(d.randrange(10))))
    ),
    Kind("no words, in 90 days", lambda d: (None, within(d, 90))),
    Kind("no words, in a document", lambda d: (None, EventFilters(artifact_uid=uid(d)))),
]


# --- measuring -------------------------------------------------------------------------------


@contextmanager
def recorded() -> Iterator[list[tuple[bytes, dict[str, Any]]]]:
    """The statements that sessions execute meanwhile."""
    statements: list[tuple[bytes, dict[str, Any]]] = []
    names = ("rows", "row", "maybe", "values")
    originals = {name: getattr(Session, name) for name in names}

    def watch(name: str) -> Callable[..., Awaitable[Any]]:
        async def run(self: Session, *named: Any, **parameters: Any) -> Any:
            # Those that give typed rows are told their type first.
            statements.append((queries.get(named[-1]), parameters))
            return await originals[name](self, *named, **parameters)

        return run

    for name in originals:
        setattr(Session, name, watch(name))
    try:
        yield statements
    finally:
        for name, original in originals.items():
            setattr(Session, name, original)


def replay(connection: psycopg.Connection, statements: list[tuple[bytes, dict[str, Any]]]) -> float:
    began = time.perf_counter()
    for statement, parameters in statements:
        connection.execute(statement, parameters).fetchall()
    return 1000 * (time.perf_counter() - began)


async def measure(
    connection: psycopg.Connection,
    name: str,
    make: Callable[[random.Random], Callable[[], Awaitable[int]]],
) -> Times:
    """`make`: a search of that kind, which tells how much it found."""
    dice, times = random.Random(f"{SEED}{name}"), Times()
    for number in range(WARM_UP + SEARCHES):
        search = make(dice)
        with recorded() as statements:
            found = await search()
        began = time.perf_counter()
        await search()
        ours = 1000 * (time.perf_counter() - began)
        bare = replay(connection, statements)
        if number >= WARM_UP:
            times.ours.append(ours)
            times.bare.append(bare)
            times.found.append(found)
    return times


def searching(
    runtime: Runtime, kind: Kind
) -> Callable[[random.Random], Callable[[], Awaitable[int]]]:
    def make(dice: random.Random) -> Callable[[], Awaitable[int]]:
        query, filters = kind.make(dice)

        async def search() -> int:
            return (await search_events(runtime, query, filters, limit=PAGE)).total

        return search

    return make


async def measure_lookups(
    runtime: Runtime, look_up: Callable[[random.Random], Awaitable[object]]
) -> list[float]:
    dice, times = random.Random(SEED), []
    for number in range(WARM_UP + LOOKUPS):
        began = time.perf_counter()
        await look_up(dice)
        if number >= WARM_UP:
            times.append(1000 * (time.perf_counter() - began))
    return times


def p95(times: list[float]) -> float:
    return statistics.quantiles(times, n=20, method="inclusive")[-1]


# --- the data --------------------------------------------------------------------------------


def data_dir() -> Path:
    return _DATA / f"bench-events-{fingerprint(SIZE)}"


def prepare(settings: Settings, console: Console) -> None:
    marker = settings.data_dir / "filled.json"
    if marker.exists():
        console.print(
            f"Data of an earlier run; it took {json.loads(marker.read_text())} s to make."
        )
        return
    console.print(f"Making {SIZE.events:,} events in {settings.data_dir} …")
    began = time.perf_counter()
    with psycopg.connect(settings.dsn, autocommit=True) as connection:
        fill(connection, SIZE)
    seconds = round(time.perf_counter() - began)
    marker.write_text(json.dumps(seconds))
    console.print(f"Made in {seconds} s.")


async def index_sample(runtime: Runtime, sample: list[dict[str, Any]], console: Console) -> None:
    generation = await own_generation(runtime)
    done = await runtime.vectors.count(CollectionName.EVENTS)
    if done >= len(sample):
        return
    console.print(f"Indexing {len(sample) - done:,} narratives …")
    for start in range(done, len(sample), _VECTORS_AT_ONCE):
        rows = sample[start : start + _VECTORS_AT_ONCE]
        texts = [f"{row['narrative']}\n{row['document_title']}" for row in rows]
        vectors = await runtime.embedder.embed(texts)
        entries = [
            IndexEntry(str(row["event_id"]), vector, "", {})
            for row, vector in zip(rows, vectors, strict=True)
        ]
        await runtime.vectors.upsert(generation.name_in_chroma(CollectionName.EVENTS), entries)


async def sampled(runtime: Runtime) -> list[dict[str, Any]]:
    async with runtime.database.session() as session:
        cursor = await session.connection.execute(
            "SELECT event_id, narrative, document_title, artifact_uid, revision_id, category, "
            "is_latest, extraction_run_id FROM semantic_event TABLESAMPLE SYSTEM (15) "
            "REPEATABLE (1) LIMIT %s",
            [WITH_VECTORS],
        )
        return await cursor.fetchall()


# --- the report ------------------------------------------------------------------------------


def search_row(table: Table, name: str, times: Times) -> None:
    ours, bare = p95(times.ours), p95(times.bare)
    ratio = ours / bare
    met = ours <= SEARCH_TARGET_MS and ratio <= SEARCH_TARGET_RATIO
    table.add_row(
        name,
        f"{int(statistics.median(times.found)):,}",
        f"{statistics.median(times.ours):.1f}",
        f"{ours:.1f}",
        f"{statistics.median(times.bare):.1f}",
        f"{bare:.1f}",
        f"{ratio:.2f}",
        "[green]✓[/]" if met else "[red]✗[/]",
    )


def lookup_row(table: Table, name: str, times: list[float]) -> None:
    verdict = "[green]✓[/]" if p95(times) <= LOOKUP_TARGET_MS else "[red]✗[/]"
    table.add_row(
        name, "1", f"{statistics.median(times):.1f}", f"{p95(times):.1f}", "", "", "", verdict
    )


async def run(settings: Settings, console: Console) -> None:
    runtime = joined_runtime(settings, unasked="a benchmark looks at what is stored")
    await runtime.open()
    sample = await sampled(runtime)
    await index_sample(runtime, sample, console)
    table = Table(
        "event_search, with evidence", "matches", "p50 ms", "p95 ms", "SQL p50", "SQL p95",
        "ratio", "",
    )  # fmt: skip
    # As a user asks: in the application's role, by the rules of visibility.
    asking = principal.LOCAL
    with (
        psycopg.connect(settings.dsn, autocommit=True) as connection,
        principal.asking(asking),
    ):
        connection.execute(queries.get("tune_connection"))
        marks = "{" + ",".join(f'"{mark}"' for mark in asking.marks) + "}"
        identity = {"role": "memory_app", "tenant": str(asking.tenant_id), "user": asking.user}
        connection.execute(queries.get("serve_principal"), {**identity, "marks": marks})
        for kind in KINDS:
            times = await measure(connection, kind.name, searching(runtime, kind))
            search_row(table, kind.name, times)
    table.add_section()

    async def vectors(dice: random.Random) -> object:
        [vector] = await runtime.embedder.embed([common(dice)])
        return await runtime.vectors.query(CollectionName.EVENTS, vector, limit=60)

    def one(dice: random.Random) -> dict[str, Any]:
        return dice.choice(sample)

    lookups: dict[str, Callable[[random.Random], Awaitable[object]]] = {
        "event_get": lambda d: get_event(runtime, one(d)["event_id"]),
        "event_get, with context": lambda d: get_event(runtime, one(d)["event_id"], 200),
        "job_status of a document": lambda d: job_status(
            runtime, artifact_uid=one(d)["artifact_uid"]
        ),
        "job_status by id": lambda d: job_status(
            runtime, job_id=UUID(str(one(d)["extraction_run_id"]))
        ),
        "(embedding and Chroma, part of a search)": vectors,
    }
    for name, look_up in lookups.items():
        lookup_row(table, name, await measure_lookups(runtime, look_up))
    console.print(table)
    console.print(
        f"Targets: event_search p95 ≤ {SEARCH_TARGET_MS:.0f} ms and ≤ {SEARCH_TARGET_RATIO} × the "
        f"bare SQL; event_get and job_status p95 ≤ {LOOKUP_TARGET_MS:.0f} ms. Only "
        f"{len(sample):,} narratives have vectors here. Load: "
        f"{', '.join(f'{load:.1f}' for load in os.getloadavg())} on {os.cpu_count()} cores."
    )
    await runtime.close()


def on_data(run: Callable[[Settings, Console], Coroutine[None, None, None]]) -> None:
    """Over a stack with the data, which is made if there is none yet."""
    logging.disable(logging.INFO)
    console = Console(width=130)
    settings = Settings(  # type: ignore[call-arg]
        _env_file=None, data_dir=data_dir(), embedder="local", extractor="rules"
    )
    with connected(settings) as resolved:
        prepare(resolved, console)
        asyncio.run(run(resolved, console))


def main() -> None:
    on_data(run)


if __name__ == "__main__":
    main()
