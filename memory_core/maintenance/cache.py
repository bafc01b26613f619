"""Cached answers that nothing can ask for again."""

from memory_core.database import Database
from memory_core.extraction import prompts

_BATCH = 2_000


async def sweep(database: Database, days: int, *, model: str, most: int) -> int:
    """Drops answers about passages that no revision has, and, once they are that old, answers to
    prompts and of models that no revision's events come from and that are not in use here."""
    wanted = {
        "days": days,
        "model": model,
        "versions": [prompts.load("extract").version, prompts.load("merge").version],
    }
    dropped = 0
    async with database.session() as session:
        while dropped < most:
            gone = await session.run("sweep_cache", **wanted, limit=min(_BATCH, most - dropped))
            dropped += gone
            if gone < _BATCH:
                break
    return dropped
