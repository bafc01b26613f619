"""Which extractor works, by the settings."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from memory_core.extraction.pipeline import Engine
from memory_core.kernel.database import Database
from memory_core.kernel.settings import Settings


@asynccontextmanager
async def open_engine(settings: Settings, database: Database) -> AsyncIterator[Engine]:
    """One engine per run. The limit on calls in flight holds over all runs."""
    if not settings.uses_openai_extractor:
        from memory_core.extraction.rules import RulesExtractor

        yield Engine(RulesExtractor(), None, settings.min_confidence)
        return
    from memory_core.extraction import prompts
    from memory_core.extraction.cache import AnswerCache
    from memory_core.extraction.chat import ChatModel
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
