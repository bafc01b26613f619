"""Cached answers and vectors that nothing can ask for again."""

from memory_core.extraction import prompts
from memory_core.kernel.database import Database
from memory_core.kernel.settings import Settings

_BATCH = 2_000


async def sweep(database: Database, settings: Settings, *, most: int) -> int:
    """Drops answers about passages that no revision has, and, after CACHE_DAYS, those about merges
    and those to prompts and of models that no revision's events come from and that are not in use
    here."""
    in_use = (prompts.load(name, settings.prompts_dir) for name in prompts.NAMES)
    wanted = {
        "days": settings.cache_days,
        "model": settings.openai_event_model,
        "versions": [prompt.version for prompt in in_use],
    }
    dropped = 0
    async with database.session() as session:
        while dropped < most:
            gone = await session.run("sweep_cache", **wanted, limit=min(_BATCH, most - dropped))
            dropped += gone
            if gone < _BATCH:
                break
    return dropped


async def sweep_embeddings(database: Database, days: int) -> int:
    """Drops vectors that were not used for `days` and that the index does not hold."""
    async with database.session() as session:
        return await session.run("sweep_embeddings", days=days)
