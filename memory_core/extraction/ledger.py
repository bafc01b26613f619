"""The ledger: the model calls of a job, recorded as soon as their answers are stored.

A run may be killed at any moment, and the calls that it paid for must still count against budgets.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from memory_core.kernel import trace
from memory_core.kernel.context_variables import bound
from memory_core.kernel.database import Session
from memory_core.kernel.trace import SpanContext


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One request to a model, whatever its outcome."""

    kind: str  # extract | merge
    model: str
    outcome: str  # ok | refusal | truncated | invalid_json | an error code
    latency_ms: float
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    counted_tokens: int = 0  # tokens of its messages, by our own count
    # The chunk that the call asks about; None: events of several chunks.
    chunk_index: int | None = field(default_factory=lambda: _chunk.get())
    span: SpanContext | None = field(default_factory=trace.current)


_chunk: ContextVar[int | None] = ContextVar("chunk", default=None)


def asking_about(chunk_index: int) -> AbstractContextManager[None]:
    """Calls made in this block are about this chunk."""
    return bound(_chunk, chunk_index)


@dataclass(slots=True, eq=False)
class Ledger:
    """The calls made for one request of a job, and which of them are not stored yet."""

    job_id: UUID
    generation: int
    calls: list[ModelCall] = field(default_factory=list)
    unwritten: list[ModelCall] = field(default_factory=list)
    # Events that may repeat others but were beyond the limit on merge questions. They stay
    # separate.
    unasked_merges: int = 0
    run_id: str | None = None
    attempt: int | None = None

    def __call__(self, call: ModelCall) -> None:
        self.calls.append(call)
        self.unwritten.append(call)


Entries = Sequence[tuple[Ledger, ModelCall]]


@contextmanager
def taken(ledgers: Iterable[Ledger]) -> Iterator[Entries]:
    """Hand the unstored calls to this caller alone; put them back if storing fails."""
    entries = []
    for ledger in dict.fromkeys(ledgers):
        entries += [(ledger, call) for call in ledger.unwritten]
        ledger.unwritten = []
    try:
        yield entries
    except BaseException:
        for ledger, call in reversed(entries):
            ledger.unwritten.insert(0, call)
        raise


async def write(session: Session, entries: Entries) -> None:
    if entries:
        await session.run("record_calls", **columns(entries))


def columns(entries: Entries) -> dict[str, list[Any]]:
    """The entries as columns, for the queries."""
    calls = [call for _, call in entries]
    return {
        "job_ids": [ledger.job_id for ledger, _ in entries],
        "generations": [ledger.generation for ledger, _ in entries],
        "kinds": [call.kind for call in calls],
        "call_models": [call.model for call in calls],
        "outcomes": [call.outcome for call in calls],
        "prompt_tokens": [call.prompt_tokens for call in calls],
        "completion_tokens": [call.completion_tokens for call in calls],
        "cached_tokens": [call.cached_tokens for call in calls],
        "latencies": [call.latency_ms for call in calls],
        "counted_tokens": [call.counted_tokens for call in calls],
        "run_ids": [ledger.run_id for ledger, _ in entries],
        "attempts": [ledger.attempt for ledger, _ in entries],
        "chunks": [call.chunk_index for call in calls],
        "trace_ids": [call.span.trace_id if call.span else None for call in calls],
        "span_ids": [call.span.span_id if call.span else None for call in calls],
    }
