"""The vocabulary: how many chunks have which word. Triggers add rows, which are folded into counts
here."""

from memory_core.kernel.database import Database, Session

# How many rows of changed words a search reads at most; beyond that, some are folded first.
MOST_UNFOLDED = 500
_FOLDED_AT_ONCE = 2_000
_SAMPLE = 30


async def fold(session: Session, *, more_than: int = 0) -> int:
    """Fold rows of changed words into counts, if there are more than `more_than`. Returns their
    number; 0 while another session folds."""
    if await session.value(int, "unfolded_words", limit=more_than + 1) <= more_than:
        return 0
    async with session.connection.transaction():
        if not await session.value(bool, "try_lock_vocabulary"):
            return 0
        return await session.value(int, "fold_words", limit=_FOLDED_AT_ONCE)


async def fold_all(database: Database) -> None:
    async with database.session() as session:
        while await fold(session):
            pass
        await session.run("forget_words")


async def is_right(database: Database) -> bool:
    """Whether the counts of a sample of words agree with the index."""
    async with database.session() as session:
        return not await session.value(int, "wrong_words", sample=_SAMPLE)


async def rebuild(database: Database) -> None:
    """Count all words again."""
    async with database.transaction() as session:
        if await session.value(bool, "try_lock_vocabulary"):
            await session.run("rebuild_vocabulary")
