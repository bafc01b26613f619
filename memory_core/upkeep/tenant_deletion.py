"""Deleting a tenant with all its data.

First its keys are revoked and the tenant is marked, so that no new data arrives. Then its rows are
deleted in batches, each in its own transaction, so that no other tenant waits for long. An
interrupted deletion continues when it is requested again. The tenant's own row goes last, with the
change in the log that the index follows.
"""

from collections.abc import Callable
from dataclasses import dataclass

from memory_core.access import keys, tenants
from memory_core.access.tenants import NamedTenant
from memory_core.artifacts.deletion import delete_uid
from memory_core.kernel import principal
from memory_core.kernel.database import Database, Session
from memory_core.kernel.errors import InvalidInput, NotFound
from memory_core.kernel.orchestrator import Orchestrator
from memory_core.kernel.principal import DEFAULT_TENANT
from memory_core.log.change import ChangeType, Position, of_tenant
from memory_core.log.origin import acting

_DOCUMENTS_AT_ONCE = 100
_ROWS_AT_ONCE = 5_000
_WHY = "a tenant is deleted"
Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class TenantRows:
    documents: int
    revisions: int
    events: int
    memories: int
    conversations: int
    jobs: int
    webhooks: int
    keys: int


async def preview(database: Database, name: str) -> tuple[NamedTenant, TenantRows]:
    """The rows that a deletion would remove; nothing is changed."""
    with principal.system(_WHY):
        async with database.session() as session:
            tenant = await _deletable_tenant(session, name)
            counts = await session.only(
                TenantRows, "count_rows_of_tenant", tenant_id=tenant.tenant_id
            )
    return tenant, counts


async def delete(
    database: Database, orchestrator: Orchestrator, name: str, *, progress: Progress | None = None
) -> Position:
    """Delete the tenant; returns the position of the deletion in the log. `progress` is called with
    the number of deleted documents."""
    with principal.system(_WHY):
        async with database.transaction() as session:
            tenant = await _deletable_tenant(session, name)
            await _close(session, tenant)
        with (
            principal.system(_WHY, tenant.tenant_id),
            acting(source="tenants delete", tenant_id=tenant.tenant_id),
        ):
            await _delete_documents(database, orchestrator, tenant, progress)
            await _delete_rows(database, tenant)
            await _forget_actors(database, tenant)
            return await _remove(database, tenant)


async def _deletable_tenant(session: Session, name: str) -> NamedTenant:
    tenant = await tenants.find(session, name)
    if tenant.tenant_id == DEFAULT_TENANT:
        raise InvalidInput(
            "The default tenant cannot be deleted: the command line and stdio work in it. To "
            "delete all there is, delete the data dir."
        )
    return tenant


async def _close(session: Session, tenant: NamedTenant) -> None:
    """Revoke its keys and mark the tenant, so that no new data arrives."""
    await session.run("begin_to_delete_tenant", tenant_id=tenant.tenant_id)
    for prefix in await session.values(str, "keys_in_force", tenant_id=tenant.tenant_id):
        await keys.revoke(session, prefix)


async def _delete_documents(
    database: Database, orchestrator: Orchestrator, tenant: NamedTenant, progress: Progress | None
) -> None:
    """Delete documents one by one: the records that Dagster and the audit have of each go in the
    same transaction."""
    gone = 0
    while True:
        async with database.session() as session:
            uids = await session.values(
                str,
                "documents_of_tenant",
                tenant_id=tenant.tenant_id,
                limit=_DOCUMENTS_AT_ONCE,
            )
        if not uids:
            return
        for uid in uids:
            try:
                await delete_uid(database, orchestrator, uid, ChangeType.ARTIFACT_DELETED)
            except NotFound:
                continue  # retention has deleted it meanwhile
            gone += 1
            if progress is not None:
                progress(gone)


async def _delete_rows(database: Database, tenant: NamedTenant) -> None:
    """Repeat until all tables are empty: another session that counts words, or a call that began
    earlier, may write once more."""
    async with database.session() as session:
        names = await session.values(str, "tables_of_tenants")
        while sum([await _empty(session, name, tenant) for name in names]):
            pass


async def _empty(session: Session, name: str, tenant: NamedTenant) -> int:
    gone, some = 0, {"tenant_id": tenant.tenant_id, "limit": _ROWS_AT_ONCE}
    while batch := await session.value(int, "forget_rows_of_tenant", name=name, **some):
        gone += batch
    return gone


async def _forget_actors(database: Database, tenant: NamedTenant) -> None:
    while True:
        async with database.transaction() as session:
            await session.value(str, "let_names_go", tenant_id=tenant.tenant_id)
            if not await session.run(
                "forget_actors_of_tenant", tenant_id=tenant.tenant_id, limit=_ROWS_AT_ONCE
            ):
                return


async def _remove(database: Database, tenant: NamedTenant) -> Position:
    async with database.transaction() as session:
        deleted = of_tenant(ChangeType.TENANT_DELETED, tenant.tenant_id)
        position = await tenants.append_to(session, tenant.tenant_id, deleted)
        await session.run("remove_tenant", tenant_id=tenant.tenant_id)
    return position
