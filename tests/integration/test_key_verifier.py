"""Keys are compared slowly and seldom, and looked up so often that revoking is quick."""

from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from memory_core.access import key_verifier, keys
from memory_core.access.credential import RateLimited
from memory_core.access.key_verifier import COMPARED_SECONDS, WRONG_PER_MINUTE, KeyVerifier
from memory_core.kernel.database import Database
from memory_core.kernel.principal import DEFAULT_TENANT, Principal
from tests.access_server import make_key

HERE = "127.0.0.1"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class CountingHasher:
    """Argon2, and how often it was asked."""

    def __init__(self) -> None:
        self._own = keys.hasher()
        self.verified: list[str] = []

    def hash(self, text: str) -> str:
        return self._own.hash(text)

    def verify(self, hash_: str, text: str) -> bool:
        self.verified.append(hash_)
        return self._own.verify(hash_, text)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def hashing(monkeypatch: pytest.MonkeyPatch) -> CountingHasher:
    counting = CountingHasher()
    monkeypatch.setattr(keys, "hasher", lambda: counting)
    return counting


@pytest.fixture
async def verifier(database: Database, clock: Clock) -> AsyncIterator[KeyVerifier]:
    async def opened() -> Database:
        return database

    verifier = KeyVerifier(opened, clock=clock)
    yield verifier
    await verifier.close()


async def revoke(database: Database, key: str) -> None:
    async with database.transaction() as session:
        await keys.revoke(session, key.rpartition("_")[0])


async def test_it_proves_a_principal(verifier: KeyVerifier, database: Database) -> None:
    key = await make_key(database, user="bob", groups=["b", "a"], scopes=["admin", "read"])
    credential = await verifier.verify(key, HERE)
    assert credential is not None
    assert credential.client == key[:17]
    assert credential.principal == Principal(
        DEFAULT_TENANT, "bob", frozenset({"a", "b"}), frozenset({"read", "admin"})
    )


async def test_a_revoked_key_is_refused_within_a_second(
    verifier: KeyVerifier, database: Database, clock: Clock
) -> None:
    key = await make_key(database)
    assert await verifier.verify(key, HERE) is not None
    await revoke(database, key)
    clock.now += 0.9
    assert await verifier.verify(key, HERE) is None


async def test_calls_in_quick_succession_neither_hash_nor_ask_postgres(
    verifier: KeyVerifier, database: Database, clock: Clock, hashing: CountingHasher
) -> None:
    key = await make_key(database)
    await verifier.verify(key, HERE)
    await revoke(database, key)
    # The row is not read again yet: that is what the short time is for.
    assert await verifier.verify(key, HERE) is not None
    assert len(hashing.verified) == 1


async def test_the_comparison_is_made_again_after_a_while(
    verifier: KeyVerifier, database: Database, clock: Clock, hashing: CountingHasher
) -> None:
    key = await make_key(database)
    for seconds in (0, COMPARED_SECONDS / 2, COMPARED_SECONDS):
        clock.now += seconds
        assert await verifier.verify(key, HERE) is not None
    assert len(hashing.verified) == 2


async def test_an_unknown_key_is_compared_as_a_wrong_one_is(
    verifier: KeyVerifier, database: Database, hashing: CountingHasher
) -> None:
    real = await make_key(database)
    body = real[:18] + keys.new_text()[18:-6]
    wrong, unknown = body + keys.checksum(body), keys.new_text()
    for key in (wrong, unknown, wrong, unknown):
        assert await verifier.verify(key, HERE) is None
    # Once each, with hashes of the same cost.
    assert len(hashing.verified) == 2
    assert len({hash_.rsplit("$", 2)[0] for hash_ in hashing.verified}) == 1


async def test_guessing_ends_and_those_with_keys_go_on(
    verifier: KeyVerifier, database: Database, clock: Clock, hashing: CountingHasher
) -> None:
    key = await make_key(database)
    assert await verifier.verify(key, HERE) is not None
    for _ in range(WRONG_PER_MINUTE):
        assert await verifier.verify(keys.new_text(), HERE) is None
    with pytest.raises(RateLimited):
        await verifier.verify(keys.new_text(), HERE)
    clock.now += 1
    assert await verifier.verify(key, HERE) is not None
    assert await verifier.verify(keys.new_text(), "10.0.0.9") is None
    clock.now += 61
    assert await verifier.verify(keys.new_text(), HERE) is None


async def test_an_expired_key_is_refused(
    verifier: KeyVerifier, database: Database, settings: Any
) -> None:
    key = await make_key(database, days=1)
    with psycopg.connect(settings.dsn, autocommit=True) as sql:
        sql.execute("UPDATE access_key SET expires_at = now() - interval '1 ms'")
    assert await verifier.verify(key, HERE) is None


def test_the_row_of_a_key_may_be_old_for_less_than_a_second() -> None:
    assert key_verifier.FRESH_SECONDS < 1
