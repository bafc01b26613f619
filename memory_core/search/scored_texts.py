"""Ranking short texts by scores: their words, neighbouring words, titles, meaning.

Events and memories are read whole; the differences between them are data.
"""

from collections.abc import Mapping, Sequence

from memory_core.search.bm25 import Statistics
from memory_core.search.passage import ShortText
from memory_core.search.ranking import FOR_SHORT_TEXTS, Ranking, candidate
from memory_core.search.windows import Highlighter

# The average length of an event's narrative and quotes, or of a memory, in characters.
_AVERAGE_LENGTH = 300


def best_first(
    texts: Sequence[ShortText],
    cosines: Mapping[str, float],
    statistics: Statistics,
    *,
    by_stem: Mapping[str, str],
    lowest: float = 1.0,
) -> list[str]:
    """The ids of these events or memories, best first. `by_stem`: as `Asked`. One without a cosine
    counts as far as the farthest, which may have been dropped: `lowest` is its cosine."""
    lexemes = list(statistics.frequencies)
    highlighter = Highlighter(
        lexemes,
        {lexeme: statistics.weight(lexeme) for lexeme in lexemes},
        _AVERAGE_LENGTH,
        by_stem=by_stem,
        average_chunk=_AVERAGE_LENGTH,
    )
    floor = min([lowest, *cosines.values()]) if cosines else 0.0
    candidates = [
        candidate(text, highlighter, None, cosines.get(text.text_id), floor) for text in texts
    ]
    ranking = Ranking(candidates, FOR_SHORT_TEXTS, inside_one=False)
    return [hit.row.key for hit in ranking.best(per_chunk=1)]
