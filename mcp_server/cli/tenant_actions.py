"""What `mcp-memory tenants …` does."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from mcp_server.cli import tables
from mcp_server.cli.safe_text import as_json as json_text
from mcp_server.cli.session import Memory, with_operator
from mcp_server.cli.tables import Column
from memory_core.access import tenants
from memory_core.access.tenants import Tenant
from memory_core.kernel.database import Database

T = TypeVar("T")


def create(name: str, *, as_json: bool) -> None:
    made = _with_database(lambda database: tenants.create(database, name))
    _tell(
        made,
        f"The tenant {made.name} is made. Its first key: "
        f"`mcp-memory keys create --tenant {made.name} --user ME`.",
        as_json=as_json,
    )


def list_(*, as_json: bool) -> None:
    found = _with_database(tenants.everyone)
    if as_json:
        print(json_text({"tenants": [one.as_json() for one in found]}))
        return
    tables.show(
        [Column(name) for name in ("name", "status", "keys", "created", "id")],
        (
            [one.name, one.status, str(one.keys), f"{one.created_at:%Y-%m-%d}", str(one.tenant_id)]
            for one in found
        ),
    )


def suspend(name: str, *, as_json: bool) -> None:
    found = _with_database(lambda database: tenants.suspend(database, name))
    _tell(found, f"The tenant {found.name} is suspended. Its data stays.", as_json=as_json)


def resume(name: str, *, as_json: bool) -> None:
    found = _with_database(lambda database: tenants.resume(database, name))
    _tell(found, f"The tenant {found.name} is active.", as_json=as_json)


def _tell(tenant: Tenant, text: str, *, as_json: bool) -> None:
    print(json_text(tenant.as_json()) if as_json else text)


def _with_database(work: Callable[[Database], Awaitable[T]]) -> T:
    async def run(memory: Memory) -> T:
        return await work(memory.runtime.database)

    return with_operator(run)
