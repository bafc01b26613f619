"""The actions of `mcp-memory tenants …`."""

from dataclasses import asdict

import typer

from mcp_server.cli import terminal_tables
from mcp_server.cli.safe_text import as_json as json_text
from mcp_server.cli.session import OpenMemory, with_operator
from mcp_server.cli.terminal_tables import Column
from memory_core.access import tenants
from memory_core.access.tenants import Tenant
from memory_core.upkeep import tenant_deletion
from memory_core.upkeep.tenant_deletion import TenantRows


def create(name: str, *, as_json: bool) -> None:
    made = with_operator(lambda memory: tenants.create(memory.runtime.database, name))
    _print_result(
        made,
        f"The tenant {made.name} is made. Its first key: "
        f"`mcp-memory keys create --tenant {made.name} --user ME`.",
        as_json=as_json,
    )


def list_(*, as_json: bool) -> None:
    listed = with_operator(lambda memory: tenants.list_tenants(memory.runtime.database))
    if as_json:
        print(json_text({"tenants": [one.as_json() for one in listed]}))
        return
    terminal_tables.show(
        [Column(name) for name in ("name", "status", "keys", "created", "id")],
        (
            [one.name, one.status, str(one.keys), f"{one.created_at:%Y-%m-%d}", str(one.tenant_id)]
            for one in listed
        ),
    )


def suspend(name: str, *, as_json: bool) -> None:
    tenant = with_operator(lambda memory: tenants.suspend(memory.runtime.database, name))
    _print_result(
        tenant, f"The tenant {tenant.name} is suspended. Its data stays.", as_json=as_json
    )


def resume(name: str, *, as_json: bool) -> None:
    tenant = with_operator(lambda memory: tenants.resume(memory.runtime.database, name))
    _print_result(tenant, f"The tenant {tenant.name} is active.", as_json=as_json)


def delete(name: str, *, dry_run: bool, yes: bool, as_json: bool) -> None:
    tenant, counts = with_operator(
        lambda memory: tenant_deletion.preview(memory.runtime.database, name)
    )
    summary = {"tenant": tenant.name, "dry_run": dry_run, **asdict(counts)}
    if dry_run:
        print(
            json_text(summary)
            if as_json
            else f"{_listed(counts)} would be deleted; nothing was changed."
        )
        return
    if not yes:
        typer.confirm(
            f"Delete the tenant {tenant.name} with {_listed(counts)}? This cannot be undone.",
            abort=True,
            err=True,
        )

    async def work(memory: OpenMemory) -> bool:
        runtime = memory.runtime
        position = await tenant_deletion.delete(runtime.database, runtime.orchestrator, name)
        return await runtime.indexed(position)

    indexed = with_operator(work)
    if as_json:
        print(json_text({**summary, "indexed": indexed}))
        return
    print(f"The tenant {tenant.name} is deleted, with {_listed(counts)}.")
    if not indexed:
        print("The worker will delete its vectors.")


def _listed(counts: TenantRows) -> str:
    return ", ".join(f"{number:,} {name}" for name, number in asdict(counts).items())


def _print_result(tenant: Tenant, text: str, *, as_json: bool) -> None:
    print(json_text(tenant.as_json()) if as_json else text)
