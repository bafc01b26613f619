"""What Dagster, Postgres and our own code add to the time and the price of model calls.

    python -m benchmarks.bench_extraction

Side by side, for the same documents: the ideal (calls × latency / concurrency), `memory_core`
called directly, and the whole path through sensor and run. The model is the scripted provider, in a
separate process.
"""

import asyncio
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psycopg
from pydantic import SecretStr
from rich.console import Console
from rich.table import Table

from benchmarks.bench_alignment import CORPUS, documents
from memory_core.artifacts.document import ArtifactType, Document
from memory_core.artifacts.ingest import ingest
from memory_core.extraction.engine import open_engine
from memory_core.kernel.settings import Settings
from memory_core.processing.batch import JobOutcome, process
from memory_core.queue import jobs
from memory_core.runtime import Runtime
from memory_core.text.tokens import count_tokens
from stack.connection import joined_runtime
from stack.ports import free_port
from stack.process import running_stack
from tests.scripted_provider import ScriptedProvider

SEED = 20240611
CONCURRENCY = 64
LATENCY_SECONDS = 0.5
LONG_DOCUMENTS, SHORT_DOCUMENTS = 100, 200
SENTENCES_PER_CHUNK = 13
MAX_CHUNKS = 8
PATIENCE_SECONDS = 300.0
_POLL_SECONDS = 0.02

DIRECT_BAR, DAGSTER_BAR, NO_LATENCY_BAR = 1.25, 1.5, 2.5
CALLS_BAR, TOKENS_BAR = 1.1, 1.25

_LETTERS = "etaoinshrdlucmfwypvbgk"


# --- documents ---------------------------------------------------------------------------------


def long_documents() -> list[str]:
    """One to eight chunks each."""
    rng = random.Random(SEED)
    words = _vocabulary(rng)
    return [
        _document(rng, words, SENTENCES_PER_CHUNK * rng.randint(1, MAX_CHUNKS))
        for _ in range(LONG_DOCUMENTS)
    ]


def short_documents() -> list[str]:
    rng = random.Random(SEED)
    words = _vocabulary(rng)
    return [_document(rng, words, rng.randint(5, 15)) for _ in range(SHORT_DOCUMENTS)]


def _vocabulary(rng: random.Random) -> list[str]:
    return ["".join(rng.choices(_LETTERS, k=rng.randint(3, 10))) for _ in range(2000)]


def _document(rng: random.Random, words: list[str], sentences: int) -> str:
    return "\n".join(_sentence(rng, words, number) for number in range(sentences))


def _sentence(rng: random.Random, words: list[str], number: int) -> str:
    said = " ".join(rng.sample(words, rng.randint(8, 16)))
    return f"We decided on {said}." if number % 6 == 0 else f"The {said} stood there."


# --- the parts ---------------------------------------------------------------------------------


@contextmanager
def provider(port: int, latency: float) -> Iterator[None]:
    command = [sys.executable, "-m", "tests.scripted_provider", f"--port={port}"]
    process_ = subprocess.Popen([*command, f"--latency={latency}"], stdout=subprocess.PIPE)
    assert process_.stdout is not None
    process_.stdout.readline()
    try:
        yield
    finally:
        process_.terminate()
        process_.wait()


def provider_figures(port: int) -> dict[str, int]:
    answer = httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False)
    figures: dict[str, int] = answer.json()
    return figures


def settings_for(data_dir: Path, base_url: str) -> Settings:
    return Settings(
        _env_file=None,  # type: ignore[call-arg]
        extractor="openai",
        embedder="local",
        openai_api_key=SecretStr("sk-bench"),
        openai_base_url=base_url,
        extract_concurrency=CONCURRENCY,
        data_dir=data_dir,
        log_level="WARNING",
    )


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Runtime]:
    """On the stack of the data dir; without one, Postgres and Chroma alone are started."""
    runtime = joined_runtime(settings, unasked="a benchmark looks at what is stored")
    await runtime.open()
    try:
        yield runtime
    finally:
        await runtime.close()


