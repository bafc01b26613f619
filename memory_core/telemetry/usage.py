"""Usage of models during a call: each model question is added to the current call."""

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
