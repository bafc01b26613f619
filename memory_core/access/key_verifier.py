"""Verifying keys: the hash of a key is computed once in a while, its row is read twice a second.

Every process refuses a revoked or expired key, or a key of a suspended tenant, within half a
second, even without a listening connection. Checking an unknown key costs the same work as checking
a wrong one, so neither the answer nor its time tells them apart.
"""

import asyncio
import hashlib
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from memory_core.access import keys
from memory_core.access.bounded import BoundedDict
from memory_core.access.credential import Credential, RateLimited
from memory_core.kernel.database import Database
from memory_core.kernel.principal import Principal

# The maximum age of a key's row when a call is admitted.
FRESH_SECONDS = 0.5
# How long the result of a comparison is cached.
COMPARED_SECONDS = 300.0
# Limits on comparisons that wait for a thread, and on wrong keys per address and minute.
_MAX_WAITING = 32
WRONG_PER_MINUTE = 30
_REMEMBERED = 10_000
_NOTE_EVERY = timedelta(minutes=1)

K = TypeVar("K")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """The row that a key is checked against."""

    hash: str = field(repr=False)
    tenant_id: UUID
    user_id: str
    groups: list[str]
    scopes: list[str]
    last_used_at: datetime | None
    holds: bool  # not revoked, not expired, and its tenant is active


@dataclass(frozen=True, slots=True)
class _Read:
    row: KeyRecord | None
    at: float


@dataclass(frozen=True, slots=True)
class _Compared:
    hash: str
    same: bool
    until: float


class KeyVerifier:
    """`database` is opened on first use. It is separate from the pool of the tools: a flood of
    calls that holds all connections of that pool must not prevent others from authenticating."""

    def __init__(
        self,
        database: Callable[[], Awaitable[Database]],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._clock = clock
        self._rows: BoundedDict[str, _Read] = BoundedDict(_REMEMBERED)
        self._reading: dict[str, asyncio.Task[_Read]] = {}
        self._compared: BoundedDict[bytes, _Compared] = BoundedDict(_REMEMBERED)
        self._comparing: dict[bytes, asyncio.Task[bool]] = {}
        self._wrong: BoundedDict[str, list[float]] = BoundedDict(_REMEMBERED)
        # One thread, so that wrong keys take at most one core from users with valid keys.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="key-hash")
        self._noted: BoundedDict[str, float] = BoundedDict(_REMEMBERED)
        self._noting: set[asyncio.Task[None]] = set()
        # The hash that unknown keys are compared with.
        self._nothing: str | None = None

    async def verify(self, token: str, address: str) -> Credential | None:
        prefix = keys.prefix_of(token)
        if prefix is None:
            return None
        row = await self._row(prefix)
        same = await self._is_same(token, row.hash if row is not None else None, address)
        if row is None or not same or not row.holds:
            return None
        self._note_use(prefix, row)
        principal = Principal(
            tenant_id=row.tenant_id,
            user=row.user_id,
            groups=frozenset(row.groups),
            scopes=frozenset(row.scopes),
        )
        return Credential(principal, client=prefix)

    async def close(self) -> None:
        for task in [*self._noting, *self._reading.values(), *self._comparing.values()]:
            task.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _row(self, prefix: str) -> KeyRecord | None:
        read = self._rows.get(prefix)
        if read is None or self._clock() - read.at > FRESH_SECONDS:
            read = await _shared(self._reading, prefix, lambda: self._read(prefix))
        return read.row

    async def _read(self, prefix: str) -> _Read:
        # Read the clock first: a revocation during the query must not count as fresh.
        at = self._clock()
        database = await self._database()
        async with database.session() as session:
            read = _Read(await session.row(KeyRecord, "key_to_verify", prefix=prefix), at)
        self._rows.put(prefix, read)
        return read

    async def _is_same(self, token: str, hash_: str | None, address: str) -> bool:
        digest = hashlib.sha256(token.encode()).digest()
        verdict = self._compared.get(digest)
        if verdict is not None and verdict.until > self._clock() and hash_ in (None, verdict.hash):
            return verdict.same
        if verdict is None or not verdict.same:
            self._refuse_guessing(address)
        if len(self._comparing) >= _MAX_WAITING:
            raise RateLimited("Too many keys are being checked now. Try again.", 1)
        same = await _shared(self._comparing, digest, lambda: self._compare(digest, token, hash_))
        if not same:
            self._count_wrong(address)
        return same

    async def _compare(self, digest: bytes, token: str, hash_: str | None) -> bool:
        loop = asyncio.get_running_loop()
        if self._nothing is None:
            unguessable = secrets.token_hex()
            self._nothing = await loop.run_in_executor(
                self._thread, keys.hasher().hash, unguessable
            )
        against = hash_ or self._nothing
        same = await loop.run_in_executor(self._thread, _matches, against, token)
        self._compared.put(digest, _Compared(against, same, self._clock() + COMPARED_SECONDS))
        return same

    def _refuse_guessing(self, address: str) -> None:
        recent = [at for at in self._wrong.get(address) or () if at > self._clock() - 60]
        if len(recent) >= WRONG_PER_MINUTE:
            raise RateLimited(
                "Too many wrong keys came from this address.",
                max(1, round(recent[0] + 60 - self._clock())),
            )

    def _count_wrong(self, address: str) -> None:
        recent = [at for at in self._wrong.get(address) or () if at > self._clock() - 60]
        self._wrong.put(address, [*recent, self._clock()])

    def _note_use(self, prefix: str, row: KeyRecord) -> None:
        last: datetime | None = row.last_used_at
        if last is not None and datetime.now(UTC) - last < _NOTE_EVERY:
            return
        noted = self._noted.get(prefix)
        if noted is not None and self._clock() - noted < _NOTE_EVERY.total_seconds():
            return
        self._noted.put(prefix, self._clock())
        task = asyncio.create_task(self._write_use(prefix))
        self._noting.add(task)
        task.add_done_callback(self._noting.discard)

    async def _write_use(self, prefix: str) -> None:
        database = await self._database()
        async with database.session() as session:
            await session.run("note_use_of_key", prefix=prefix)


def _matches(hash_: str, token: str) -> bool:
    """Argon2 compares whole digests in constant time."""
    from argon2.exceptions import VerificationError

    try:
        return keys.hasher().verify(hash_, token)
    except VerificationError:
        return False


async def _shared(
    running: dict[K, asyncio.Task[R]], key: K, work: Callable[[], Coroutine[Any, Any, R]]
) -> R:
    """Share the result of one task among all callers that wait for it. A cancelled caller does not
    cancel the task."""
    task = running.get(key)
    if task is None:
        task = running[key] = asyncio.create_task(work())
        task.add_done_callback(lambda _: running.pop(key, None))
    return await asyncio.shield(task)
