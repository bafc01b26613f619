"""The vocabulary: how many chunks have which word. Triggers add rows, which are folded here."""

from memory_core.kernel.database import Database, Session

# How many rows of changed words a search reads at most; of more, some are folded first.
MOST_UNFOLDED = 500
_FOLDED_AT_ONCE = 2_000
_SAMPLE = 30


async def fold(session: Session, *, more_than: int = 0) -> int:
    """Makes counts of the rows of changed words, if there are more than that; how many it was. None
    while another session folds."""
    row = await session.one("unfolded_words", limit=more_than + 1)
    assert row is not None
    if row["waiting"] <= more_than:
        return 0
    async with session.connection.transaction():
        locked = await session.one("try_lock_vocabulary")
        assert locked is not None
        if not locked["locked"]:
            return 0
        done = await session.one("fold_words", limit=_FOLDED_AT_ONCE)
        assert done is not None
        folded: int = done["folded"]
        return folded


async def fold_all(database: Database) -> None:
    async with database.session() as session:
        while await fold(session):
            pass
        await session.run("forget_words")


async def is_right(database: Database) -> bool:
    """Whether the counts of some words are those of the index."""
    async with database.session() as session:
        row = await session.one("wrong_words", sample=_SAMPLE)
    assert row is not None
    return not row["wrong"]


async def rebuild(database: Database) -> None:
    """All words counted again."""
    async with database.transaction() as session:
        locked = await session.one("try_lock_vocabulary")
        assert locked is not None
        if locked["locked"]:
            await session.run("rebuild_vocabulary")
