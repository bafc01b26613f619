"""The principal: who makes the current request. Edges set it; checks, counters and records read
it."""

from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from uuid import UUID

from memory_core.kernel.context_variables import bound

DEFAULT_TENANT = UUID(int=0)
SCOPES = frozenset({"read", "write", "admin"})
# Postgres knows the system itself by this name, so no user can have it.
SYSTEM_USER = "system"


@dataclass(frozen=True, slots=True)
class Principal:
    tenant_id: UUID = DEFAULT_TENANT
    user: str = "local"
    groups: frozenset[str] = frozenset()
    scopes: frozenset[str] = SCOPES
    # Why this is the system itself, which sees every row; None for every other principal.
    system: str | None = None

    @property
    def marks(self) -> list[str]:
        """The marks that decide what it sees; the system has none."""
        if self.system is not None:
            return []
        return ["org", f"user:{self.user}", *sorted(f"group:{name}" for name in self.groups)]


# The user of this machine: stdio, commands, and HTTP without authentication.
LOCAL = Principal()
_current: ContextVar[Principal | None] = ContextVar("principal", default=None)


def current() -> Principal:
    return _current.get() or LOCAL


def named() -> Principal | None:
    """The current principal; None outside of a request."""
    return _current.get()


def asking(principal: Principal) -> AbstractContextManager[None]:
    """Run a block as this principal."""
    return bound(_current, principal)


def system(why: str, tenant_id: UUID | None = None) -> AbstractContextManager[None]:
    """Run a block as the system, which sees the rows of all tenants and users. New rows belong to
    the given tenant, or else to that of the current principal."""
    tenant = current().tenant_id if tenant_id is None else tenant_id
    return asking(Principal(tenant_id=tenant, user=SYSTEM_USER, system=why))
