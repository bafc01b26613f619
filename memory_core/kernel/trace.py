"""The trace and span of the current work: W3C Trace Context, whatever collects it."""

import secrets
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass

from memory_core.kernel.context_variables import bound


@dataclass(frozen=True, slots=True)
class SpanContext:
    trace_id: str
    span_id: str

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-01"


_current: ContextVar[SpanContext | None] = ContextVar("span", default=None)


def current() -> SpanContext | None:
    return _current.get()


def headers() -> dict[str, str]:
    """Headers that tell another server which trace a request belongs to."""
    span = _current.get()
    return {} if span is None else {"traceparent": span.traceparent}


def new_trace_id() -> str:
    return secrets.token_hex(16)


def new_span_id() -> str:
    return secrets.token_hex(8)


def within(span: SpanContext | None) -> AbstractContextManager[None]:
    return bound(_current, span)
