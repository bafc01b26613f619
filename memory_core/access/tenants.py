"""Tenants: organisations whose data is separate. Created, listed, suspended and resumed.

Deleting a tenant is in `upkeep/tenant_deletion.py`.
"""

import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from memory_core.kernel.database import Database, Session, columns
from memory_core.kernel.errors import Conflict, InvalidInput, NotFound
from memory_core.kernel.ids import is_uuid
from memory_core.kernel.principal import DEFAULT_TENANT
from memory_core.log import origin
from memory_core.log.change import ChangeType, NewChange, Position, of_tenant
from memory_core.log.log_writer import append

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
Status = Literal["active", "suspended"]


@dataclass(frozen=True, slots=True)
class Tenant:
    tenant_id: UUID
    name: str
    status: str
    created_at: datetime
    keys: int  # valid keys, if the tenant is active

    def as_json(self) -> dict[str, Any]:
        return columns(self) | {"tenant_id": str(self.tenant_id)}


@dataclass(frozen=True, slots=True)
class NamedTenant:
    """The columns of a tenant that work in it needs."""

    tenant_id: UUID
    name: str
    status: str


async def create(database: Database, name: str) -> Tenant:
    # Tenants are looked up by name or id, so no name may look like an id.
    if not _NAME.fullmatch(name) or is_uuid(name):
        raise InvalidInput(
            "The name of a tenant has 1 to 63 characters, each of them a-z, 0-9 or a hyphen. The "
            "first is no hyphen, and the whole does not look like an id (a UUID)."
        )
    async with database.transaction() as session:
        tenant = await session.row(Tenant, "add_tenant", name=name)
        if tenant is None:
            raise Conflict(f"There is a tenant {name!r} already: choose another name.")
        created = of_tenant(ChangeType.TENANT_CREATED, tenant.tenant_id)
        await append_to(session, tenant.tenant_id, created)
    return tenant


async def list_tenants(database: Database) -> list[Tenant]:
    async with database.session() as session:
        return await session.rows(Tenant, "list_tenants", tenant_id=None)


async def suspend(database: Database, name: str) -> Tenant:
    """Refuse its keys and tokens; its data stays. Suspending a suspended tenant changes nothing."""
    return await _set_status(database, name, "suspended", ChangeType.TENANT_SUSPENDED)


async def resume(database: Database, name: str) -> Tenant:
    return await _set_status(database, name, "active", ChangeType.TENANT_RESUMED)


async def find(session: Session, name: str) -> NamedTenant:
    """Look a tenant up by name or id."""
    tenant = await session.row(NamedTenant, "tenant_named", name=name.strip().lower())
    if tenant is None:
        raise NotFound(f"There is no tenant {name[:80]!r}: `mcp-memory tenants list` shows them.")
    return tenant


async def _set_status(database: Database, name: str, status: Status, change: ChangeType) -> Tenant:
    async with database.transaction() as session:
        named = await find(session, name)
        tenant_id = named.tenant_id
        if named.status == "deleting":
            raise Conflict(
                f"The tenant {named.name!r} is being deleted: `mcp-memory tenants delete "
                f"{named.name}` continues the deletion."
            )
        if tenant_id == DEFAULT_TENANT and status == "suspended":
            raise InvalidInput(
                "The default tenant cannot be suspended: the command line and stdio work in it. "
                "To refuse a client, revoke its key."
            )
        changed = await session.run("set_tenant_status", tenant_id=tenant_id, status=status)
        tenant = await session.only(Tenant, "list_tenants", tenant_id=tenant_id)
        if changed:
            await append_to(session, tenant_id, of_tenant(change, tenant_id))
    return tenant


async def append_to(session: Session, tenant_id: UUID, change: NewChange) -> Position:
    """Append a change that only the tenant itself sees."""
    by = replace(origin.current(), tenant_id=tenant_id)
    [position] = await append(session, [change], by=by)
    return position
