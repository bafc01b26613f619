"""Who asks: known to the edges, read by whatever checks, counts or records."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from uuid import UUID

DEFAULT_TENANT = UUID(int=0)
SCOPES = frozenset({"read", "write", "admin"})


@dataclass(frozen=True, slots=True)
class Principal:
    tenant_id: UUID = DEFAULT_TENANT
    user: str = "local"
    groups: frozenset[str] = frozenset()
    scopes: frozenset[str] = SCOPES


# The user of this machine: stdio, commands, and HTTP without authentication.
LOCAL = Principal()
_current: ContextVar[Principal] = ContextVar("principal", default=LOCAL)


def current() -> Principal:
    return _current.get()


@contextmanager
def asking(principal: Principal) -> Iterator[None]:
    """What is done within is asked for by this principal."""
    token = _current.set(principal)
    try:
        yield
    finally:
        _current.reset(token)