async def remember(runtime: Runtime, texts: Sequence[str], label: str) -> list[str]:
    """Ingest; returns the partition keys."""
    for number, text in enumerate(texts):
        document = Document(
            artifact_type=ArtifactType.NOTE,
            source_system="bench",
            source_id=f"{label}-{number}",
            title=f"{label} {number}",
            content=text,
        )
        await ingest(runtime, document)
    async with runtime.database.session() as session:
        cursor = await session.connection.execute(
            "SELECT partition_key FROM artifact_revision WHERE source_id LIKE %s", [f"{label}-%"]
        )
        return [row["partition_key"] for row in await cursor.fetchall()]


# --- the two ways ------------------------------------------------------------------------------


async def directly(runtime: Runtime, keys: Sequence[str]) -> tuple[float, list[JobOutcome]]:
    """Claim and process in this process; the seconds it took."""
    async with open_engine(runtime.settings, runtime.database) as engine:
        begun = time.perf_counter()
        claimed = await jobs.claim(runtime.database, keys, "bench")
        outcomes = await process(runtime, engine, claimed)
        seconds = time.perf_counter() - begun
    assert len(claimed) == len(keys)
    assert all(outcome.extraction for outcome in outcomes), "some failed"
    return seconds, outcomes


@dataclass(frozen=True)
class ThroughDagster:
    start: float  # from the first job visible to the first claim: tick, queue, process
    work: float  # from there to the last DONE

    @property
    def total(self) -> float:
        return self.start + self.work


class Queue:
    """Jobs that cannot be claimed before all of them are queued."""

    def __init__(self, dsn: str) -> None:
        self._connection = psycopg.connect(dsn, autocommit=True)
        self._connection.execute(
            """CREATE FUNCTION not_yet() RETURNS trigger LANGUAGE plpgsql AS
               $$ BEGIN NEW.next_run_at := 'infinity'; RETURN NEW; END $$"""
        )
        self._connection.execute(
            "CREATE TRIGGER not_yet BEFORE INSERT ON event_jobs "
            "FOR EACH ROW EXECUTE FUNCTION not_yet()"
        )

    def through_dagster(self) -> ThroughDagster:
        """Make all waiting jobs due at once, and measure how long they take."""
        visible = time.time()
        self._connection.execute(
            "UPDATE event_jobs SET next_run_at = now() WHERE next_run_at = 'infinity'"
        )
        claimed = 0.0
        while time.time() < visible + PATIENCE_SECONDS:
            states = self._states()
            if not claimed and states.get("PROCESSING"):
                claimed = time.time()
            if set(states) == {"DONE"}:
                return ThroughDagster(claimed - visible, self._last_done() - claimed)
            time.sleep(_POLL_SECONDS)
        raise TimeoutError(f"not done within {PATIENCE_SECONDS:g} s: {self._states()}")

    def _states(self) -> dict[str, int]:
        rows = self._connection.execute("SELECT status, count(*) FROM event_jobs GROUP BY status")
        return dict(rows.fetchall())

    def _last_done(self) -> float:
        row = self._connection.execute(
            "SELECT extract(epoch FROM max(updated_at)) FROM event_jobs"
        ).fetchone()
        assert row is not None
        return float(row[0])


# --- the figures -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Speed:
    calls: int
    peak: int
    direct: float
    dagster: ThroughDagster

    @property
    def ideal(self) -> float:
        return self.calls * LATENCY_SECONDS / CONCURRENCY


def measure_speed(texts: Sequence[str], latency: float) -> Speed:
    port = free_port()
    base_url = f"http://127.0.0.1:{port}/v1"
    with tempfile.TemporaryDirectory() as folder, provider(port, latency):
        settings = settings_for(Path(folder), base_url)

        async def direct() -> float:
            async with opened(settings) as runtime:
                keys = await remember(runtime, texts, "direct")
                seconds, _ = await directly(runtime, keys)
                return seconds

        seconds = asyncio.run(direct())
        figures = provider_figures(port)

    with tempfile.TemporaryDirectory() as folder, provider(port, latency):
        settings = settings_for(Path(folder), base_url)
        variables = {
            name: value
            for name, value in settings.environment().items()
            if name.lower() in settings.model_fields_set
        }
        with running_stack(Path(folder), variables) as (_, state):
            assert state.postgres_dsn is not None
            queue = Queue(state.postgres_dsn)

            async def prepare() -> None:
                async with opened(settings) as runtime:
                    await remember(runtime, texts, "dagster")

            asyncio.run(prepare())
            dagster = queue.through_dagster()
        peak = provider_figures(port)["peak_in_flight"]
    return Speed(figures["calls"], min(peak, figures["peak_in_flight"]), seconds, dagster)


