"""Cuts a document into overlapping chunks whose boundaries survive edits elsewhere in the text.

A text is first divided into *atoms*: short runs between places where a cut is acceptable. Each
place has a rank, made of the kind of boundary (heading, paragraph, ...) and a hash of the few
characters around it. The text is then divided at its highest-ranked place, the two halves at
theirs, and so on until the parts fit. Nothing depends on the distance from the document's start, so
an edit changes only the parts that it touches.

Bounds, in exact tokens of the finished chunks of a divided text:

- no chunk has more than 4/3 of `target_tokens` (1200 by default);
- no overlap has more than 3/2 of `overlap_tokens`, and none reaches the previous chunk's start;
- where a passage has about as many tokens as its pieces together, as in ordinary prose, a chunk has
  at least 1/3 of `target_tokens` and an overlap at least about half of `overlap_tokens`.
"""

import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

import regex

from memory_core.text.chunk import Chunk
from memory_core.text.tokens import count_tokens
from memory_core.text.turns import SPEAKER_TURN

# The longest entry of cl100k_base. A text longer than n times this has more than n tokens, and is
# never passed to the tokeniser whole: the tokeniser fails on very long runs of white space.
LONGEST_TOKEN_BYTES = 128

# A part is never cut closer to its ends than this share of the largest part. It is well below one
# half, so that there is always a choice of places. A wider choice makes it likelier that the same
# place wins again after an edit, but makes the average chunk smaller.
SMALLEST_PART_SHARE = 0.36

# Atoms per target: fine enough that every cut has a choice of places.
ATOMS_PER_TARGET = 9
# One code point takes at most four bytes, and a token at least one byte.
WIDEST_CODE_POINT_BYTES = 4

# How many characters on each side of a place decide its rank among places of the same kind: enough
# to distinguish most places, few enough that an edit changes the rank of very few.
RANK_CONTEXT_CHARS = 24

# Kinds of boundary, worst first.
ANYWHERE, WORD, SENTENCE, PARAGRAPH, HEADING = range(5)
_HASH_BITS = 32

_NEWLINE = r"(?:\r\n|\r|\n)"
_BLANK_LINES = rf"(?:[ \t]*+{_NEWLINE})"
# A single # directly below a line of text is more likely a comment in a listing.
_HASHES = r"(?:#{2,6}|(?<![^\r\n](?:\r\n|\r|\n))#)"
_UNDERLINED = rf"[^\s][^\r\n]{{0,120}}{_NEWLINE}(?:={{3,}}+|-{{3,}}+|~{{3,}}+|\^{{3,}}+)[ \t]*+"
_ABBREVIATION = r"\b(?:Mr|Mrs|Ms|Dr|St|vs|e\.g|i\.e|\p{Lu})\."

# In all patterns every repetition is bounded or possessive, so that the scan is linear on any text.
# A heading includes the blank lines below it, so that it stays with the text that it introduces.
_HEADING = regex.compile(
    rf"(?:{_HASHES}[ \t][^\r\n]*+|{_UNDERLINED}(?=[\r\n])){_NEWLINE}?+{_BLANK_LINES}*+"
)
_BREAK = regex.compile(
    rf"""
    (?= [\r\n.!?…؟۔।。！？｡] )  # passes over most characters at once
    (?: (?P<paragraph> {_NEWLINE}{_BLANK_LINES}++ )
      | (?P<line> {_NEWLINE} )
      | (?P<sentence>
            [.!?…؟۔।](?<!{_ABBREVIATION})["'”’»)\]*_]{{0,3}}[ \t]{{1,4}}(?=[^\s\p{{Ll}}])
          | [。！？｡][」』”’）]{{0,3}}[ \t\u3000]{{0,4}}(?=[^\s」』”’）])
        )
      | (?P<sentence_line> [.!?…؟۔।。！？｡]["'”’»)\]*_」』）]{{0,3}}{_NEWLINE}(?![ \t]*+[\r\n]) )
    )
    """,
    regex.VERBOSE,
)
_WHITESPACE = regex.compile(r"\s++")
# A chunk must not start with half of a line ending or with a combining mark.
_CONTINUES = regex.compile(r"[\p{M}\u200d\ufe0f\U0001f3fb-\U0001f3ff]|(?<=\r)\n")
_GRAPHEME = regex.compile(r"\X")


