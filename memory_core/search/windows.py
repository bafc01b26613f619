"""Windows: the part of a chunk that answers a query best, made of neighbouring units of its
text."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import regex

from memory_core.search import bm25
from memory_core.search.lexemes import stem
from memory_core.text.scripts import blank_pairs, is_pair
from memory_core.text.turns import turn_starts
from memory_core.text.units import LEAST_TURN_CHARS, Span, units

# The approximate length of a window.
WINDOW_CHARS = 600
# The stemmer changes the end of a word: up to this length of the stem two letters, otherwise one.
_SHORT = 3
# Two words are neighbours if at most this many characters are between the end of a stem and the
# next word: the rest of the word, and a short word such as "of" or "the".
_BETWEEN = 12
# The weight of a related word, relative to the word itself.
_RELATED = 0.4
_PART = re.compile(r"[-/'’.@_]+")
# Postgres takes marks, such as the vowel signs of Hindi, and invisible characters for letters.
_REST_OF_WORD = regex.compile(r"[\w\p{M}\p{Cf}'’.@/-]*")


@dataclass(frozen=True, slots=True)
class Window:
    """Offsets are relative to the chunk's text."""

    start: int
    end: int
    words: float  # BM25
    pairs: float  # BM25 of neighbouring words of the query that are neighbours here too
    cosine: float | None = None  # of its meaning, if it was requested


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text has of a query."""

    # Those with some word of it, or a related one; of a text without any, its beginning.
    windows: list[Window]
    related: float = 0.0  # what related words add to the BM25 of the whole
    coverage: float = 0.0  # the share of the query's weight that its words in the text have


_Item = TypeVar("_Item")
# The position of a lexeme.
_Occurrence = tuple[int, str]


class Highlighter:
    """Finds the words of one query in texts."""

    def __init__(
        self,
        lexemes: Sequence[str],
        weights: Mapping[str, float],
        average_length: float = WINDOW_CHARS,
        *,
        related: Mapping[str, Mapping[str, float]] | None = None,
        by_stem: Mapping[str, str] | None = None,
        average_chunk: float = WINDOW_CHARS,
        by_turns: bool = False,
    ) -> None:
        """`lexemes`: those of the query, in its order. `related`: for some of them, other lexemes
        of similar meaning, with the similarity. `by_stem`: as `Asked`. `by_turns`: windows begin
        and end with turns, and a short turn is a separate window."""
        self._lexemes = frozenset(lexemes)
        self._weights = weights
        self._by_stem = by_stem or {}
        self._average_length, self._average_chunk = average_length, average_chunk
        self._by_turns = by_turns
        self._pairs = {
            pair: weights[pair[0]] + weights[pair[1]]
            for pair in pairwise(lexemes)
            if pair[0] != pair[1]
        }
        # By the related lexeme: the lexeme of the query that it replaces, and its weight.
        self._related: dict[str, list[tuple[str, float]]] = {}
        for lexeme, others in (related or {}).items():
            for other, cosine in others.items():
                meant = lexeme, _RELATED * cosine * weights[lexeme]
                self._related.setdefault(other, []).append(meant)
        self._sought = self._lexemes | self._related.keys()
        pairs = sorted(lexeme for lexeme in self._lexemes if is_pair(lexeme))
        self._likely = _likely(self._sought.difference(pairs))
        self._likely_pair = re.compile(f"(?=({'|'.join(pairs)}))") if pairs else None
        # A cache, because a text repeats its words.
        self._lexemes_by_word: dict[str, tuple[str, ...]] = {}

    def windows(self, text: str) -> list[Window]:
        return self.read(text).windows

    def best_window(self, text: str) -> Window:
        """The part with most of the query; without any of it, the beginning."""
        windows = self.windows(text) or [Window(0, len(text), 0.0, 0.0)]
        return max(windows, key=lambda window: window.words + window.pairs)

    def read(self, text: str) -> Reading:
        turns = turn_starts(text) if self._by_turns else []
        spans = units(text, turns)
        if not spans:
            return Reading([])
        sought = self._occurrences(text)
        exact = [item for item in sought if item[1] in self._lexemes]
        lexemes = [lexeme for _, lexeme in exact]
        others = [item for item in sought if item[1] in self._related]
        pairs = [self._pair(*both) for both in pairwise(exact)]
        first_in, first_other = _first_in(exact, spans), _first_in(others, spans)
        windows = []
        for first, last in _with_single_turns(_stretches(spans), spans, turns):
            start, end = first_in[first], first_in[last + 1]
            here = [lexeme for _, lexeme in others[first_other[first] : first_other[last + 1]]]
            if start < end or here:
                length = spans[last][1] - spans[first][0]
                words = self._of_words(lexemes[start:end], length)
                words += self._of_related(here, lexemes[start:end], length, self._average_length)
                pairs_score = self._of_pairs(pairs[start : max(end - 1, start)])
                windows.append(Window(spans[first][0], spans[last][1], words, pairs_score))
        if not windows:
            first, last = _stretches(spans)[0]
            windows = [Window(spans[first][0], spans[last][1], 0.0, 0.0)]
        everywhere = [lexeme for _, lexeme in others]
        return Reading(
            windows,
            related=self._of_related(everywhere, lexemes, len(text), self._average_chunk),
            coverage=self._share(lexemes),
        )

    def share(self, text: str) -> float:
        """The share of the query's weight that the words of a short text have, such as a title."""
        return self._share(lexeme for _, lexeme in self._occurrences(text))

    def _share(self, lexemes: Iterable[str]) -> float:
        """How much of the query's weight these have."""
        total = sum(self._weights.values())
        present = self._lexemes.intersection(lexemes)
        return sum(self._weights[lexeme] for lexeme in present) / total if total else 0.0

    def _occurrences(self, text: str) -> list[_Occurrence]:
        # Matching lower case only is four times as fast as matching either case. Lower-casing keeps
        # the length of every letter except this one, so offsets stay correct.
        small = text.replace("İ", "i").lower()
        words = [
            (start, lexeme)
            for start, word in self._likely_words(small)
            for lexeme in self._lexemes_of(word)
        ]
        if self._likely_pair is None:
            return words
        pairs = [(match.start(), match[1]) for match in self._likely_pair.finditer(small)]
        return sorted({*words, *pairs})

    def _likely_words(self, small: str) -> Iterator[tuple[int, str]]:
        if small.isascii():
            for match in self._likely.finditer(small):
                yield match.start(), match[0]
            return
        # Words end where a script without spaces begins: "从MySQL迁移".
        text = blank_pairs(small)
        end = 0
        for match in self._likely.finditer(text):
            if match.start() >= end:
                rest = _REST_OF_WORD.match(text, match.end())
                end = rest.end() if rest else match.end()
                yield match.start(), text[match.start() : end]

    def _pair(self, one: _Occurrence, other: _Occurrence) -> tuple[str, str] | None:
        """Two words of the query that are neighbours in the text."""
        if other[0] - one[0] > len(one[1]) + _BETWEEN:
            return None
        pair = one[1], other[1]
        return pair if pair in self._pairs else None

    def _lexemes_of(self, word: str) -> tuple[str, ...]:
        """The lexemes that Postgres makes of a word: a compound counts as a whole and by its
        parts."""
        lexemes = self._lexemes_by_word.get(word)
        if lexemes is None:
            plain = word.strip(".'’/-@")
            parts = {plain, *plain.split("/"), *_PART.split(plain)}
            stems = {stem(part) for part in parts if part}
            others = {self._by_stem[one] for one in stems if one in self._by_stem}
            possible = parts | stems | others
            lexemes = self._lexemes_by_word[word] = tuple(sorted(self._sought & possible))
        return lexemes

    def _of_words(self, lexemes: list[str], length: int) -> float:
        return bm25.score(_counted(lexemes), length, self._average_length, self._weights)

    def _of_related(
        self, others: Sequence[str], lexemes: Iterable[str], length: float, average: float
    ) -> float:
        """For words of the query that are missing, the best related words."""
        if not others:
            return 0.0
        best: dict[str, float] = {}
        for other, count in _counted(others).items():
            for lexeme, weight in self._related[other]:
                part = bm25.score({other: count}, length, average, {other: weight})
                best[lexeme] = max(best.get(lexeme, 0.0), part)
        there = frozenset(lexemes)
        return sum(part for lexeme, part in best.items() if lexeme not in there)

    def _of_pairs(self, pairs: list[tuple[str, str] | None]) -> float:
        pair_counts = _counted([pair for pair in pairs if pair is not None])
        return sum(
            self._pairs[pair] * count * (bm25.K1 + 1) / (count + bm25.K1)
            for pair, count in pair_counts.items()
        )


