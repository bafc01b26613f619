"""Passages by the words of a query: all of them, then some, the best of the newest each time."""

from memory_core.database import Session
from memory_core.passages.filters import Filters
from memory_core.typed import Asked

# So many of the newest matches are ranked: all that have a rare word, some that have a common one.
_RANKED_MATCHES = 600
# Where too few have two of the words, one of so many will do: the rarest say most.
_RAREST = 2


async def best_chunks(session: Session, asked: Asked, filters: Filters, limit: int) -> list[str]:
    """The ids of chunks, best first. None for what only excludes: everything else matches that."""
    found: dict[str, None] = {}
    for words in _ever_fewer(asked):
        rows = await session.all(
            "best_chunks",
            words=words,
            any_word=asked.any_word,
            each_word=list(asked.each_word),
            ranked=_RANKED_MATCHES,
            limit=limit,
            **filters.for_sql(),
        )
        found |= dict.fromkeys(row["chunk_id"] for row in rows)
        if len(found) >= limit:
            break
    return list(found)[:limit]


def _ever_fewer(asked: Asked) -> list[str]:
    """Queries of which each finds what the one before does, and more."""
    if asked.is_open_ended:
        return []
    if asked.to_the_letter:
        return [asked.words]
    words = [f"({word})" for word in asked.each_word]
    queries = [" & ".join(words), asked.words, " | ".join(words[:_RAREST])]
    return list(dict.fromkeys(query for query in queries if query))
