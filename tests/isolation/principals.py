"""Who asks in the isolation tests. Names repeat on purpose: two tenants have an alice in sales."""

from dataclasses import dataclass
from uuid import UUID

from memory_core.kernel.principal import Principal

TENANTS = {"default": UUID(int=0), "acme": UUID(int=0xACE), "other": UUID(int=0x07E)}


@dataclass(frozen=True, slots=True)
class Person:
    tenant: str
    user: str
    groups: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.user}@{self.tenant}"

    @property
    def principal(self) -> Principal:
        scopes = frozenset({"read", "write"})
        return Principal(TENANTS[self.tenant], self.user, self.groups, scopes)


ALICE = Person("acme", "alice", frozenset({"sales"}))
BOB = Person("acme", "bob", frozenset({"legal"}))
NAMESAKE = Person("other", "alice", frozenset({"sales"}))
LOCAL = Person("default", "local")
# Those who ask, and those who store only.
ASKING = (ALICE, BOB, NAMESAKE, LOCAL)
CAROL = Person("acme", "carol", frozenset({"sales", "legal"}))
DAN = Person("default", "dan", frozenset({"sales"}))
EVERYONE = (*ASKING, CAROL, DAN)
