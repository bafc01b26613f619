"""The calls of a job, on the books as soon as their answers are kept.

A run may be killed at any moment: what it paid for must count against budgets all the same.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from memory_core.kernel.database import Session


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One request to a model, whatever came of it."""

    kind: str  # extract | merge
    model: str
    outcome: str  # ok | refusal | truncated | invalid_json | an error code
    latency_ms: float
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    counted_tokens: int = 0  # of its messages, by our own count


@dataclass(slots=True, eq=False)
class Ledger:
    """The calls made for one request of a job, and which of them are still to be written down."""

    job_id: UUID
    generation: int
    calls: list[ModelCall] = field(default_factory=list)
    unwritten: list[ModelCall] = field(default_factory=list)
    # Events that may be the same as others, of which too many were found to ask about all: these
    # are told as often as they were found.
    unasked_merges: int = 0

    def __call__(self, call: ModelCall) -> None:
        self.calls.append(call)
        self.unwritten.append(call)


Entries = Sequence[tuple[Ledger, ModelCall]]


@contextmanager
def taken(ledgers: Iterable[Ledger]) -> Iterator[Entries]:
    """What is still to be written, handed to this caller alone; put back if writing fails."""
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
    """As the queries take them."""
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
    }
