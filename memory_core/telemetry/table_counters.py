"""Counters over append-only tables: each read adds the rows that came since the last one.

Counters begin at zero with the process, which Prometheus recognises as a restart. Extraction runs
in short-lived processes, so its figures are read from Postgres.
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from memory_core.kernel.database import Session
from memory_core.kernel.prices import Price
from memory_core.telemetry.call_counters import Durations

# Younger rows wait for the next read: a row with a lower number may still be uncommitted.
DELAY_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Positions:
    """Where a process that has just started begins to count."""

    job_event: int
    model_call: int
    extraction: datetime


@dataclass(frozen=True, slots=True)
class TransitionCount:
    prev_status: str
    next_status: str
    error: str
    transitions: int
    position: int


@dataclass(frozen=True, slots=True)
class ModelCallCount:
    """Calls of one model, of one kind and outcome."""

    kind: str
    model: str
    outcome: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    position: int
    latencies: list[float]


@dataclass(frozen=True, slots=True)
class ExtractionFigures:
    extractor: str
    finished_at: datetime
    seconds: float
    events: int
    rejections: list[str]


@dataclass(slots=True)
class TableCounters:
    prices: dict[str, Price]
    # By (from, to) of a job's status, and by the error code of an attempt.
    transitions: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    # By (kind, model, outcome).
    model_calls: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    # By (model, prompt | completion | cached).
    tokens: Counter[tuple[str, str]] = field(default_factory=Counter)
    dollars: dict[str, float] = field(default_factory=dict)
    call_seconds: dict[str, Durations] = field(default_factory=dict)
    # By extractor.
    extraction_seconds: dict[str, Durations] = field(default_factory=dict)
    events: Counter[str] = field(default_factory=Counter)
    rejections: Counter[str] = field(default_factory=Counter)
    _last_transition: int | None = None
    _last_call: int = 0
    _last_extraction: datetime | None = None

    async def read(self, session: Session, *, delay: float = DELAY_SECONDS) -> None:
        if self._last_transition is None:
            start = await session.only(Positions, "telemetry_positions")
            self._last_transition, self._last_call = start.job_event, start.model_call
            self._last_extraction = start.extraction
            return
        await self._add_transitions(session, delay)
        await self._add_calls(session, delay)
        await self._add_extractions(session, delay)

    async def _add_transitions(self, session: Session, delay: float) -> None:
        for row in await session.rows(
            TransitionCount, "job_transitions_since", after=self._last_transition, delay=delay
        ):
            self.transitions[row.prev_status, row.next_status] += row.transitions
            if row.prev_status == "PROCESSING" and row.error:
                self.failures[row.error] += row.transitions
            self._last_transition = max(self._last_transition or 0, row.position)

    async def _add_calls(self, session: Session, delay: float) -> None:
        last = self._last_call
        for row in await session.rows(ModelCallCount, "model_calls_since", after=last, delay=delay):
            model = row.model
            self.model_calls[row.kind, model, row.outcome] += row.calls
            self.tokens[model, "prompt"] += row.prompt_tokens
            self.tokens[model, "completion"] += row.completion_tokens
            self.tokens[model, "cached"] += row.cached_tokens
            if (price := self.prices.get(model)) is not None:
                cost = price.of(row.prompt_tokens, row.completion_tokens)
                self.dollars[model] = self.dollars.get(model, 0.0) + cost
            durations = self.call_seconds.setdefault(row.kind, Durations())
            for seconds in row.latencies:
                durations.add(seconds)
            self._last_call = max(self._last_call, row.position)

    async def _add_extractions(self, session: Session, delay: float) -> None:
        for row in await session.rows(
            ExtractionFigures, "extractions_since", after=self._last_extraction, delay=delay
        ):
            durations = self.extraction_seconds.setdefault(row.extractor, Durations())
            durations.add(row.seconds)
            self.events[row.extractor] += row.events
            self.rejections.update(row.rejections)
            self._last_extraction = row.finished_at