def _counted(items: Sequence[_Item]) -> dict[_Item, int]:
    """Building a Counter takes longer than counting these few."""
    counts: dict[_Item, int] = {}
    for item in items:
        counts[item] = counts.get(item, 0) + 1
    return counts


def _likely(lexemes: Iterable[str]) -> re.Pattern[str]:
    """A pattern for words that may be forms of these."""
    beginnings = sorted({re.escape(_beginning(lexeme)) for lexeme in lexemes})
    if not beginnings:
        return re.compile(r"(?!)")
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(beginnings)})[\w'’.@/-]*")


def _beginning(lexeme: str) -> str:
    """What every form of a stem begins with: "stories" is "stori", and for short ones, "dying" is
    "die"."""
    return lexeme[:-1] if len(lexeme) > _SHORT else lexeme[: max(len(lexeme) - 2, 1)]


def _first_in(occurrences: Sequence[_Occurrence], spans: Sequence[Span]) -> list[int]:
    """For each unit the number of its first occurrence, or of the next one; and the number of
    all."""
    places = [place for place, _ in occurrences]
    return [bisect_left(places, start) for start, _ in spans] + [len(places)]


def _stretches(spans: Sequence[Span]) -> list[tuple[int, int]]:
    """First and last unit of each window: from every unit on, as many as fit."""
    stretches: list[tuple[int, int]] = []
    last = 0
    for first in range(len(spans)):
        last = max(last, first)
        while last + 1 < len(spans) and spans[last + 1][1] - spans[first][0] <= WINDOW_CHARS:
            last += 1
        if stretches and stretches[-1][1] == last:
            continue  # contained in the previous one
        stretches.append((first, last))
    return stretches


def _with_single_turns(
    stretches: list[tuple[int, int]], spans: Sequence[Span], turns: Sequence[int]
) -> list[tuple[int, int]]:
    """A short message may answer alone, between long ones that repeat the same words more often."""
    if not turns:
        return stretches
    starting = {start: number for number, (start, _) in enumerate(spans)}
    ending = {end: number for number, (_, end) in enumerate(spans)}
    alone = [
        (starting[start], ending[end])
        for start, end in pairwise([*turns, spans[-1][1]])
        if LEAST_TURN_CHARS <= end - start <= WINDOW_CHARS and start in starting and end in ending
    ]
    return list(dict.fromkeys([*stretches, *alone]))
