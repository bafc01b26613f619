"""The cache of a model's answers, so that no answer is paid for twice.

The key is the tenant, the passage, the document's context, the prompt and the model. An answer is
stored as soon as it arrives, so a crash during the next call does not lose it. It is stored as
text: JSONB would refuse U+0000, lone surrogates and NaN, and a cached answer must equal the first
one.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from memory_core.extraction.batched_calls import BatchedCalls
from memory_core.extraction.ledger import Ledger, columns, taken
from memory_core.extraction.model import DocumentContext
from memory_core.kernel import ids, principal
from memory_core.kernel.database import Database
from memory_core.kernel.errors import PostgresUnavailable
from memory_core.kernel.principal import DEFAULT_TENANT

Answer = dict[str, Any]
_KEEP_SECONDS = 120.0
_KEEP_PAUSE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    number: int  # the number of its key in the request, from 1
    answer: str  # JSON, as text
    created_at: datetime


@dataclass(frozen=True, slots=True)
class AnswerKey:
    chunk_hash: str
    context_hash: str
    prompt_version: str
    model: str
    tenant_id: UUID = DEFAULT_TENANT


@dataclass(slots=True)
class _CallInFlight:
    """A call in flight, and how many callers wait for its answer."""

    task: asyncio.Task[tuple[Answer, bool]]
    waiting: int = 0


class AnswerCache:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._in_flight: dict[tuple[AnswerKey, datetime | None], _CallInFlight] = {}
        self._get = BatchedCalls(self._get_all)
        self._keep = BatchedCalls(self._keep_all)

    @staticmethod
    def key(text: str, context: DocumentContext, prompt_version: str, model: str) -> AnswerKey:
        tenant = principal.current().tenant_id
        return AnswerKey(ids.sha256(text), context_hash(context), prompt_version, model, tenant)

    async def get(self, key: AnswerKey, *, answers_since: datetime | None = None) -> Answer | None:
        """The cached answer, if it is not older than `answers_since`."""
        cached = await self._get(key)
        if cached is None or (answers_since is not None and cached[1] < answers_since):
            return None
        return cached[0]

    async def get_or_ask(
        self,
        key: AnswerKey,
        ask: Callable[[], Awaitable[Answer]],
        *,
        answers_since: datetime | None = None,
        ledger: Ledger,
    ) -> tuple[Answer, bool]:
        """The answer, and whether it was cached. Concurrent callers share one call."""
        wanted = (key, answers_since)
        call = self._in_flight.get(wanted)
        shared = call is not None
        if call is None:
            call = _CallInFlight(asyncio.create_task(self._answer(key, ask, answers_since, ledger)))
            self._in_flight[wanted] = call
        call.waiting += 1
        try:
            answer, was_cached = await asyncio.shield(call.task)
            return answer, was_cached or shared
        finally:
            # A cancelled waiter does not cancel the shared call. The call ends when all waiters are
            # cancelled.
            call.waiting -= 1
            if not call.waiting:
                call.task.cancel()
                if self._in_flight.get(wanted) is call:
                    del self._in_flight[wanted]

    async def _answer(
        self,
        key: AnswerKey,
        ask: Callable[[], Awaitable[Answer]],
        answers_since: datetime | None,
        ledger: Ledger,
    ) -> tuple[Answer, bool]:
        if (cached := await self.get(key, answers_since=answers_since)) is not None:
            return cached, True
        answer = await ask()
        await self._keep((key, answer, ledger))
        return answer, False

    async def _keep_all(self, answers: Sequence[tuple[AnswerKey, Answer, Ledger]]) -> list[None]:
        """Store answers and their costs. Retries, so that paid answers survive a restart of
        Postgres."""
        # One statement may change a row only once; the last answer counts.
        latest = {key: answer for key, answer, _ in answers}
        answered = _columns(latest) | {"answers": [Jsonb(json.dumps(a)) for a in latest.values()]}
        deadline = time.monotonic() + _KEEP_SECONDS
        while True:
            try:
                with taken(ledger for _, _, ledger in answers) as calls:
                    async with self._database.session() as session:
                        await session.run("keep_answers", **answered, **columns(calls))
                return [None] * len(answers)
            except PostgresUnavailable:
                if time.monotonic() >= deadline:
                    raise
                await asyncio.sleep(_KEEP_PAUSE_SECONDS)

    async def _get_all(self, keys: Sequence[AnswerKey]) -> list[tuple[Answer, datetime] | None]:
        async with self._database.session() as session:
            rows = await session.rows(CachedAnswer, "get_answers", **_columns(keys))
        by_number = {row.number: row for row in rows}
        # Parsed separately for each caller, because a caller may change its answer.
        return [
            (json.loads(row.answer), row.created_at) if row else None
            for row in (by_number.get(number) for number in range(1, len(keys) + 1))
        ]


def _columns(keys: Iterable[AnswerKey]) -> dict[str, list[Any]]:
    listed = list(keys)
    return {
        "chunk_hashes": [key.chunk_hash for key in listed],
        "context_hashes": [key.context_hash for key in listed],
        "prompt_versions": [key.prompt_version for key in listed],
        "models": [key.model for key in listed],
        "tenant_ids": [key.tenant_id for key in listed],
    }


def context_hash(context: DocumentContext) -> str:
    parts = asdict(context) | {"date": context.date.isoformat() if context.date else None}
    return ids.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=True))