@dataclass(frozen=True, slots=True)
class ChunkingLimits:
    """How large chunks are. `overlap_tokens` may be zero."""

    single_piece_max_tokens: int = 1200
    target_tokens: int = 900
    overlap_tokens: int = 100

    def __post_init__(self) -> None:
        smallest_target = ATOMS_PER_TARGET * WIDEST_CODE_POINT_BYTES
        if self.target_tokens < smallest_target:
            raise ValueError(f"target_tokens must be at least {smallest_target}")
        if not 0 <= self.overlap_tokens <= self.target_tokens // 4:
            raise ValueError("overlap_tokens must be between 0 and a quarter of target_tokens")
        if self.single_piece_max_tokens < 0:
            raise ValueError("single_piece_max_tokens must not be negative")

    @property
    def max_chunk_tokens(self) -> int:
        return self.target_tokens * 4 // 3

    @property
    def max_overlap_tokens(self) -> int:
        return self.overlap_tokens * 3 // 2

    @property
    def max_part_tokens(self) -> int:
        """A part is what a chunk adds to the previous one: the chunk without its overlap."""
        return self.max_chunk_tokens - self.max_overlap_tokens

    @property
    def min_part_tokens(self) -> int:
        return int(self.max_part_tokens * SMALLEST_PART_SHARE)

    @property
    def max_atom_tokens(self) -> int:
        """At most the room in which an overlap may start, so that some atom starts there."""
        finest = self.target_tokens // ATOMS_PER_TARGET
        return max(WIDEST_CODE_POINT_BYTES, min(finest, self.overlap_tokens or finest))


DEFAULT_LIMITS = ChunkingLimits()


def split(text: str, limits: ChunkingLimits = DEFAULT_LIMITS) -> list[Chunk]:
    """The chunks of `text`, in order; they cover it without a gap."""
    if len(text) <= limits.single_piece_max_tokens * LONGEST_TOKEN_BYTES:
        token_count = count_tokens(text)
        if token_count <= limits.single_piece_max_tokens:
            return [Chunk(0, 0, len(text), text, token_count)]
    return list(_divide(_lay_out(text, limits), limits))


class _Place(NamedTuple):
    """A position where the text may be cut: before the character at `position`."""

    position: int
    kind: int


@dataclass(frozen=True, slots=True)
class _Layout:
    """The atoms of a text: atom i spans positions[i] to positions[i + 1].

    `tokens_before[i]` is the sum over the atoms before i. It is close to, but not equal to, the
    token count of that stretch. So it only guides the choice of cuts; finished chunks are counted
    exactly.
    """

    text: str
    positions: list[int]
    kinds: list[int]
    ranks: list[int]
    tokens_before: list[int]

    def tokens(self, first: int, last: int) -> int:
        return self.tokens_before[last] - self.tokens_before[first]

    def slice(self, first: int, last: int) -> str:
        return self.text[self.positions[first] : self.positions[last]]


def _divide(layout: _Layout, limits: ChunkingLimits) -> Iterator[Chunk]:
    parts = [(0, len(layout.positions) - 1)]
    index = previous_cut = 0
    while parts:
        first, last = parts.pop()
        if layout.tokens(first, last) <= limits.max_part_tokens or last - first == 1:
            start = _overlap_start(layout, previous_cut, first, limits)
            text = layout.slice(start, last)
            token_count = count_tokens(text)
            if token_count <= limits.max_chunk_tokens or last - first == 1:
                start_char = layout.positions[start]
                yield Chunk(index, start_char, layout.positions[last], text, token_count)
                index, previous_cut = index + 1, first
                continue
        cut = _best_cut(layout, first, last, limits)
        # The left part is taken next, so that chunks come out in the order of the text.
        parts.append((cut, last))
        parts.append((first, cut))


