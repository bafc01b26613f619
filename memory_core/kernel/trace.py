"""Which trace and span the work at hand belongs to: W3C Trace Context, whatever collects it."""

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(?:-.*)?")
_NO_TRACE, _NO_SPAN = "0" * 32, "0" * 16


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
    """What tells another server which trace a request belongs to."""
    span = _current.get()
    return {} if span is None else {"traceparent": span.traceparent}


def parse(traceparent: str) -> SpanContext | None:
    """None for what is no valid traceparent."""
    found = _TRACEPARENT.fullmatch(traceparent)
    if found is None or found[1] == _NO_TRACE or found[2] == _NO_SPAN:
        return None
    return SpanContext(found[1], found[2])


def new_trace_id() -> str:
    return secrets.token_hex(16)


def new_span_id() -> str:
    return secrets.token_hex(8)


@contextmanager
def within(span: SpanContext | None) -> Iterator[None]:
    token = _current.set(span)
    try:
        yield
    finally:
        _current.reset(token)
