"""The engine: the extractor and the grouper that the settings select."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from memory_core.extraction.model import Extractor, Grouper
from memory_core.kernel.database import Database
from memory_core.kernel.settings import Settings

_REVISIONS_AT_POSTGRES = 6


@dataclass(frozen=True, slots=True)
class Engine:
    """The extractor and the grouper, shared by all documents of a run."""

    extractor: Extractor
    grouper: Grouper | None
    # Events with a lower confidence are rejected.
    min_confidence: float = 0.0
    # Fewer than the pool has connections: a long wait for a connection would be taken for an
    # outage.
    at_postgres: asyncio.Semaphore = field(
        default_factory=lambda: asyncio.Semaphore(_REVISIONS_AT_POSTGRES)
    )

    @property
    def merge_version(self) -> str:
        return self.grouper.version if self.grouper else "none"


@asynccontextmanager
async def open_engine(settings: Settings, database: Database) -> AsyncIterator[Engine]:
    """One engine per run. The limit on calls in flight holds over all runs."""
    if not settings.uses_openai_extractor:
        from memory_core.extraction.rules import RulesExtractor

        yield Engine(RulesExtractor(), None, settings.min_confidence)
        return
    from memory_core.extraction import prompts
    from memory_core.extraction.answer_cache import AnswerCache
    from memory_core.extraction.chat_model import ChatModel
    from memory_core.extraction.openai import OpenAIExtractor, OpenAIGrouper
    from memory_core.extraction.slots import SharedSlots

    extract, merge = (prompts.load(name, settings.prompts_dir) for name in prompts.NAMES)
    slots = SharedSlots(settings.dsn, settings.extract_concurrency)
    chat, cache = ChatModel(settings, slots.one), AnswerCache(database)
    try:
        extractor, grouper = (
            OpenAIExtractor(chat, cache, extract),
            OpenAIGrouper(chat, cache, merge),
        )
        yield Engine(extractor, grouper, settings.min_confidence)
    finally:
        await chat.close()
        await slots.close()
