"""Who asks is known to what is done for them, and to nothing else."""

import asyncio
from uuid import uuid4

from memory_core.kernel.principal import LOCAL, Principal, asking, current


def test_without_authentication_the_local_user_asks_and_may_do_everything() -> None:
    assert current() == LOCAL
    assert LOCAL.scopes == {"read", "write", "admin"}
    assert LOCAL.tenant_id.int == 0


async def test_calls_at_the_same_time_each_have_their_own_principal() -> None:
    seen = {}

    async def call(name: str) -> None:
        with asking(Principal(tenant_id=uuid4(), user=name)):
            await asyncio.sleep(0)
            seen[name] = current().user

    await asyncio.gather(call("alice"), call("bob"))
    assert seen == {"alice": "alice", "bob": "bob"}
    assert current() == LOCAL
