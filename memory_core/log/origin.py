"""The origin of a change: who caused it, and by what. Edges set it, `append` stores it."""

from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace
from uuid import UUID

from memory_core.kernel.context_variables import bound


@dataclass(frozen=True, slots=True)
class ChangeOrigin:
    actor_id: str | None = None  # who
    source: str | None = None  # which tool, command or run
    tenant_id: UUID | None = None
    trace_id: str | None = None
    span_id: str | None = None
    correlation_id: str | None = None
    causation_id: str | None = None  # the change that caused this one
    user_id: str | None = None

    @property
    def metadata(self) -> dict[str, str]:
        names = ("correlation_id", "causation_id", "user_id", "source")
        return {name: value for name, value in asdict(self).items() if name in names and value}


_UNKNOWN = ChangeOrigin()
_current: ContextVar[ChangeOrigin] = ContextVar("origin", default=_UNKNOWN)


def current() -> ChangeOrigin:
    return _current.get()


def acting(**fields: str | UUID | None) -> AbstractContextManager[None]:
    """Changes made in this block have this origin; fields that are not given keep their values."""
    return bound(_current, replace(_current.get(), **fields))  # type: ignore[arg-type]
