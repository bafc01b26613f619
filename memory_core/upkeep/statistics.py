"""The word statistics of all passages, which ranking needs, counted again."""

from memory_core.kernel.database import Database
from memory_core.search import vocabulary

# With at most this many passages, all words are counted again. With more, only a sample of words is
# counted, to check the stored counts.
_FEW_PASSAGES = 10_000


async def rebuild(database: Database) -> int:
    """Combine the increments that changes added since the last time into one row, and correct
    manual changes. Returns the number of searchable passages."""
    async with database.session() as session:
        passages = await session.value(int, "rebuild_passage_statistics")
    await vocabulary.fold_all(database)
    if passages <= _FEW_PASSAGES or not await vocabulary.is_right(database):
        await vocabulary.rebuild(database)
    return passages
