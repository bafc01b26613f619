"""Extractors in use over the scripted provider, with what they logged."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from memory_core.extraction.answer_cache import AnswerCache
from memory_core.extraction.chat_model import ChatModel
from memory_core.extraction.ledger import Ledger, ModelCall
from memory_core.extraction.model import DocumentContext, Proposal
from memory_core.extraction.openai import OpenAIExtractor, OpenAIGrouper
from memory_core.kernel.database import Database
from memory_core.kernel.errors import ProviderFault
from memory_core.kernel.settings import Settings
from memory_core.text.chunk import Chunk
from tests.patience import PATIENCE
from tests.pipeline_client import with_openai
from tests.scripted_provider import (
    RawBody,
    ScriptedProvider,
)

TEXT = "Decision: we launch the beta in May.\nBob Roth will test it. Nobody was blocked by rain."
NOTHING: dict[str, Any] = {"events": [], "entities": []}
CONTEXT = DocumentContext(
    artifact_type="note",
    title="Kick-off",
    author="Alice Chen",
    participants=("Alice Chen", "Bob Roth"),
    date=datetime(2026, 3, 13, tzinfo=UTC),
)


class Asking:
    """An extractor in use, with what it logged."""

    def __init__(self, extractor: OpenAIExtractor, grouper: OpenAIGrouper) -> None:
        self.extractor, self.grouper = extractor, grouper
        self.ledger = Ledger(uuid4(), 1)

    @property
    def calls(self) -> list[ModelCall]:
        return self.ledger.calls

    async def __call__(
        self, text: str = TEXT, *, answers_since: datetime | None = None
    ) -> Proposal:
        chunk = Chunk(0, 0, len(text), text, len(text) // 4)
        return await self.extractor.extract(
            chunk, CONTEXT, answers_since=answers_since, ledger=self.ledger
        )

    async def fault(self, text: str = TEXT) -> ProviderFault:
        with pytest.raises(ProviderFault) as caught:
            await self(text)
        return caught.value

    @property
    def outcomes(self) -> list[str]:
        return [call.outcome for call in self.calls]


Opened = Callable[..., Any]


@pytest.fixture(scope="module")
async def stores(services: Settings) -> AsyncIterator[Database]:
    database = Database(services.dsn, unasked="a test looks at what is stored")
    await database.open()
    yield database
    await database.close()


@pytest.fixture
async def opened(
    services: Settings, stores: Database, provider: ScriptedProvider
) -> AsyncIterator[Opened]:
    """Opens extractors over an empty cache."""
    async with stores.session() as session:
        await session.connection.execute("DELETE FROM extraction_cache")
    chats: list[ChatModel] = []

    def open_(**changes: Any) -> Asking:
        chat = ChatModel(with_openai(services, provider, **changes))
        chats.append(chat)
        cache = AnswerCache(stores)
        return Asking(OpenAIExtractor(chat, cache), OpenAIGrouper(chat, cache))

    yield open_
    for chat in chats:
        await chat.close()


def completion(message: dict[str, Any], *, finish_reason: str = "stop", **rest: Any) -> RawBody:
    """An answer in the protocol's shape, with whatever can be escaped in JSON."""
    choice = {"index": 0, "finish_reason": finish_reason, "message": message}
    return RawBody(json.dumps({"choices": [choice], **rest}))


def narratives(proposal: Proposal) -> list[str]:
    return [event.narrative for event in proposal.events]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.005)
