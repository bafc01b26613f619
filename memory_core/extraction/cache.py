"""What a model answered for a passage, kept so that nobody pays twice.

The key is the passage, the document's context, the prompt and the model. An answer is stored the
moment it arrives: a crash one call later does not lose it.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from typing import Any

from psycopg.types.json import Jsonb

from memory_core import ids
from memory_core.database import Database
from memory_core.extraction.model import DocumentContext

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Key:
    chunk_hash: str
    context_hash: str
    prompt_version: str
    model: str


class AnswerCache:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._asking: dict[Key, asyncio.Task[Answer]] = {}

    @staticmethod
    def key(text: str, context: DocumentContext, prompt_version: str, model: str) -> Key:
        return Key(ids.sha256(text), context_hash(context), prompt_version, model)

    async def get_or_ask(
        self, key: Key, ask: Callable[[], Awaitable[Answer]], *, fresh: bool
    ) -> tuple[Answer, bool]:
        """The answer, and whether it was known. Whoever asks for the same at once shares it."""
        if not fresh and (known := await self._get(key)) is not None:
            return known, True
        if not fresh and (task := self._asking.get(key)) is not None:
            return await asyncio.shield(task), True
        task = asyncio.create_task(self._ask_and_keep(key, ask))
        self._asking[key] = task
        try:
            return await asyncio.shield(task), False
        except asyncio.CancelledError:
            task.cancel()
            raise
        finally:
            if self._asking.get(key) is task:
                del self._asking[key]

    async def _ask_and_keep(self, key: Key, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        answer = await ask()
        async with self._database.session() as session:
            await session.run("keep_answer", **asdict(key), answer=Jsonb(answer, dumps=_dumps))
        return answer

    async def _get(self, key: Key) -> Answer | None:
        async with self._database.session() as session:
            row = await session.one("get_answer", **asdict(key))
        return None if row is None else row["answer"]


def context_hash(context: DocumentContext) -> str:
    parts = asdict(context) | {"date": context.date.isoformat() if context.date else None}
    return ids.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=True))


def _dumps(value: Any) -> str:
    """JSONB refuses U+0000 and lone surrogates; an answer that holds them is kept without."""
    text = json.dumps(value, ensure_ascii=False)
    return text.encode(errors="replace").decode().replace("\\u0000", "\\ufffd")
