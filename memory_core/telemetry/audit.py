"""The audit: calls are buffered in memory and written in batches, so that no call waits for it.

A call is in Postgres about half a second after it ended. The buffer is written when the process
ends; a killed process loses at most the last second. While Postgres is away, calls are buffered up
to a limit; further calls are dropped and counted.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import orjson
import psycopg

from memory_core.kernel import principal
from memory_core.kernel.database import Database
from memory_core.kernel.end_tasks import end_tasks
from memory_core.kernel.errors import MemoryFault

log = logging.getLogger(__name__)

Kind = Literal["tool", "resource", "prompt", "page", "command"]
Transport = Literal["http", "stdio", "command"]

WRITE_SECONDS = 0.5
CAPACITY = 10_000
_BATCH = 500
_CLOSE_SECONDS = 5.0
_BACKOFF_LIMIT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class AuditedCall:
    """A row of tool_calls. It contains no text of a document, a query or a secret."""

    kind: Kind
    transport: Transport
    tool_name: str
    tenant_id: UUID
    principal: str
    trace_id: str
    span_id: str
    parent_span_id: str | None
    parameters: dict[str, Any]
    result: dict[str, Any] | None
    error: str | None  # the error code
    created_at: datetime
    completed_at: datetime
    latency_ms: int
    task_id: str | None = None
    tokens_used: int = 0
    cost_dollars: float = 0.0


class Audit:
    """`database`: the open database, or None while there is none."""

    def __init__(
        self,
        database: Callable[[], Database | None],
        *,
        keeps: bool = True,
        capacity: int = CAPACITY,
        write_seconds: float = WRITE_SECONDS,
    ) -> None:
        self._database = database
        self._keeps = keeps
        self._capacity = capacity
        self._write_seconds = write_seconds
        self._waiting: deque[AuditedCall] = deque()
        self._writer: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self.written = 0
        self.dropped = 0

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def record(self, call: AuditedCall) -> None:
        """Buffer a call. Never waits, never fails."""
        if not self._keeps:
            return
        if len(self._waiting) >= self._capacity:
            self._drop(1)
            return
        self._waiting.append(call)
        if self._writer is None or self._writer.done():
            self._writer = asyncio.get_running_loop().create_task(self._write_all())

    async def close(self) -> None:
        """Write the rest of the buffer, within the time that a stopping process has."""
        self._closing.set()
        if self._writer is not None:
            await asyncio.wait([self._writer], timeout=_CLOSE_SECONDS)
            await end_tasks(self._writer)
            self._writer = None
        self._closing.clear()
        if self._waiting:
            log.warning("%d calls are missing from the audit", len(self._waiting))
            self._drop(len(self._waiting))
            self._waiting.clear()

    async def _write_all(self) -> None:
        """Write until the buffer is empty: an idle server has no writer task."""
        pause = self._write_seconds
        while self._waiting:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), pause)
            try:
                while self._waiting and self._database() is not None:
                    await self._write_batch()
                pause = self._write_seconds
            except MemoryFault:
                pause = min(pause * 2, _BACKOFF_LIMIT_SECONDS)
            if self._closing.is_set():
                return

    async def _write_batch(self) -> None:
        """Write one batch. While Postgres is away the batch stays in the buffer. A batch that
        Postgres refuses is dropped: it would be refused again and block all later ones."""
        database = self._database()
        assert database is not None
        batch = [self._waiting[n] for n in range(min(_BATCH, len(self._waiting)))]
        written = len(batch)
        try:
            with principal.system("the audit holds the calls of all tenants"):
                await self._record(database, batch)
        except psycopg.Error as error:
            log.error("%d calls do not fit the audit: %s", len(batch), type(error).__name__)
            self._drop(len(batch))
            written = 0
        self.written += written
        for _ in batch:
            self._waiting.popleft()

    async def _record(self, database: Database, batch: list[AuditedCall]) -> None:
        async with database.session() as session:
            calls = orjson.dumps([asdict(call) for call in batch]).decode()
            await session.run("record_tool_calls", calls=calls)

    def _drop(self, calls: int) -> None:
        if not self.dropped:
            log.warning("calls are dropped from the audit: Postgres does not take them")
        self.dropped += calls
