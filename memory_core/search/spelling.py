"""Misspelt and abbreviated words of a query, replaced by words of the vocabulary.

`lant*` means the most common words with this beginning; so does a single character of a script that
is searched by pairs. A word that no chunk has means the words that are spelled with other accents.
If there are none, and it has at least five letters, it means the words that differ by one letter:
missing, doubled, wrong, or two swapped. A version means the same version with or without a "v".
"""

import re
from collections.abc import Iterable, Iterator

from memory_core.kernel.database import Session
from memory_core.search.accents import other_accents
from memory_core.search.lexemes import stem
from memory_core.search.vocabulary import fold
from memory_core.text.scripts import in_pairs, is_pair

_BEGINNING = re.compile(r"(?<!\w)(\w{2,})\*(?!\w)")
_WORD = re.compile(r"(?<![\w*])([^\W\d_]{3,40})(?![\w*])")
_LEAST_MISTYPED = 5
_VERSION = re.compile(r"(?<![\w.])(v?)(\d+(?:\.\d+)+)(?!\w)")
# Of each kind, this many words of a query are looked up.
_MOST_WORDS = 16
_MOST_ENDINGS = 12
_MOST_CORRECTIONS = 2
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


async def words_meant(session: Session, query: str, unknown: Iterable[str]) -> list[str]:
    """Lexemes of the vocabulary; `unknown`: lexemes of the query that no chunk has."""
    text = query.lower()
    missing = frozenset(unknown)
    beginnings = [*_BEGINNING.findall(text), *_single_characters(text)]
    versions = [_with_or_without_v(found) for found in _VERSION.finditer(text)]
    other_versions = [other for version, other in versions if version in missing]
    mistyped = [word for word in dict.fromkeys(_WORD.findall(text)) if stem(word) in missing]
    if not (beginnings or other_versions or mistyped):
        return []
    await fold(session)
    meant: list[str] = []
    for beginning in list(dict.fromkeys(beginnings))[:_MOST_WORDS]:
        meant += await session.values(
            str, "words_beginning_with", beginning=beginning, limit=_MOST_ENDINGS
        )
    if other_versions:
        meant += await _known(session, other_versions, _MOST_WORDS)
    for word in mistyped[:_MOST_WORDS]:
        corrections = await _known(session, other_accents(word), _MOST_CORRECTIONS)
        if not corrections and len(word) >= _LEAST_MISTYPED:
            corrections = await _known(session, one_letter_off(word), _MOST_CORRECTIONS)
        meant += corrections
    return list(dict.fromkeys(meant))


async def _known(session: Session, words: Iterable[str], limit: int) -> list[str]:
    lexemes = sorted({stem(word) for word in words})
    return await session.values(str, "known_words", lexemes=lexemes, limit=limit)


def _single_characters(text: str) -> list[str]:
    return [word for word in in_pairs(text).split() if len(word) == 1 and is_pair(word)]


def _with_or_without_v(version: re.Match[str]) -> tuple[str, str]:
    prefix, number = version.groups()
    return version[0], number if prefix else f"v{number}"


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
