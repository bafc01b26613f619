"""Ranking all candidates by scores: the words of a chunk and of its best windows, its title, its
meaning, and within one document its neighbours.

Each score by words is divided by the highest of its kind, so that they can be added; the cosine is
used as it is.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from memory_core.search import bm25
from memory_core.search.passage import FoundChunk, MemoryRecord, ShortText
from memory_core.search.similarity import LEAST_SIMILARITY
from memory_core.search.windows import Highlighter, Window

# A chunk may answer in several places.
_WINDOWS_OF_A_CHUNK = 6


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of each part of the score."""

    meaning: float
    chunk: float = 0.45
    window: float = 0.45
    pairs: float = 0.20
    title: float = 0.10
    # Between documents, what the share of the query that a chunk has at all counts: of two chunks
    # with the same score, one has a word often, the other has more of the words.
    coverage: float = 0.10
    # Within one document, chunks that answer are close together: the weights of the next chunk and
    # the one after it.
    neighbours: tuple[float, ...] = (0.3, 0.1)
    # Between documents, subtracted per logarithm of their number of chunks: the best of many chunks
    # scores high by chance.
    chances: float = 0.03
    # How much the length of a chunk matters: BM25's b.
    length: float = bm25.B
    # Whether windows follow the turns of a transcript or chat.
    by_turns: bool = False


# The weights for each kind of result. A reader of whole chunks wants the stretch of a meeting in
# which a topic is discussed: windows only score, so they cross turns, and neighbouring chunks count
# much. A reader of excerpts wants the message that answers, which may be short and between long
# ones: windows follow turns, a short turn competes alone, long chunks and neighbours count less,
# and meaning counts more, since a short passage has few words.
FOR_CHUNKS = Weights(meaning=0.15)
FOR_EXCERPTS = Weights(meaning=0.3, neighbours=(0.15, 0.05), length=1.0, by_turns=True)
# Events and memories are short and have no neighbours.
FOR_SHORT_TEXTS = Weights(meaning=0.25, coverage=0.0)


# The types that are ranked.
Readable = FoundChunk | MemoryRecord | ShortText


@dataclass(frozen=True, slots=True)
class Candidate:
    row: Readable
    chunk: float  # BM25 of the whole chunk
    cosine: float
    near: bool  # whether it is among the nearest by meaning
    title: float  # the share of the query that its title has
    coverage: float  # how much of the query its text has
    windows: list[Window]
    matches: bool = False  # Postgres says so of a query with operators, such as one that excludes

    @property
    def has_words(self) -> bool:
        """Whether a word of the query itself is there, not only a related one."""
        return self.matches or self.title > 0 or self.coverage > 0

    def similarity(self, window: Window) -> float:
        return self.cosine if window.cosine is None else (self.cosine + window.cosine) / 2


@dataclass(frozen=True, slots=True)
class FoundWindow:
    """A window of a candidate."""

    row: Readable
    window: Window
    score: float
    sources: tuple[str, ...]
    is_far: bool = False  # neither words nor meaning speak for it


def candidate(
    row: Readable,
    highlighter: Highlighter,
    chunk: float | None,
    cosine: float | None,
    floor: float,
    *,
    matches: bool = False,
) -> Candidate:
    """`chunk`: its BM25, if Postgres computed it; `cosine`: None if it is below `floor`."""
    reading = highlighter.read(row.text)
    best = max((window.words for window in reading.windows), default=0.0)
    return Candidate(
        row=row,
        chunk=best if chunk is None else chunk + reading.related,
        cosine=floor if cosine is None else cosine,
        near=cosine is not None,
        title=highlighter.share(row.name),
        coverage=reading.coverage,
        windows=reading.windows,
        matches=matches,
    )


