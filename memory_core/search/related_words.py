"""Related words: a text that says "cost" may answer a question about the price."""

import re
from collections.abc import Iterable, Mapping

import Stemmer

from memory_core.embedding import Embedder

# How many related words a word has at most, and how near they must be.
_MOST = 4
_NEAR = 0.45

_WORD = re.compile(r"[a-z]{3,}")
# The same stemmer as Postgres' configuration `english`.
_STEMMER = Stemmer.Stemmer("english")


def related_lexemes(
    embedder: Embedder, query: str, lexemes: Iterable[str]
) -> Mapping[str, Mapping[str, float]]:
    """For the lexemes of a query, other lexemes and their similarity (cosine)."""
    asked = frozenset(lexemes)
    related: dict[str, dict[str, float]] = {}
    for word in dict.fromkeys(_WORD.findall(query.lower())):
        lexeme = _STEMMER.stemWord(word)
        if lexeme not in asked:
            continue
        others: dict[str, float] = {}
        for other, cosine in embedder.related(word):
            stem = _STEMMER.stemWord(other)
            if cosine < _NEAR or len(others) == _MOST:
                break
            if stem not in asked:
                others.setdefault(stem, cosine)
        if others:
            related[lexeme] = others
    return related
