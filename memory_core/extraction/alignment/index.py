"""The words of a text in folded form, with the mapping back to the source's offsets."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from memory_core.extraction.alignment.words import find_words, fold_words, word_pattern

# A text is folded block by block, and only the blocks that a match touches are mapped word by word.
# So the index costs little more than splitting the text into words once.
_BLOCK_CHARS = 1024
# A text without blanks is split between two words here at the latest.
_MAX_BLOCK_CHARS = 4096

_BLANK = re.compile(r"\s")


class _Block:
    """A stretch of source whose words are folded, but whose offsets are not computed yet."""

    __slots__ = ("end", "folded", "folded_start", "start")

    def __init__(self, start: int, end: int, folded_start: int, folded: str) -> None:
        self.start = start
        self.end = end
        self.folded_start = folded_start
        self.folded = folded


class _Places:
    """The offsets of the words of one block, in the folded text and in the source."""

    __slots__ = ("folded_starts", "spans")

    def __init__(self, block: _Block, text: str) -> None:
        self.spans = [
            match.span() for match in word_pattern().finditer(text, block.start, block.end)
        ]
        self.folded_starts = []
        position = block.folded_start
        for word in block.folded.split(" "):
            self.folded_starts.append(position)
            position += len(word) + 1


class WordIndex:
    """`folded` contains every word of the text, each with one space before and after it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._blocks: list[_Block] = []
        folded_start = 1
        for start, end in _cut(text):
            if words := find_words(text, start, end):
                block = _Block(start, end, folded_start, fold_words(words))
                self._blocks.append(block)
                folded_start += len(block.folded) + 1
        self.folded = " ".join(["", *(block.folded for block in self._blocks), ""])
        self._folded_starts = [block.folded_start for block in self._blocks]
        self._source_starts = [block.start for block in self._blocks]
        self._places: dict[int, _Places] = {}

    def source_span(self, start: int, end: int) -> tuple[int, int]:
        """The source's characters for `folded[start:end]`, which must be whole words."""
        return self._word_span(start)[0], self._word_span(end - 1)[1]

    def folded_position(self, offset: int) -> int:
        """The position in `folded` of the first word at or after a source offset."""
        number = bisect_right(self._source_starts, offset) - 1
        if number < 0:
            return 1
        places = self._places_of(number)
        word = bisect_left(places.spans, (offset, offset))
        if word < len(places.spans):
            return places.folded_starts[word]
        if number + 1 < len(self._blocks):
            return self._folded_starts[number + 1]
        return len(self.folded)

    def _word_span(self, position: int) -> tuple[int, int]:
        number = bisect_right(self._folded_starts, position) - 1
        places = self._places_of(number)
        span: tuple[int, int] = places.spans[bisect_right(places.folded_starts, position) - 1]
        return span

    def _places_of(self, number: int) -> _Places:
        if number not in self._places:
            self._places[number] = _Places(self._blocks[number], self._text)
        return self._places[number]


def _cut(text: str) -> Iterator[tuple[int, int]]:
    """Consecutive stretches that cover the text and split no word, unless it is longer than a
    block."""
    start = 0
    while start < len(text):
        blank = _BLANK.search(text, start + _BLOCK_CHARS, start + _MAX_BLOCK_CHARS)
        if blank:
            end = blank.start()
        elif len(text) - start <= _MAX_BLOCK_CHARS:
            end = len(text)
        else:
            end = _last_word_start(text, start, start + _MAX_BLOCK_CHARS)
        yield start, end
        start = end


def _last_word_start(text: str, start: int, end: int) -> int:
    last = start
    for match in word_pattern().finditer(text, start, end):
        last = match.start()
    return last if last > start else end