class Ranking:
    """The order of candidates. `cosines`: of windows, where known."""

    def __init__(self, candidates: list[Candidate], weights: Weights, *, inside_one: bool) -> None:
        self._candidates, self._weights, self._inside_one = candidates, weights, inside_one
        windows = [window for item in candidates for window in item.windows]
        self._chunk = max((item.chunk for item in candidates), default=0.0) or 1.0
        self._words = max((window.words for window in windows), default=0.0) or 1.0
        self._pairs = max((window.pairs for window in windows), default=0.0) or 1.0

    def best(self, per_chunk: int = _WINDOWS_OF_A_CHUNK) -> list[FoundWindow]:
        """The best windows of each candidate that do not overlap."""
        lifts = self._of_neighbours() if self._inside_one else self._of_documents()
        ranked = []
        for item, lift in zip(self._candidates, lifts, strict=True):
            for window in self._apart(item, per_chunk):
                total = self._score(item, window) + lift
                far = _is_far(item, window)
                ranked.append(FoundWindow(item.row, window, total, _sources(item), far))
        return sorted(ranked, key=lambda item: (-item.score, item.row.key, item.window.start))

    def with_meaning(self, cosines: Mapping[tuple[str, int, int], float]) -> "Ranking":
        """The same ranking with known cosines of some windows, by candidate, start and end."""

        def with_cosines(item: Candidate) -> list[Window]:
            key = item.row.key
            windows = []
            for window in item.windows:
                cosine = cosines.get((key, window.start, window.end))
                windows.append(window if cosine is None else replace(window, cosine=cosine))
            return windows

        candidates = [replace(item, windows=with_cosines(item)) for item in self._candidates]
        return Ranking(candidates, self._weights, inside_one=self._inside_one)

    def _score(self, item: Candidate, window: Window) -> float:
        weights = self._weights
        lexical = (
            weights.chunk * item.chunk / self._chunk
            + weights.window * window.words / self._words
            + weights.pairs * window.pairs / self._pairs
        )
        meaning = weights.meaning * item.similarity(window)
        return (1 - weights.meaning) * lexical + meaning + weights.title * item.title

    def _apart(self, item: Candidate, most: int) -> list[Window]:
        chosen: list[Window] = []
        for window in sorted(item.windows, key=lambda w: (-self._score(item, w), w.start)):
            if len(chosen) == most:
                break
            if all(window.end <= other.start or window.start >= other.end for other in chosen):
                chosen.append(window)
        return chosen

    def _of_documents(self) -> list[float]:
        """What a chunk gets for how much of the query it has, and loses to luck: it may be the best
        of many."""
        weights = self._weights
        return [
            weights.coverage * item.coverage - weights.chances * math.log(_chunks_of(item.row))
            for item in self._candidates
        ]

    def _of_neighbours(self) -> list[float]:
        """What the chunks before and after add to each chunk of one document."""
        own = {
            item.row.start_char: max((self._score(item, w) for w in item.windows), default=0.0)
            for item in self._candidates
            if isinstance(item.row, FoundChunk)
        }
        places = sorted(own)
        number = {place: index for index, place in enumerate(places)}
        score_at: Callable[[int], float] = lambda index: (  # noqa: E731
            own[places[index]] if 0 <= index < len(places) else 0.0
        )
        lifts = []
        for item in self._candidates:
            index = number[item.row.start_char] if isinstance(item.row, FoundChunk) else None
            steps = enumerate(self._weights.neighbours, start=1) if index is not None else ()
            lifts.append(
                sum(share * (score_at(index - far) + score_at(index + far)) for far, share in steps)
                if index is not None
                else 0.0
            )
        return lifts


def first_of_each_document(ranked: list[FoundWindow]) -> list[FoundWindow]:
    best: dict[str, FoundWindow] = {}
    for hit in ranked:
        if isinstance(hit.row, FoundChunk):
            best.setdefault(hit.row.artifact_uid, hit)
    return list(best.values())


def _is_far(item: Candidate, window: Window) -> bool:
    has_related = window.words > 0
    is_near = item.similarity(window) >= LEAST_SIMILARITY
    return not (item.has_words or has_related or is_near)


def _sources(item: Candidate) -> tuple[str, ...]:
    """How it was found, in the words of the specification."""
    if isinstance(item.row, MemoryRecord):
        words, meaning = "memory_full_text", "dense_memory"
    elif isinstance(item.row, ShortText):
        words, meaning = "full_text", "dense"
    else:
        words = "full_text"
        meaning = "dense_chunks" if item.row.is_chunked else "dense_artifacts"
    sources = {words: item.has_words or not item.near, meaning: item.near}
    return tuple(name for name, is_source in sources.items() if is_source)


def _chunks_of(row: Readable) -> int:
    """The number of chunks of its document."""
    return max(row.chunk_count, 1) if isinstance(row, FoundChunk) else 1
