"""A span: a piece of work in a trace, with its start, its end and its outcome.

    with span("tool artifact_ingest", attributes={"tool": "artifact_ingest"}) as work:
        ...
        work.fail("NOT_FOUND")

Ids and context always exist: the log of changes, the audit and requests to models carry them. With
OpenTelemetry switched on (`telemetry.otel`), spans are exported as well.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from memory_core.kernel import trace
from memory_core.kernel.trace import SpanContext
from memory_core.log.origin import acting

Attribute = str | int | float | bool


@dataclass(slots=True)
class Span:
    context: SpanContext
    parent_span_id: str | None
    error: str | None = None
    # Attributes that are known only when the work is done.
    attributes: dict[str, Attribute] = field(default_factory=dict)

    def fail(self, code: str) -> None:
        self.error = code


class Tracer(Protocol):
    """Exports spans."""

    def exported(
        self,
        name: str,
        parent: SpanContext | None,
        attributes: Mapping[str, Attribute],
        span_id: str | None,
        begun: datetime | None,
    ) -> AbstractContextManager[Span]: ...


_tracer: Tracer | None = None


def export_by(tracer: Tracer | None) -> None:
    global _tracer
    _tracer = tracer


@contextmanager
def span(
    name: str,
    *,
    parent: SpanContext | None = None,
    attributes: Mapping[str, Attribute] | None = None,
    span_id: str | None = None,
    begun: datetime | None = None,
) -> Iterator[Span]:
    """Without `parent`: a child of the current span, or the first span of a new trace.

    `span_id`: given if other spans already name it as their parent. `begun`: if it began before
    now.
    """
    parent = parent or trace.current()
    if _tracer is None:
        made: AbstractContextManager[Span] = _unexported(parent, span_id)
    else:
        made = _tracer.exported(name, parent, attributes or {}, span_id, begun)
    with (
        made as work,
        trace.within(work.context),
        acting(trace_id=work.context.trace_id, span_id=work.context.span_id),
    ):
        yield work


@contextmanager
def _unexported(parent: SpanContext | None, span_id: str | None) -> Iterator[Span]:
    trace_id = parent.trace_id if parent else trace.new_trace_id()
    context = SpanContext(trace_id, span_id or trace.new_span_id())
    yield Span(context, parent.span_id if parent else None)
