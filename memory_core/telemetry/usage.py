"""Usage of models during a call: each model question is added to the current call."""

from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass

from memory_core.kernel.context_variables import bound


@dataclass(slots=True)
class Usage:
    tokens: int = 0
    dollars: float = 0.0


_current: ContextVar[Usage | None] = ContextVar("usage", default=None)


def counting(usage: Usage) -> AbstractContextManager[None]:
    return bound(_current, usage)


def spent(tokens: int, dollars: float) -> None:
    usage = _current.get()
    if usage is not None:
        usage.tokens += tokens
        usage.dollars += dollars
