"""The figures of the pipeline that an operator watches over time."""

from dataclasses import dataclass

from memory_core.kernel.database import Database, columns
from memory_core.kernel.prices import Price
from memory_core.log.lag import read_lags


@dataclass(frozen=True, slots=True)
class PipelineMetrics:
    """Figures of the last 24 hours, and of the queue now. None: there is no data."""

    revisions_per_day: int
    events_per_day: int
    calls_per_day: int
    tokens_per_day: int
    failure_rate: float  # the share of ended revisions that FAILED
    call_failure_rate: float
    p95_seconds_to_events: float | None  # from ingest to events, first extractions only
    p95_call_seconds: float | None
    cost_per_day: float | None  # set if every model in use has a price
    pending: int
    failed: int
    oldest_pending_seconds: float
    log_lag_changes: int  # of the projection that is furthest behind
    log_lag_seconds: float
    dead_letters: int


@dataclass(frozen=True, slots=True)
class _Work:
    revisions_per_day: int
    events_per_day: int
    p95_seconds_to_events: float | None
    failure_rate: float


@dataclass(frozen=True, slots=True)
class _Calls:
    calls_per_day: int
    tokens_per_day: int
    call_failure_rate: float
    p95_call_seconds: float | None


@dataclass(frozen=True, slots=True)
class _Queue:
    pending: int
    failed: int
    oldest_pending_seconds: float


@dataclass(frozen=True, slots=True)
class _Spent:
    model: str
    prompt_tokens: int
    completion_tokens: int


async def read_metrics(database: Database, prices: dict[str, Price]) -> PipelineMetrics:
    async with database.session() as session:
        work = await session.only(_Work, "metrics_of_work")
        calls = await session.only(_Calls, "metrics_of_calls")
        spent = await session.rows(_Spent, "tokens_by_model")
        queue = await session.only(_Queue, "metrics_of_queue")
    priced = [row for row in spent if row.model in prices]
    costs = (prices[row.model].of(row.prompt_tokens, row.completion_tokens) for row in priced)
    # If a model in use has no price, the sum would be too low, so none is given.
    lags = await read_lags(database)
    cost = round(sum(costs, 0.0), 4) if prices and len(priced) == len(spent) else None
    return PipelineMetrics(
        **columns(work),
        **columns(calls),
        **columns(queue),
        cost_per_day=cost,
        log_lag_changes=max((lag.changes for lag in lags), default=0),
        log_lag_seconds=round(max((lag.seconds for lag in lags), default=0.0), 3),
        dead_letters=sum(lag.dead_letters for lag in lags),
    )


async def oldest_pending_seconds(database: Database) -> float:
    """How long the document that has waited longest for its events has waited."""
    async with database.session() as session:
        queue = await session.only(_Queue, "metrics_of_queue")
    return queue.oldest_pending_seconds


async def any_document_is_done(database: Database) -> bool:
    async with database.session() as session:
        return await session.value(bool, "any_job_done")
