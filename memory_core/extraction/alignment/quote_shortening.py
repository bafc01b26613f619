"""Shortening a quote: a long span is cut to its most informative words."""

import re
from collections import Counter
from unicodedata import combining

from memory_core.extraction.alignment.lexicon import STOPWORDS
from memory_core.extraction.alignment.words import fold_words, words_in
from memory_core.extraction.model import MAX_QUOTE_WORDS

# In scripts without blanks, 25 words may be a whole page.
MAX_QUOTE_CHARS = 400

# The weight of a word: long words carry more than short ones, numbers and names most.
_LONGEST_TELLING_WORD = 12
_NUMBER_WORTH = 8
_NAME_WORTH = 6
# A window that begins or ends at a sentence or clause gets about one word's weight more.
_SENTENCE_EDGE_WORTH = 8
_CLAUSE_EDGE_WORTH = 3

_BLANK_SEPARATED = re.compile(r"\S+")
_SENTENCE_END = re.compile(r"[.!?。！？…][\"'”’)\]*_]*$")
_CLAUSE_END = re.compile(r"[,;:—–][\"'”’)\]*_]*$")

_JOINERS = frozenset("\u200d\ufe0e\ufe0f")
_MAX_CLUSTER_CHARS = 32


def shorten(
    text: str, start: int, end: int, *, max_words: int = MAX_QUOTE_WORDS
) -> tuple[int, int]:
    """The span without surrounding blanks, cut to at most `max_words` consecutive words.

    The window with the most information is kept. No window is longer than MAX_QUOTE_CHARS; only a
    single word longer than that is itself cut. A span of blanks alone becomes empty.
    """
    if max_words < 1:
        raise ValueError(f"max_words must be at least 1, not {max_words}")
    spans = [match.span() for match in _BLANK_SEPARATED.finditer(text, start, end)]
    if not spans:
        return start, start
    if len(spans) <= max_words and spans[-1][1] - spans[0][0] <= MAX_QUOTE_CHARS:
        return spans[0][0], spans[-1][1]
    first, last = _most_telling_window(text, spans, max_words)
    window_start, window_end = spans[first][0], spans[last][1]
    if window_end - window_start > MAX_QUOTE_CHARS:
        window_end = _cluster_boundary(text, window_start, window_start + MAX_QUOTE_CHARS)
    return window_start, window_end


def _most_telling_window(
    text: str, spans: list[tuple[int, int]], max_words: int
) -> tuple[int, int]:
    words = [text[start:end] for start, end in spans]
    worths = _worths(words)
    best, best_worth = (0, 0), -1
    worth, first = 0, 0
    for last in range(len(spans)):
        worth += worths[last]
        while first < last and _exceeds(spans, first, last, max_words):
            worth -= worths[first]
            first += 1
        # A window that could be longer is part of a better one.
        if last + 1 < len(spans) and not _exceeds(spans, first, last + 1, max_words):
            continue
        total = worth + _edge_worth(words, first, last)
        # Strictly more, so that the earliest of equal windows is kept.
        if total > best_worth:
            best, best_worth = (first, last), total
    return best


def _exceeds(spans: list[tuple[int, int]], first: int, last: int, max_words: int) -> bool:
    return last - first >= max_words or spans[last][1] - spans[first][0] > MAX_QUOTE_CHARS


def _worths(words: list[str]) -> list[int]:
    folded = [fold_words(words_in(word).findall(word)) for word in words]
    frequency = Counter(folded)
    return [
        _worth(word, plain, begins_sentence=i == 0 or bool(_SENTENCE_END.search(words[i - 1])))
        // frequency[plain]
        for i, (word, plain) in enumerate(zip(words, folded, strict=True))
    ]


def _worth(word: str, plain: str, *, begins_sentence: bool) -> int:
    if not plain or plain in STOPWORDS:
        return 0
    worth = min(len(plain), _LONGEST_TELLING_WORD)
    if any(character.isdigit() for character in plain):
        worth += _NUMBER_WORTH
    elif not begins_sentence and word.lstrip("\"'“‘([*_")[:1].isupper():
        worth += _NAME_WORTH
    return worth


def _edge_worth(words: list[str], first: int, last: int) -> int:
    before = words[first - 1][-_MAX_CLUSTER_CHARS:] if first else "."
    after = words[last][-_MAX_CLUSTER_CHARS:] if last < len(words) - 1 else "."
    return sum(
        _SENTENCE_EDGE_WORTH
        if _SENTENCE_END.search(edge)
        else _CLAUSE_EDGE_WORTH * bool(_CLAUSE_END.search(edge))
        for edge in (before, after)
    )


def _cluster_boundary(text: str, start: int, end: int) -> int:
    """The last position up to `end` that does not split a character from its marks or joiners."""
    for place in range(end, max(start, end - _MAX_CLUSTER_CHARS), -1):
        following, preceding = text[place : place + 1], text[place - 1]
        if not (
            (following and (combining(following) or following in _JOINERS)) or preceding == "\u200d"
        ):
            return place
    return end