@dataclass(frozen=True)
class Price:
    documents: int
    chunk_calls: int
    all_calls: int
    prompt_tokens: int
    floor_tokens: int  # the text once, and a system prompt per call


def measure_price(texts: Sequence[str]) -> Price:
    with tempfile.TemporaryDirectory() as folder, ScriptedProvider() as scripted:

        async def run() -> int:
            async with opened(settings_for(Path(folder), scripted.base_url)) as runtime:
                keys = await remember(runtime, texts, "price")
                _, outcomes = await directly(runtime, keys)
                return sum(len(o.extraction.chunks) for o in outcomes if o.extraction)

        chunks = asyncio.run(run())
    messages = [[m["content"] for m in call.body["messages"]] for call in scripted.chats]
    return Price(
        documents=len(texts),
        chunk_calls=chunks,
        all_calls=len(messages),
        prompt_tokens=sum(count_tokens(text) for said in messages for text in said),
        floor_tokens=sum(map(count_tokens, texts))
        + sum(count_tokens(system) for system, *_ in messages),
    )


class Report:
    """One row per figure, each next to its bar."""

    def __init__(self) -> None:
        self.table = Table("figure", "measured", "ratio", "bar", "")

    def row(self, name: str, measured: str, ratio: float | None = None, bar: float = 0.0) -> None:
        if ratio is None:
            self.table.add_row(name, measured, "", "", "")
            return
        verdict = "[green]✓[/]" if ratio <= bar else "[red]✗[/]"
        self.table.add_row(name, measured, f"{ratio:.2f} ×", f"≤ {bar:g} ×", verdict)


def report_latency(report: Report, speed: Speed) -> None:
    ideal, dagster = speed.ideal, speed.dagster
    report.row(f"(a) ideal: {speed.calls} calls × 0.5 s / {CONCURRENCY}", f"{ideal:.2f} s")
    report.row(
        "(b) memory_core directly", f"{speed.direct:.2f} s", speed.direct / ideal, DIRECT_BAR
    )
    report.row(
        "(c) sensor and run, after the start",
        f"{dagster.work:.2f} s",
        dagster.work / ideal,
        DAGSTER_BAR,
    )
    report.row("    fixed run start (tick, queue, process)", f"{dagster.start:.2f} s")
    report.row("    peak calls in flight", str(speed.peak), CONCURRENCY / speed.peak, 1.0)
    report.table.add_section()


def report_no_latency(report: Report, speed: Speed) -> None:
    dagster = speed.dagster
    report.row(f"(b) directly, {SHORT_DOCUMENTS} short documents", f"{speed.direct:.2f} s")
    report.row(
        "(c) sensor and run, after the start",
        f"{dagster.work:.2f} s",
        dagster.work / speed.direct,
        NO_LATENCY_BAR,
    )
    report.row(
        "(c) with the fixed run start",
        f"{dagster.total:.2f} s",
        dagster.total / speed.direct,
        NO_LATENCY_BAR,
    )
    report.table.add_section()


def report_price(report: Report, price: Price) -> None:
    report.row(
        f"calls for {price.chunk_calls} chunks of {price.documents} documents",
        str(price.all_calls),
        price.all_calls / price.chunk_calls,
        CALLS_BAR,
    )
    report.row(
        "prompt tokens / (text once + a system prompt per call)",
        f"{price.prompt_tokens:,}",
        price.prompt_tokens / price.floor_tokens,
        TOKENS_BAR,
    )


def main() -> None:
    console, report = Console(width=110), Report()
    report_latency(report, measure_speed(long_documents(), LATENCY_SECONDS))
    report_no_latency(report, measure_speed(short_documents(), 0.0))
    report_price(report, measure_price(documents() if CORPUS.is_dir() else long_documents()))
    console.print(report.table)


if __name__ == "__main__":
    main()
