"""The spans of an extraction: job → run → chunk → call, in the trace of the requesting call.

All attempts, in any process, share one span of the job. Its id is computed from the job's id, so
every attempt knows it. The attempt that ends the job exports it.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from memory_core.extraction.ledger import asking_about
from memory_core.kernel.database import Database
from memory_core.kernel.trace import SpanContext
from memory_core.queue.jobs import Job
from memory_core.telemetry import span_export
from memory_core.telemetry.spans import Attribute, Span, span


def of_run(job: Job) -> AbstractContextManager[Span]:
    """The span of one attempt, in the trace of the job's request."""
    parent = SpanContext(job.trace_id, _span_id(job)) if job.trace_id else None
    attributes: dict[str, Attribute] = {
        "memory.job_id": str(job.job_id),
        "memory.artifact_uid": job.artifact_uid,
        "memory.revision_id": job.revision_id,
        "memory.attempt": job.attempts,
        "dagster.run_id": job.run_id,
    }
    return span("run", parent=parent, attributes=attributes)


@contextmanager
def of_chunk(index: int) -> Iterator[None]:
    with (
        asking_about(index),
        span(f"chunk {index}", attributes={"memory.chunk": index}),
    ):
        yield


@dataclass(frozen=True, slots=True)
class RequestSpan:
    """The span of the call that requested a job; None where it is no longer known."""

    trace_id: str
    span_id: str | None


async def export_jobs(database: Database, ended: Sequence[tuple[Job, str | None]]) -> None:
    """Export the spans of ended jobs, from their requests until now, each with its error."""
    traced = [(job, error) for job, error in ended if job.trace_id]
    if not span_export.is_on() or not traced:
        return
    async with database.session() as session:
        rows = await session.rows(
            RequestSpan, "spans_that_asked", trace_ids=list({job.trace_id for job, _ in traced})
        )
    asked: dict[str | None, str | None] = {row.trace_id: row.span_id for row in rows}
    for job, error in traced:
        _export(job, error, asked.get(job.trace_id))


def _export(job: Job, error: str | None, asked_by: str | None) -> None:
    assert job.trace_id is not None
    parent = SpanContext(job.trace_id, asked_by) if asked_by else None
    attributes: dict[str, Attribute] = {
        "memory.job_id": str(job.job_id),
        "memory.generation": job.generation,
    }
    with span(
        "job", parent=parent, attributes=attributes, span_id=_span_id(job), begun=job.requested_at
    ) as work:
        if error is not None:
            work.fail(error)


def _span_id(job: Job) -> str:
    """The span id of a job, the same in every process."""
    return hashlib.sha256(f"{job.job_id}:{job.generation}".encode()).hexdigest()[:16]
