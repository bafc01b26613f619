"""The metrics of /metrics, in the text format of Prometheus.

Postgres is read at most every few seconds, and for at most a twentieth of the time. While Postgres
is away, only the metrics of the process itself are given.
"""

import asyncio
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from memory_core import __version__
from memory_core.kernel import principal
from memory_core.kernel.database import Database
from memory_core.kernel.errors import MemoryFault
from memory_core.kernel.settings import Settings
from memory_core.log.lag import Lag, read_lags
from memory_core.telemetry import call_counters
from memory_core.telemetry.audit import Audit
from memory_core.telemetry.call_counters import BUCKETS, Durations
from memory_core.telemetry.table_counters import TableCounters

CONTENT_TYPE = CONTENT_TYPE_LATEST
PREFIX = "mcp_memory"
_CACHED_SECONDS = 5.0
# The next read waits this many times as long as the last one took.
_SPARING = 20.0


@dataclass(frozen=True, slots=True)
class JobCount:
    status: str
    jobs: int


@dataclass(frozen=True, slots=True)
class OutboxCount:
    """The number of deliveries of one status."""

    status: str
    messages: int
    oldest_seconds: float | None


class MeasuredMemory(Protocol):
    """The memory that is measured: open in this process, or opened for one read."""

    settings: Settings
    audit: Audit

    @property
    def database(self) -> Database: ...

    @property
    def pool_stats(self) -> dict[str, int]: ...

    async def open(self) -> None: ...


