"""The part of a chunk that answers a query best: some neighbouring units of its text."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import Stemmer

from memory_core.search import bm25
from memory_core.text.units import Span, units

# A window has about this many characters.
WINDOW_CHARS = 600
# The stemmer changes the end of a word: of stems up to this length two letters, else one.
_SHORT = 3
# Two words are neighbours when this much stands between the end of a stem and the next word: the
# rest of the word, and a short word such as "of" or "the".
_BETWEEN = 12
# The stemmer is that of Postgres' configuration `english`.
_STEMMER = Stemmer.Stemmer("english")
_PART = re.compile(r"[-/'’.@]+")


@dataclass(frozen=True, slots=True)
class Window:
    """Offsets are those in the chunk's text."""

    start: int
    end: int
    words: float  # BM25
    pairs: float  # BM25 of neighbouring words of the query that are neighbours here too


# Where a lexeme stands.
_Occurrence = tuple[int, str]


class Highlighter:
    """Finds the words of one query in texts."""

    def __init__(
        self,
        lexemes: Sequence[str],
        weights: Mapping[str, float],
        average_length: float = WINDOW_CHARS,
    ) -> None:
        """`lexemes`: those of the query, in its order."""
        self._lexemes = frozenset(lexemes)
        self._weights = weights
        self._average_length = average_length
        self._pairs = {
            pair: weights[pair[0]] + weights[pair[1]]
            for pair in pairwise(lexemes)
            if pair[0] != pair[1]
        }
        beginnings = {re.escape(_beginning(lexeme)) for lexeme in self._lexemes}
        pattern = rf"\b(?:{'|'.join(sorted(beginnings))})[\w'’.@/-]*" if beginnings else r"(?!)"
        self._likely = re.compile(pattern, re.IGNORECASE)
        # A text has the same words again and again.
        self._known: dict[str, tuple[str, ...]] = {}

    def windows(self, text: str) -> list[Window]:
        """All windows of a text that have some word of the query; of a text without any, its
        beginning."""
        spans = units(text)
        if not spans:
            return []
        occurrences = self._occurrences(text)
        lexemes = [lexeme for _, lexeme in occurrences]
        pairs = [self._pair(*both) for both in pairwise(occurrences)]
        first_in = _first_in(occurrences, spans)
        windows = []
        for first, last in _stretches(spans):
            start, end = first_in[first], first_in[last + 1]
            if start < end:
                words = self._of_words(lexemes[start:end], spans[last][1] - spans[first][0])
                together = self._of_pairs(pairs[start : end - 1])
                windows.append(Window(spans[first][0], spans[last][1], words, together))
        if not windows:
            first, last = _stretches(spans)[0]
            windows = [Window(spans[first][0], spans[last][1], 0.0, 0.0)]
        return windows

    def share(self, text: str) -> float:
        """How much of the query's weight the words of a short text have, such as a title's."""
        total = sum(self._weights.values())
        if not text or not total:
            return 0.0
        found = {
            lexeme for match in self._likely.finditer(text) for lexeme in self._lexemes_of(match[0])
        }
        return sum(self._weights[lexeme] for lexeme in found) / total

    def _occurrences(self, text: str) -> list[_Occurrence]:
        return [
            (match.start(), lexeme)
            for match in self._likely.finditer(text)
            for lexeme in self._lexemes_of(match[0])
        ]

    def _pair(self, one: _Occurrence, other: _Occurrence) -> tuple[str, str] | None:
        """Two words of the query that are neighbours in the text."""
        if other[0] - one[0] > len(one[1]) + _BETWEEN:
            return None
        pair = one[1], other[1]
        return pair if pair in self._pairs else None

    def _lexemes_of(self, word: str) -> tuple[str, ...]:
        """What Postgres makes of a word: a compound counts as a whole and by its parts."""
        known = self._known.get(word)
        if known is None:
            plain = word.lower().strip(".'’/-@")
            parts = {plain, *_PART.split(plain)}
            stems = {_STEMMER.stemWord(part) for part in parts if part}
            known = self._known[word] = tuple(sorted(self._lexemes & (parts | stems)))
        return known

    def _of_words(self, lexemes: list[str], length: int) -> float:
        return bm25.score(Counter(lexemes), length, self._average_length, self._weights)

    def _of_pairs(self, pairs: list[tuple[str, str] | None]) -> float:
        found = Counter(filter(None, pairs))
        return sum(
            self._pairs[pair] * count * (bm25.K1 + 1) / (count + bm25.K1)
            for pair, count in found.items()
        )


def _beginning(lexeme: str) -> str:
    """What every form of a stem begins with: "stories" is "stori", and of short ones, "dying" is
    "die"."""
    return lexeme[:-1] if len(lexeme) > _SHORT else lexeme[: max(len(lexeme) - 2, 1)]


def _first_in(occurrences: Sequence[_Occurrence], spans: Sequence[Span]) -> list[int]:
    """For each unit which occurrence is the first in it or behind it; and their number."""
    places = [place for place, _ in occurrences]
    return [bisect_left(places, start) for start, _ in spans] + [len(places)]


def _stretches(spans: Sequence[Span]) -> list[tuple[int, int]]:
    """First and last unit of each window: from every unit on, as many as there is room for."""
    stretches: list[tuple[int, int]] = []
    last = 0
    for first in range(len(spans)):
        last = max(last, first)
        while last + 1 < len(spans) and spans[last + 1][1] - spans[first][0] <= WINDOW_CHARS:
            last += 1
        if stretches and stretches[-1][1] == last:
            continue  # inside the one before
        stretches.append((first, last))
    return stretches
