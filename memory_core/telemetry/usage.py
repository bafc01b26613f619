"""What models were asked for during a call: each question is added to the call at hand."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class Usage:
    tokens: int = 0
    dollars: float = 0.0


_current: ContextVar[Usage | None] = ContextVar("usage", default=None)


@contextmanager
def counting(usage: Usage) -> Iterator[None]:
    token = _current.set(usage)
    try:
        yield
    finally:
        _current.reset(token)


def spent(tokens: int, dollars: float) -> None:
    usage = _current.get()
    if usage is not None:
        usage.tokens += tokens
        usage.dollars += dollars
