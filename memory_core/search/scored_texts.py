"""The order of short texts by scores: their words, words that are neighbours, titles, meaning.

Events and memories are read whole; what differs between them is data.
"""

from collections.abc import Mapping, Sequence

from memory_core.search.bm25 import Statistics
from memory_core.search.passage import ShortText
from memory_core.search.ranking import FOR_SHORT_TEXTS, Ranking, candidate
from memory_core.search.windows import Highlighter

# The narrative and the quotes of an event, or a memory, have about this many characters.
_AVERAGE_LENGTH = 300


def best_first(
    texts: Sequence[ShortText],
    cosines: Mapping[str, float],
    statistics: Statistics,
    *,
    lowest: float = 1.0,
) -> list[str]:
    """The ids of some events or memories. One without a cosine is as far as the farthest, which may
    be one that was not kept: `lowest` is its cosine."""
    lexemes = list(statistics.frequencies)
    highlighter = Highlighter(
        lexemes,
        {lexeme: statistics.weight(lexeme) for lexeme in lexemes},
        _AVERAGE_LENGTH,
        average_chunk=_AVERAGE_LENGTH,
    )
    floor = min([lowest, *cosines.values()]) if cosines else 0.0
    candidates = [
        candidate(text, highlighter, None, cosines.get(text.text_id), floor) for text in texts
    ]
    ranking = Ranking(candidates, FOR_SHORT_TEXTS, inside_one=False)
    return [found.row.key for found in ranking.best(per_chunk=1)]
