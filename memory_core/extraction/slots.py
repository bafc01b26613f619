"""Slots for model calls, shared by all runs of a deployment.

EXTRACT_CONCURRENCY limits the calls in flight, and several runs work at once, each in its own
process. A slot is an advisory lock of Postgres that a connection of the run holds. So a killed run
releases its slots at once, without a clean-up.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import psycopg

from memory_core.kernel.database import Session, postgres_faults
from memory_core.kernel.errors import PostgresUnavailable
from memory_core.kernel.timed_wait import is_set_within

# How long a run waits before it tries again to get a slot. Slots that it holds itself are reused at
# once.
_LOOK_AGAIN_SECONDS = 0.1
_CONNECT_SECONDS = 5


# `async with slot(): …` around every call.
Slot = Callable[[], AbstractAsyncContextManager[Any]]


class SharedSlots:
    def __init__(self, dsn: str, most: int) -> None:
        self._dsn, self._most = dsn, most
        # No more tasks wait for Postgres than there are slots.
        self._local = asyncio.Semaphore(most)
        self._taken: set[int] = set()
        self._waiting = asyncio.Lock()  # only one task waits for another run's slot
        self._asking = asyncio.Lock()  # one statement at a time
        self._given_back = asyncio.Event()
        self._connection: psycopg.AsyncConnection | None = None

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        async with self._local:
            slot = await self._take()
            try:
                yield
            finally:
                await asyncio.shield(self._give_back(slot))

    async def close(self) -> None:
        """Release all slots."""
        if self._connection is not None:
            await self._connection.close()
            self._connection = None
        self._taken.clear()

    async def _take(self) -> int:
        async with self._waiting:
            while True:
                self._given_back.clear()
                if (slot := await self._try()) is not None:
                    return slot
                await is_set_within(self._given_back, _LOOK_AGAIN_SECONDS)

    async def _try(self) -> int | None:
        """Try to take a slot. Even a cancelled task waits for its statement, because a slot that it
        took must be released."""
        asked = asyncio.ensure_future(self._ask_for_one())
        try:
            return await asyncio.shield(asked)
        except asyncio.CancelledError:
            slot = await asked
            if slot is not None:
                await self._give_back(slot)
            raise

    async def _ask_for_one(self) -> int | None:
        async with self._asking:
            was_connected = self._connection is not None
            try:
                slot = await self._ask_first_free()
            except PostgresUnavailable:
                if not was_connected:
                    raise
                slot = await self._ask_first_free()  # Postgres may have been restarted
            if slot is not None:
                self._taken.add(slot)
            return slot

    async def _ask_first_free(self) -> int | None:
        async with self._session() as session:
            return await session.maybe(
                int, "take_call_slot", most=self._most, taken=list(self._taken)
            )

    async def _give_back(self, slot: int) -> None:
        async with self._asking:
            if slot in self._taken:
                self._taken.discard(slot)
                # A lost connection has already released the slot, and the call has its answer.
                with suppress(PostgresUnavailable):
                    async with self._session() as session:
                        await session.run("give_back_call_slot", slot=slot)
        self._given_back.set()

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[Session]:
        with postgres_faults():
            try:
                if self._connection is None:
                    self._connection = await psycopg.AsyncConnection.connect(
                        self._dsn, autocommit=True, connect_timeout=_CONNECT_SECONDS
                    )
                yield Session(self._connection)
            except psycopg.Error:
                # Its locks are released with it.
                lost, self._connection = self._connection, None
                self._taken.clear()
                if lost is not None:
                    await lost.close()
                raise
