"""Who asks: known to the edges, read by whatever checks, counts or records."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from uuid import UUID

DEFAULT_TENANT = UUID(int=0)
SCOPES = frozenset({"read", "write", "admin"})
# By this name Postgres knows the system itself: no user can have it.
SYSTEM_USER = "system"


@dataclass(frozen=True, slots=True)
class Principal:
    tenant_id: UUID = DEFAULT_TENANT
    user: str = "local"
    groups: frozenset[str] = frozenset()
    scopes: frozenset[str] = SCOPES
    # Why this is the system itself, which sees every row; None for everyone else.
    system: str | None = None

    @property
    def marks(self) -> list[str]:
        """What its visibility goes by; the system has none."""
        if self.system is not None:
            return []
        return ["org", f"user:{self.user}", *sorted(f"group:{name}" for name in self.groups)]


# The user of this machine: stdio, commands, and HTTP without authentication.
LOCAL = Principal()
_current: ContextVar[Principal | None] = ContextVar("principal", default=None)


def current() -> Principal:
    return _current.get() or LOCAL


def named() -> Principal | None:
    """None where nothing has said who asks."""
    return _current.get()


@contextmanager
def asking(principal: Principal) -> Iterator[None]:
    """What is done within is asked for by this principal."""
    token = _current.set(principal)
    try:
        yield
    finally:
        _current.reset(token)


@contextmanager
def system(why: str, tenant_id: UUID | None = None) -> Iterator[None]:
    """What is done within sees the rows of all tenants and users. New rows are of the given tenant,
    else of that of the principal who asks."""
    tenant = current().tenant_id if tenant_id is None else tenant_id
    with asking(Principal(tenant_id=tenant, user=SYSTEM_USER, system=why)):
        yield
