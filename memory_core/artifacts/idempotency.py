"""Idempotent ingests: a request with a client's key is carried out once, however often it is
sent."""

import hashlib
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import orjson

from memory_core.artifacts.document import Document
from memory_core.artifacts.result import IngestResult
from memory_core.kernel.database import Session
from memory_core.kernel.errors import Conflict
from memory_core.kernel.settings import Settings
from memory_core.log.change import Position
from memory_core.queue.request_columns import new_job_columns


@dataclass(frozen=True, slots=True)
class FirstAnswer:
    request_hash: str
    answer: dict[str, Any]


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """A key is kept as long as the document that its first request stored."""

    key: str
    request_hash: str  # hash of all arguments

    @classmethod
    def of(cls, key: str, document: Document, priority: int) -> Self:
        arguments = orjson.dumps([asdict(document), priority], option=orjson.OPT_SORT_KEYS)
        return cls(key, hashlib.sha256(arguments).hexdigest())

    async def first_answer(self, session: Session) -> IngestResult | None:
        """The answer to the first request with this key. Concurrent requests with the key wait for
        it."""
        await session.run("lock_idempotency_key", key=self.key)
        first = await session.row(FirstAnswer, "first_answer", key=self.key)
        if first is None:
            return None
        if first.request_hash != self.request_hash:
            raise Conflict(
                "This idempotency_key was used for a request with other arguments; nothing was "
                "stored. Take a new key for a new request.",
                details={"parameter": "idempotency_key"},
            )
        answer = IngestResult(**first.answer)
        position = first.answer["position"]
        return replace(answer, position=Position.parse(position) if position else None)

    async def keep(self, session: Session, result: IngestResult) -> None:
        position = str(result.position) if result.position else None
        await session.run(
            "keep_first_answer",
            key=self.key,
            request_hash=self.request_hash,
            artifact_uid=result.artifact_uid,
            answer=orjson.dumps({**asdict(result), "position": position}).decode(),
        )


@dataclass(frozen=True, slots=True)
class IngestRequest:
    priority: int = 0
    keyed: KeyedRequest | None = None  # only for a single document

    def columns(self, settings: Settings) -> dict[str, Any]:
        """The columns of the jobs that the request creates."""
        return {
            **new_job_columns(settings, "ingest", priority=self.priority),
            "idempotency_key": self.keyed.key if self.keyed else None,
        }
