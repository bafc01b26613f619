"""The actions of `mcp-memory keys …`."""

import sys
from datetime import UTC, datetime

from mcp_server.cli import terminal_tables
from mcp_server.cli.safe_text import as_json as json_text
from mcp_server.cli.safe_text import shown
from mcp_server.cli.session import OpenMemory, with_operator, with_transaction
from mcp_server.cli.terminal_tables import Column
from memory_core.access import keys
from memory_core.access.keys import AccessKey, NewKey
from memory_core.kernel.settings import comma_separated


def create(
    tenant: str, user: str, *, groups: str, scopes: str, expires: int | None, as_json: bool
) -> None:
    async def work(memory: OpenMemory) -> tuple[NewKey, str]:
        async with memory.runtime.database.transaction() as session:
            made = await keys.create(
                session,
                tenant=tenant,
                user=user,
                groups=comma_separated(groups),
                scopes=comma_separated(scopes),
                days=expires,
            )
        return made, memory.runtime.settings.auth

    made, auth = with_operator(work)
    if as_json:
        print(json_text({**made.key.as_json(), "key": made.text}))
        return
    print(f"The key {made.key.prefix} is made, shown this once:\n\n  {made.text}\n")
    print("A client sends it as the header `Authorization: Bearer KEY`.")
    if auth != "keys":
        print(f"Note: AUTH={auth} is set here, and asks for no key.", file=sys.stderr)


def list_(tenant: str | None, *, as_json: bool) -> None:
    listed = with_transaction(lambda session: keys.list_keys(session, tenant))
    if as_json:
        print(json_text({"keys": [one.as_json() for one in listed]}))
        return
    if not listed:
        print("There are none: `mcp-memory keys create --tenant default --user ME` makes one.")
        return
    names = ("prefix", "tenant", "user", "groups", "scopes", "state", "last used")
    terminal_tables.show(
        [Column(name) for name in names],
        (
            [
                one.prefix,
                shown(one.tenant),
                shown(one.user),
                shown(", ".join(one.groups)),
                ", ".join(one.scopes),
                _state(one),
                f"{one.last_used_at:%Y-%m-%d %H:%M}" if one.last_used_at else "never",
            ]
            for one in listed
        ),
    )


def revoke(prefix: str, *, as_json: bool) -> None:
    revoked = with_transaction(lambda session: keys.revoke(session, prefix))
    if as_json:
        print(json_text(revoked.as_json()))
        return
    print(f"The key {revoked.prefix} of {shown(revoked.user)} is revoked.")


def _state(key: AccessKey) -> str:
    if key.revoked_at is not None:
        return f"revoked {key.revoked_at:%Y-%m-%d}"
    if key.expires_at is None:
        return "in force"
    word = "expired" if key.expires_at <= datetime.now(UTC) else "until"
    return f"{word} {key.expires_at:%Y-%m-%d}"
