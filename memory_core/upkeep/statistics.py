"""What ranking needs to know of all passages, counted again."""

from memory_core.kernel.database import Database
from memory_core.search import vocabulary

# The words of so few passages are counted again each time; of more, some words are, to see whether
# their counts are right.
_FEW_PASSAGES = 10_000


async def rebuild(database: Database) -> int:
    """Makes one row of what each change added since the last time, and repairs what was
    changed by hand. Returns the number of passages that searches go through."""
    async with database.session() as session:
        passages = await session.value(int, "rebuild_passage_statistics")
    await vocabulary.fold_all(database)
    if passages <= _FEW_PASSAGES or not await vocabulary.is_right(database):
        await vocabulary.rebuild(database)
    return passages
