"""Passages by the words of a query: all in the title, all, two, one; each time the best of the
newest."""

from collections.abc import Iterator

from memory_core.kernel.database import Session
from memory_core.search.passage_filters import Filters
from memory_core.search.query_text import Asked

# How many of the newest matches are ranked: all matches of a rare word, some of a common one.
_RANKED_MATCHES = 600
# One hit in four is found by its title: a document's text says more than its title.
_OF_TITLES = 4
# How many of the newest chunks are checked for a query that only excludes.
_LOOKED_AT = 3_000


async def newest_without(session: Session, asked: Asked, filters: Filters, limit: int) -> list[str]:
    """For a query that only excludes: the ids of chunks, newest first."""
    return await session.values(
        str,
        "newest_chunks_without",
        words=asked.words,
        last=_LOOKED_AT,
        limit=limit,
        **filters.for_sql(),
    )


async def best_chunks(session: Session, asked: Asked, filters: Filters, limit: int) -> list[str]:
    """The ids of chunks, best first."""
    if asked.is_open_ended:
        return await newest_without(session, asked, filters, limit)
    chunk_ids: dict[str, None] = {}
    for words, in_title in _relaxed_queries(asked):
        ids = await session.values(
            str,
            "best_chunks",
            words=words,
            in_title=in_title,
            any_word=asked.any_word,
            each_word=list(asked.each_word),
            ranked=_RANKED_MATCHES,
            limit=limit // _OF_TITLES if in_title else limit,
            **filters.for_sql(),
        )
        chunk_ids |= dict.fromkeys(ids)
        if len(chunk_ids) >= limit:
            break
    return list(chunk_ids)[:limit]


def _relaxed_queries(asked: Asked) -> Iterator[tuple[str, bool]]:
    """The queries to try one after the other, and whether in titles: a document with such a title
    is meant, however old it is."""
    if asked.to_the_letter:
        yield asked.words, False
        return
    every = " & ".join(f"({word})" for word in asked.each_word)
    if every:
        yield every, True
    for words in dict.fromkeys((every, asked.words, asked.any_word)):
        if words:
            yield words, False
