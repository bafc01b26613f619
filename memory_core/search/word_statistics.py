"""Statistics of all passages for ranking: their number, their lengths, and their words."""

from collections.abc import Sequence
from dataclasses import dataclass

from memory_core.kernel.database import Session
from memory_core.search.bm25 import Statistics
from memory_core.search.lexemes import quoted
from memory_core.search.vocabulary import MOST_UNFOLDED, fold


@dataclass(frozen=True, slots=True)
class PassageStatistics:
    passages: float
    average_length: float | None


@dataclass(frozen=True, slots=True)
class WordCount:
    """The number of passages with a word."""

    word: str
    found: float


async def statistics_of(session: Session, lexemes: Sequence[str]) -> Statistics:
    """Exact, even for passages that were stored a moment ago."""
    await fold(session, more_than=MOST_UNFOLDED)
    every = await session.only(PassageStatistics, "passage_statistics")
    by_query = {quoted(lexeme): lexeme for lexeme in lexemes}
    counted = (
        await session.rows(WordCount, "count_words_of_chunks", words=list(by_query))
        if by_query
        else []
    )
    return Statistics(
        passages=max(every.passages, 1.0),
        average_length=every.average_length or 1.0,
        frequencies={by_query[count.word]: count.found for count in counted},
    )
