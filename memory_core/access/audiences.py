"""Audiences: sets of users and groups of one tenant. A row's audience decides who sees it."""

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from memory_core.kernel.database import Session
from memory_core.kernel.principal import Principal


@dataclass(frozen=True, slots=True)
class Audience:
    audience_id: int
    tenant_id: UUID
    members: list[str]  # users and groups, as marks of principals

    def has(self, who: Principal) -> bool:
        return who.tenant_id == self.tenant_id and not set(self.members).isdisjoint(who.marks)


async def audiences_by_id(session: Session, ids: Collection[int]) -> dict[int, Audience]:
    """Needs a session of the system."""
    audiences = await session.rows(Audience, "audiences_by_id", ids=sorted(ids))
    return {one.audience_id: one for one in audiences}
