"""Misspelt and abbreviated words of a query, replaced by words of the vocabulary.

`lant*` means the most common words with this beginning. A word of at least five letters that no
chunk has means the words that differ by one letter: missing, doubled, wrong, or two swapped.
"""

import re
from collections.abc import Iterable, Iterator

from memory_core.kernel.database import Session
from memory_core.search.lexemes import stem
from memory_core.search.vocabulary import fold

_BEGINNING = re.compile(r"(?<!\w)(\w{2,})\*(?!\w)")
_WORD = re.compile(r"(?<![\w*])([^\W\d_]{5,40})(?![\w*])")
_MOST_ENDINGS = 12
_MOST_CORRECTIONS = 2
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


async def words_meant(session: Session, query: str, unknown: Iterable[str]) -> list[str]:
    """Lexemes of the vocabulary; `unknown`: lexemes of the query that no chunk has."""
    text = query.lower()
    beginnings = list(dict.fromkeys(_BEGINNING.findall(text)))
    missing = frozenset(unknown)
    mistyped = [word for word in dict.fromkeys(_WORD.findall(text)) if stem(word) in missing]
    if not beginnings and not mistyped:
        return []
    await fold(session)
    meant: list[str] = []
    for beginning in beginnings:
        meant += await session.values(
            str, "words_beginning_with", beginning=beginning, limit=_MOST_ENDINGS
        )
    for word in mistyped:
        lexemes = sorted({stem(other) for other in one_letter_off(word)})
        meant += await session.values(str, "known_words", lexemes=lexemes, limit=_MOST_CORRECTIONS)
    return list(dict.fromkeys(meant))


def one_letter_off(word: str) -> Iterator[str]:
    """All strings that differ by one letter (added, missing or replaced), or by two swapped
    neighbours."""
    letters = sorted(set(_LETTERS) | set(word))
    for place in range(len(word) + 1):
        before, after = word[:place], word[place:]
        if len(after) > 1:
            yield before + after[1] + after[0] + after[2:]
        if after:
            yield before + after[1:]
        for letter in letters:
            yield before + letter + after
            if after:
                yield before + letter + after[1:]
