"""Tenants: organisations whose data is kept apart. Made, listed, suspended and resumed.

What deletes one is in `upkeep/tenant_deletion.py`.
"""

import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from memory_core.kernel.database import Database, Session
from memory_core.kernel.errors import Conflict, InvalidInput, NotFound
from memory_core.kernel.principal import DEFAULT_TENANT
from memory_core.log import origin
from memory_core.log.appending import append
from memory_core.log.change import ChangeType, NewChange, Position, of_tenant

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
# A tenant is found by its name or its id: no name may pass for the id of another tenant.
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
Status = Literal["active", "suspended"]


@dataclass(frozen=True, slots=True)
class Tenant:
    tenant_id: UUID
    name: str
    status: str
    created_at: datetime
    keys: int  # in force, were the tenant active

    def as_json(self) -> dict[str, Any]:
        return {
            "tenant_id": str(self.tenant_id),
            "name": self.name,
            "status": self.status,
            "created_at": self.created_at,
            "keys": self.keys,
        }


@dataclass(frozen=True, slots=True)
class NamedTenant:
    """What is read of a tenant to work in it."""

    tenant_id: UUID
    name: str
    status: str


async def create(database: Database, name: str) -> Tenant:
    if not _NAME.fullmatch(name) or _ID.fullmatch(name):
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


async def everyone(database: Database) -> list[Tenant]:
    async with database.session() as session:
        return await session.rows(Tenant, "list_tenants")


async def suspend(database: Database, name: str) -> Tenant:
    """Its keys and tokens are refused; its data stays. To suspend again changes nothing."""
    return await _set_status(database, name, "suspended", ChangeType.TENANT_SUSPENDED)


async def resume(database: Database, name: str) -> Tenant:
    return await _set_status(database, name, "active", ChangeType.TENANT_RESUMED)


async def find(session: Session, name: str) -> NamedTenant:
    """By name or by id."""
    tenant = await session.row(NamedTenant, "tenant_named", name=name.strip().lower())
    if tenant is None:
        raise NotFound(f"There is no tenant {name[:80]!r}: `mcp-memory tenants list` shows them.")
    return tenant


async def _set_status(database: Database, name: str, status: Status, change: ChangeType) -> Tenant:
    async with database.transaction() as session:
        found = await find(session, name)
        tenant_id = found.tenant_id
        if found.status == "deleting":
            raise Conflict(
                f"The tenant {found.name!r} is being deleted: `mcp-memory tenants delete "
                f"{found.name}` goes on with that."
            )
        if tenant_id == DEFAULT_TENANT and status == "suspended":
            raise InvalidInput(
                "The default tenant cannot be suspended: the command line and stdio work in it. "
                "To refuse a client, revoke its key."
            )
        changed = await session.run("set_tenant_status", tenant_id=tenant_id, status=status)
        tenant = await session.only(Tenant, "tenant_by_id", tenant_id=tenant_id)
        if changed:
            await append_to(session, tenant_id, of_tenant(change, tenant_id))
    return tenant


async def append_to(session: Session, tenant_id: UUID, change: NewChange) -> Position:
    """The change is seen in the tenant that it is about, and in no other."""
    by = replace(origin.current(), tenant_id=tenant_id)
    [position] = await append(session, [change], by=by)
    return position