class PrometheusMetrics(Collector):
    def __init__(self, runtime: MeasuredMemory, *, known_seconds: float = _CACHED_SECONDS) -> None:
        self._runtime = runtime
        self._known_seconds = known_seconds
        self._counters = TableCounters(runtime.settings.prices)
        self._reading = asyncio.Lock()
        self._next_read = 0.0
        self._is_up = False
        self._jobs: list[JobCount] = []
        self._oldest_job: float | None = None
        self._outbox: list[OutboxCount] = []
        self._lags: list[Lag] = []
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    async def text(self) -> bytes:
        async with self._reading:
            if time.monotonic() >= self._next_read:
                await self._read()
        return generate_latest(self._registry)

    async def _read(self) -> None:
        with principal.system("the figures of the whole installation"):
            await self._read_all()

    async def _read_all(self) -> None:
        begun = time.monotonic()
        try:
            await self._runtime.open()
            async with self._runtime.database.session() as session:
                self._jobs = await session.rows(JobCount, "jobs_by_status")
                self._oldest_job = await session.maybe(float, "oldest_pending_job")
                self._outbox = await session.rows(OutboxCount, "outbox_by_status")
                await self._counters.read(session)
            self._lags = await read_lags(self._runtime.database)
            self._is_up = True
        except MemoryFault:
            self._is_up = False
        took = time.monotonic() - begun
        self._next_read = time.monotonic() + max(self._known_seconds, _SPARING * took)

    def describe(self) -> list[Metric]:
        """Registering the collector must not read anything."""
        return []

    def collect(self) -> Iterator[Metric]:
        yield gauge("info", "The version that serves.", ["version"], {(__version__,): 1})
        yield gauge("postgres_up", "1: Postgres answered.", [], {(): int(self._is_up)})
        yield from self._of_queue()
        yield from self._of_extraction()
        yield from self._of_log()
        yield from self._of_calls()
        yield from self._of_process()

    def _of_queue(self) -> Iterator[Metric]:
        jobs = {(row.status,): row.jobs for row in self._jobs}
        yield gauge("jobs", "Jobs by status; DONE is an estimate.", ["status"], jobs)
        yield gauge(
            "job_oldest_pending_seconds",
            "How long the oldest request waits, without those of backfills.",
            [],
            {(): self._oldest_job or 0.0},
        )
        yield counter(
            "job_transitions",
            "Changes of a job's status.",
            ["from", "to"],
            self._counters.transitions,
        )
        attempts = {
            (): sum(n for (_, to), n in self._counters.transitions.items() if to == "PROCESSING")
        }
        yield counter("job_attempts", "Attempts that began.", [], attempts)
        failures = {(code,): count for code, count in self._counters.failures.items()}
        yield counter("job_failures", "Attempts that failed, by error.", ["code"], failures)

    def _of_extraction(self) -> Iterator[Metric]:
        counters = self._counters
        yield histogram(
            "extraction_seconds",
            "How long revisions took from their text to their events.",
            ["extractor"],
            {(name,): durations for name, durations in counters.extraction_seconds.items()},
        )
        stored = {(name,): count for name, count in counters.events.items()}
        yield counter("events_stored", "Events stored by extractions.", ["extractor"], stored)
        rejected = {(reason,): count for reason, count in counters.rejections.items()}
        yield counter("events_rejected", "Proposed and not stored.", ["reason"], rejected)
        labels = ["kind", "model", "outcome"]
        yield counter("model_calls", "Calls of models.", labels, counters.model_calls)
        yield histogram(
            "model_call_seconds",
            "How long models took to answer.",
            ["kind"],
            {(kind,): durations for kind, durations in counters.call_seconds.items()},
        )
        yield counter("model_tokens", "Tokens of models.", ["model", "type"], counters.tokens)
        dollars = {(model,): cost for model, cost in counters.dollars.items()}
        yield counter("model_cost_dollars", "By MODEL_PRICES.", ["model"], dollars)

    def _of_log(self) -> Iterator[Metric]:
        label = ["projection"]
        lags = {(lag.point.name,): lag for lag in self._lags}
        yield gauge(
            "projection_lag_seconds",
            "Age of the oldest change that a projection has not passed.",
            label,
            {name: lag.seconds for name, lag in lags.items()},
        )
        yield gauge(
            "projection_lag_changes",
            "Changes that it has not passed, counted to 10,000.",
            label,
            {name: lag.changes for name, lag in lags.items()},
        )
        yield gauge(
            "projection_led",
            "1: a worker leads it.",
            label,
            {name: int(lag.is_led) for name, lag in lags.items()},
        )
        yield gauge(
            "dead_letters",
            "Changes set aside, not resolved.",
            label,
            {name: lag.dead_letters for name, lag in lags.items()},
        )
        messages = {(row.status,): row.messages for row in self._outbox}
        yield gauge("outbox_messages", "Deliveries that wait or failed.", ["status"], messages)
        ages = {(row.status,): row.oldest_seconds or 0.0 for row in self._outbox}
        yield gauge("outbox_oldest_seconds", "Age of the oldest of them.", ["status"], ages)

    def _of_calls(self) -> Iterator[Metric]:
        labels = ["kind", "name", "outcome"]
        yield counter("calls", "Calls that this process answered.", labels, call_counters.by_call)
        yield histogram(
            "call_seconds", "How long they took.", ["kind", "name"], call_counters.by_name
        )

    def _of_process(self) -> Iterator[Metric]:
        audit = self._runtime.audit
        yield gauge("audit_waiting", "Calls not yet in the audit.", [], {(): audit.waiting})
        yield counter("audit_written", "Calls in the audit.", [], {(): audit.written})
        yield counter("audit_dropped", "Calls lost to the audit.", [], {(): audit.dropped})
        pool = self._runtime.pool_stats
        for name, help_text in _POOL.items():
            yield gauge(f"pool_{name}", help_text, [], {(): pool.get(name, 0)})


# Metric help texts by the names of the pool's own statistics.
_POOL = {
    "pool_size": "Connections to Postgres of this process.",
    "pool_available": "Of these, those that are free.",
    "requests_waiting": "Queries that wait for a connection.",
    "pool_max": "Connections that it may have.",
}


def gauge(name: str, help_text: str, labels: list[str], values: Mapping[Any, float]) -> Metric:
    family = GaugeMetricFamily(f"{PREFIX}_{name}", help_text, labels=labels)
    for label, value in values.items():
        family.add_metric(label, value)
    return family


def counter(name: str, help_text: str, labels: list[str], values: Any) -> Metric:
    family = CounterMetricFamily(f"{PREFIX}_{name}", help_text, labels=labels)
    for label, value in list(values.items()):
        family.add_metric(label, value)
    return family


def histogram(name: str, help_text: str, labels: list[str], values: dict[Any, Durations]) -> Metric:
    family = HistogramMetricFamily(f"{PREFIX}_{name}", help_text, labels=labels)
    for label, durations in list(values.items()):
        counts, total = [], 0
        for count in durations.counts:
            total += count
            counts.append(total)
        bounds = [*map(str, BUCKETS), "+Inf"]
        family.add_metric(label, list(zip(bounds, counts, strict=True)), durations.total)
    return family
