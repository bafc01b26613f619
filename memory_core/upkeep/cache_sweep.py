"""Removing cached answers and vectors that are no longer needed."""

from memory_core.extraction import prompts
from memory_core.kernel.database import Database
from memory_core.kernel.settings import Settings

_BATCH = 2_000


async def sweep(database: Database, settings: Settings, *, most: int) -> int:
    """Delete answers about passages that no revision has. After CACHE_DAYS, also delete merge
    answers, and answers of prompts and models that neither made stored events nor are in use
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
    """Delete vectors that were not used for `days` and that the index does not hold."""
    async with database.session() as session:
        return await session.run("sweep_embeddings", days=days)
