"""What ranking needs to know of all passages: how many, how long, and with which words."""

from collections.abc import Sequence

from memory_core.kernel.database import Session
from memory_core.search.bm25 import Statistics
from memory_core.search.lexemes import quoted
from memory_core.search.vocabulary import MOST_UNFOLDED, fold


async def statistics_of(session: Session, lexemes: Sequence[str]) -> Statistics:
    """Exact, also of what was stored a moment ago."""
    await fold(session, more_than=MOST_UNFOLDED)
    row = await session.one("passage_statistics")
    assert row is not None
    by_query = {quoted(lexeme): lexeme for lexeme in lexemes}
    counted = await session.all("count_words_of_chunks", words=list(by_query)) if by_query else []
    return Statistics(
        passages=max(float(row["passages"]), 1.0),
        average_length=float(row["average_length"] or 1.0),
        frequencies={by_query[item["word"]]: float(item["found"]) for item in counted},
    )
