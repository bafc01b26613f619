"""Related words: a text that says "cost" may answer a question about the price."""

import re
from collections.abc import Iterable, Mapping

from memory_core.embedding import Embedder
from memory_core.search.lexemes import stem

# How many related words a word has at most, and how near they must be.
_MOST = 4
_NEAR = 0.45

_WORD = re.compile(r"[a-z]{3,}")


def related_lexemes(
    embedder: Embedder, query: str, lexemes: Iterable[str]
) -> Mapping[str, Mapping[str, float]]:
    """For the lexemes of a query, other lexemes and their similarity (cosine)."""
    asked = frozenset(lexemes)
    related: dict[str, dict[str, float]] = {}
    for word in dict.fromkeys(_WORD.findall(query.lower())):
        lexeme = stem(word)
        if lexeme not in asked:
            continue
        others: dict[str, float] = {}
        for other, cosine in embedder.related(word):
            related_lexeme = stem(other)
            if cosine < _NEAR or len(others) == _MOST:
                break
            if related_lexeme not in asked:
                others.setdefault(related_lexeme, cosine)
        if others:
            related[lexeme] = others
    return related