def _best_cut(layout: _Layout, first: int, last: int, limits: ChunkingLimits) -> int:
    """The highest-ranked place that leaves a part of fair size on both sides."""
    before = layout.tokens_before
    total = layout.tokens(first, last)
    # A stretch that fits by the estimate but not exactly may be too short for the usual distance.
    room = min(limits.min_part_tokens, total * SMALLEST_PART_SHARE)
    low = max(first + 1, bisect_left(before, before[first] + room, first, last))
    high = min(last, bisect_right(before, before[last] - room, first, last))
    high = max(high, low + 1)
    return _nearest_to_middle(layout.ranks, low, high)


def _nearest_to_middle(ranks: list[int], low: int, high: int) -> int:
    """The position of the highest rank. Repetitive text has it many times: then the one nearest to
    the middle keeps the halves balanced, so that dividing does not become quadratic."""
    best = max(ranks[low:high])
    middle = (low + high) // 2
    after = ranks[middle:high]
    if best in after:
        return middle + after.index(best)
    return middle - 1 - ranks[low:middle][::-1].index(best)


def _overlap_start(layout: _Layout, previous_cut: int, cut: int, limits: ChunkingLimits) -> int:
    """Where the chunk after `cut` starts. It depends only on the text just before the cut, so that
    the same passage gives the same overlap in every revision."""
    if cut == 0 or limits.overlap_tokens == 0:
        return cut
    before = layout.tokens_before
    # Strictly after the previous cut, so that chunk starts always advance.
    earliest = bisect_left(before, before[cut] - limits.max_overlap_tokens, previous_cut + 1, cut)
    latest = bisect_right(before, before[cut] - limits.overlap_tokens // 2, earliest, cut)
    candidates = range(earliest, latest) or range(earliest, cut)

    def preference(place: int) -> tuple[int, int]:
        return -layout.kinds[place], abs(layout.tokens(place, cut) - limits.overlap_tokens)

    for place in sorted(candidates, key=preference):
        if count_tokens(layout.slice(place, cut)) <= limits.max_overlap_tokens:
            return place
    return cut


def _lay_out(text: str, limits: ChunkingLimits) -> _Layout:
    places: list[_Place] = []
    counts: list[int] = []
    written = [*_written_boundaries(text, limits.max_atom_tokens), _Place(len(text), ANYWHERE)]
    for place, following in pairwise(written):
        for atom in _atoms(text, place, following.position, limits.max_atom_tokens):
            places.append(atom[0])
            counts.append(atom[1])
    return _Layout(
        text=text,
        positions=[*(place.position for place in places), len(text)],
        kinds=[place.kind for place in places],
        ranks=[_rank(text, place) for place in places],
        tokens_before=[0, *accumulate(counts)],
    )


def _rank(text: str, place: _Place) -> int:
    start = max(0, place.position - RANK_CONTEXT_CHARS)
    context = text[start : place.position + RANK_CONTEXT_CHARS]
    return place.kind << _HASH_BITS | zlib.crc32(context.encode("utf-8", "replace"))


def _written_boundaries(text: str, min_gap_chars: int) -> Iterator[_Place]:
    """Boundaries that the author wrote, from the start of the text. A boundary that closely follows
    a better or equal one is skipped: a list of single words needs no cut at each."""
    kept = _Place(0, HEADING)
    heading_end = _heading_end(text, 0)
    for match in _BREAK.finditer(text):
        position = match.end()
        if position <= heading_end or position >= len(text) or _CONTINUES.match(text, position):
            continue
        if match.lastgroup == "sentence":
            kind = SENTENCE
        else:
            heading_end = _heading_end(text, position)
            kind = _kind_of_line(text, position, heading_end, match.lastgroup)
        if kind > kept.kind or position - kept.position >= min_gap_chars:
            yield kept
            kept = _Place(position, kind)
    yield kept


def _heading_end(text: str, position: int) -> int:
    """The end of the heading that starts here; `position` itself if there is none."""
    heading = _HEADING.match(text, position)
    return heading.end() if heading else position


def _kind_of_line(text: str, position: int, heading_end: int, preceding: str | None) -> int:
    if heading_end > position:
        return HEADING
    if preceding == "paragraph" or SPEAKER_TURN.match(text, position):
        return PARAGRAPH
    # A line break alone is often only a wrap inside a sentence.
    return SENTENCE if preceding == "sentence_line" else WORD


def _atoms(text: str, place: _Place, end: int, max_tokens: int) -> Iterator[tuple[_Place, int]]:
    """The stretch from `place` to `end` with its token count, in small pieces if it is long."""
    # Very long stretches are divided without counting them: most are too long anyway.
    if end - place.position <= max_tokens * LONGEST_TOKEN_BYTES // 8:
        token_count = _count_between(text, place.position, end)
        if token_count <= max_tokens:
            yield place, token_count
            return
    while place.position < end:
        following = _next_small_cut(text, place.position, end, max_tokens)
        yield place, _count_between(text, place.position, following.position)
        place = following


def _count_between(text: str, start: int, end: int) -> int:
    """Tokens of a stretch as part of its surroundings. The vocabulary joins a space to the word
    after it, so a space before `start` counts here and one before `end` does not."""
    return count_tokens(text[_before_space(text, start) : _before_space(text, end)])


def _before_space(text: str, position: int) -> int:
    if 0 < position < len(text) and text[position - 1] == " " and not text[position].isspace():
        return position - 1
    return position


def _next_small_cut(text: str, start: int, end: int, max_bytes: int) -> _Place:
    """A cut between words or, failing that, between graphemes, at most `max_bytes` further on.

    For any script, a text has at most as many tokens as bytes. The place is chosen by the
    characters around it, so that the cuts of a long unbroken stretch realign after an edit.
    """
    window_end = _bounded_by_bytes(text, start, min(end, start + max_bytes), max_bytes)
    if window_end == end:
        return _Place(end, ANYWHERE)
    nearest = max(start + 1, (start + window_end) // 2)
    kind = WORD
    positions = _word_starts(text, nearest, window_end)
    if not positions:
        kind = ANYWHERE
        positions = _grapheme_starts(text, start, nearest, window_end) or [window_end]
    # The furthest of equal ones, so that a run of one character has as few atoms as possible.
    return _Place(max(reversed(positions), key=lambda at: _small_cut_rank(text, at)), kind)


def _small_cut_rank(text: str, position: int) -> int:
    # Few characters, because this runs for every character of an unbroken stretch.
    return zlib.crc32(text[position - 1 : position + 7].encode("utf-8", "replace"))


def _word_starts(text: str, nearest: int, end: int) -> list[int]:
    return [
        match.end()
        for match in _WHITESPACE.finditer(text, nearest - 1, end)
        if match.end() < end and not _CONTINUES.match(text, match.end())
    ]


def _bounded_by_bytes(text: str, start: int, end: int, max_bytes: int) -> int:
    # "replace" maps one character to one character, so offsets stay correct.
    encoded = text[start:end].encode("utf-8", "replace")[:max_bytes]
    return start + max(1, len(encoded.decode("utf-8", "ignore")))


def _grapheme_starts(text: str, start: int, nearest: int, end: int) -> list[int]:
    if text[start : end + 1].isascii() and "\r" not in text[start:end]:
        return list(range(nearest, end + 1))
    # One character beyond the end shows whether the last grapheme ends there.
    starts = (match.start() for match in _GRAPHEME.finditer(text, start, end + 1))
    return [position for position in starts if position >= nearest]
