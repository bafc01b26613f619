"""Passages ranked by scores: BM25 of a chunk and of its best window, and the meaning of the chunk.

The words find candidates in Postgres, the meaning finds some in Chroma. The best of both are read,
and a chunk's text says which part of it answers the query. Each score is divided by the highest of
its kind, so that they can be added; the cosine is taken as it is.
"""

import asyncio
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from memory_core.embedding import Vector
from memory_core.index.generation import CollectionName
from memory_core.kernel.database import Row, Session
from memory_core.runtime import Runtime
from memory_core.search import bm25
from memory_core.search.bm25 import Statistics
from memory_core.search.passage import Passage, passage_of
from memory_core.search.passage_filters import Filters
from memory_core.search.passage_meaning import nearest
from memory_core.search.query_text import Asked
from memory_core.search.windows import Highlighter, Window

# What each part contributes.
_CHUNK, _WINDOW, _PAIRS = 0.45, 0.45, 0.10
_MEANING = 0.25
_TITLE = 0.1
# Inside one document, chunks that answer lie together.
_NEIGHBOUR = 0.3
# The rarest words of a query are looked for; a long query has more than anybody needs.
_MOST_WORDS = 16
# Where all words are common: of these, the number of sets that are looked for together.
_COMMON_TOGETHER = 5
_SETS = 6
# A word is followed through the index for this many chunks; that many are scored; and the texts of
# the best of them are read.
_FOLLOWED = 10_000
_FOLLOWED_TO_THE_LETTER = 6_000
_SCORED = 1_000
_READ = 50
_READ_IN_DOCUMENT = 250
_NEAREST = 100
# For what a query only excludes, this many of the newest chunks are looked at.
_LOOKED_AT = 3_000
# A chunk may answer in several places.
_WINDOWS_OF_A_CHUNK = 6
_LEXEME = re.compile(r"'((?:''|[^'])*)'")


@dataclass(frozen=True, slots=True)
class _Found:
    """A window of a chunk or of a memory, with the row that it was read from."""

    row: Row
    window: Window
    score: float
    sources: tuple[str, ...]


@dataclass(slots=True)
class _Candidate:
    row: Row
    chunk: float  # BM25 of the whole
    cosine: float
    near: bool
    title: float  # how much of the query its title has
    windows: list[Window]

    @property
    def in_title(self) -> bool:
        return self.title > 0


class ScoredSearch:
    def __init__(
        self,
        runtime: Runtime,
        asked: Asked,
        vector: Vector | None,
        filters: Filters,
        *,
        with_memory: bool,
    ) -> None:
        """`vector`: None when the meaning cannot be asked for."""
        self._runtime, self._asked, self._vector = runtime, asked, vector
        self._filters, self._with_memory = filters, with_memory

    def asking(self, asked: Asked) -> "ScoredSearch":
        """The same search, for the query as it is understood now."""
        return ScoredSearch(
            self._runtime, asked, self._vector, self._filters, with_memory=self._with_memory
        )

    async def best(self, limit: int, *, full_chunks: bool) -> list[Passage]:
        """Best first."""
        (scores, statistics), cosines = await asyncio.gather(self._by_words(), self._by_meaning())
        lexemes = _lexemes(self._asked.every_word)
        weights = {lexeme: statistics.weight(lexeme) for lexeme in lexemes}
        highlighter = Highlighter(lexemes, weights)
        rows = await self._rows(_most_promising(scores, cosines, self._to_read))
        floor = min(cosines.values(), default=0.0)
        candidates = [
            _candidate(row, highlighter, scores.get(key), cosines.get(key), floor)
            for key, row in rows.items()
        ]
        windows = 1 if full_chunks else _WINDOWS_OF_A_CHUNK
        ranked = _ranked(candidates, self._inside_one, windows)
        if full_chunks:
            return _whole_chunks(ranked)[:limit]
        return [_excerpt(found) for found in _with_a_memory(ranked, limit)]

    @property
    def _inside_one(self) -> bool:
        return self._filters.artifact_uid is not None

    @property
    def _to_read(self) -> int:
        return _READ_IN_DOCUMENT if self._inside_one else _READ

    async def _by_words(self) -> tuple[dict[str, float], Statistics]:
        """BM25 of chunks by their ids."""
        lexemes = _lexemes(self._asked.every_word)
        async with self._runtime.database.session() as session:
            statistics = await statistics_of(session, lexemes)
            if self._asked.is_open_ended:
                return await self._without(session), statistics
            rarest = sorted(lexemes, key=statistics.weight, reverse=True)[:_MOST_WORDS]
            keys = await self._candidates(session, rarest, statistics)
            scores = await scores_of(session, keys, rarest, statistics) if keys and rarest else {}
        return scores, statistics

    async def _without(self, session: Session) -> dict[str, float]:
        """A query that only excludes has no words to score by: the newest come first."""
        rows = await session.all(
            "newest_chunks_without",
            words=self._asked.words,
            last=_LOOKED_AT,
            limit=_READ,
            **self._filters.for_sql(),
        )
        return {row["chunk_id"]: 1.0 / rank for rank, row in enumerate(rows, start=1)}

    async def _candidates(
        self, session: Session, rarest: list[str], statistics: Statistics
    ) -> list[Row]:
        filters = self._filters.for_sql()
        if self._asked.to_the_letter:
            return await session.all(
                "chunks_to_the_letter",
                words=_has_all(self._asked.words),
                letters=self._asked.words,
                followed=_FOLLOWED_TO_THE_LETTER,
                limit=_SCORED,
                **filters,
            )
        if self._inside_one:
            rows = await session.all("chunks_of_document", limit=_SCORED + 1, **filters)
            if len(rows) <= _SCORED:
                return rows
        telling = _telling(rarest, statistics)
        if not telling:
            return []
        # Each set of common words has its share, so that no set takes the time of the others.
        sets = sum(" & " in words for words, _ in telling)
        return await session.all(
            "chunk_candidates",
            words=[words for words, _ in telling],
            weights=[weight for _, weight in telling],
            followed=_FOLLOWED // len(telling) if sets else _FOLLOWED,
            limit=_SCORED,
            **filters,
        )

    async def _by_meaning(self) -> dict[str, float]:
        """Cosines by the ids of chunks, documents and memories."""
        names = [CollectionName.CHUNKS, CollectionName.ARTIFACTS]
        if self._with_memory:
            names.append(CollectionName.MEMORY)
        answers = await asyncio.gather(
            *(nearest(self._runtime, name, self._vector, self._filters, _NEAREST) for name in names)
        )
        return {hit.id: 1.0 - hit.distance for hits in answers for hit in hits}

    async def _rows(self, keys: list[str]) -> dict[str, Row]:
        """What Postgres knows of these; it has the last word."""
        # What the query excludes must not come back by its meaning.
        letters = self._asked.words if self._asked.to_the_letter else None
        memories: list[Row] = []
        async with self._runtime.database.session() as session:
            chunks = await session.all(
                "passages_by_id", ids=keys, letters=letters, **self._filters.for_sql()
            )
            if self._with_memory:
                memories = await self._memories(session, keys, letters)
        wanted = set(keys)
        found: dict[str, Row] = {}
        for row in chunks:
            # A document in several chunks is found by these.
            whole = not row["is_chunked"] and row["artifact_id"] in wanted
            if row["chunk_id"] in wanted or whole:
                found[row["artifact_id"] if whole else row["chunk_id"]] = row
        return found | {row["memory_id"]: row for row in memories}

    async def _memories(self, session: Session, keys: list[str], letters: str | None) -> list[Row]:
        each_word = list(self._asked.every_word[:_MOST_WORDS])
        any_word = " | ".join(f"({word})" for word in each_word)
        words = self._asked.words if self._asked.to_the_letter else any_word
        by_words: list[Row] = []
        if words and not self._asked.is_open_ended:
            by_words = await session.all(
                "best_memories", words=words, each_word=each_word, limit=_NEAREST
            )
        ids = [*keys, *(row["memory_id"] for row in by_words)]
        return await session.all("memories_by_id", ids=ids, letters=letters)


async def statistics_of(session: Session, lexemes: Sequence[str]) -> Statistics:
    row = await session.one("passage_statistics")
    assert row is not None
    quoted = {_quoted(lexeme): lexeme for lexeme in lexemes}
    counted = await session.all("count_words_of_chunks", words=list(quoted)) if quoted else []
    return Statistics(
        passages=max(float(row["passages"]), 1.0),
        average_length=float(row["average_length"] or 1.0),
        frequencies={quoted[item["word"]]: float(item["found"]) for item in counted},
    )


async def scores_of(
    session: Session, keys: list[Row], lexemes: list[str], statistics: Statistics
) -> dict[str, float]:
    rows = await session.all(
        "score_chunks",
        uids=[key["artifact_uid"] for key in keys],
        revisions=[key["revision_id"] for key in keys],
        indexes=[key["chunk_index"] for key in keys],
        lexemes=[_quoted(lexeme) for lexeme in lexemes],
        weights=[statistics.weight(lexeme) for lexeme in lexemes],
        average_length=statistics.average_length,
        thresholds=bm25.occurrence_thresholds(),
        k1=bm25.K1,
        b=bm25.B,
        limit=_READ_IN_DOCUMENT,
    )
    return {row["chunk_id"]: row["score"] for row in rows}


def _lexemes(words: Iterable[str]) -> list[str]:
    """The lexemes of tsqueries, each once, in order."""
    found = [item.replace("''", "'") for word in words for item in _LEXEME.findall(word)]
    return list(dict.fromkeys(found))


def _quoted(lexeme: str) -> str:
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


def _telling(rarest: Sequence[str], statistics: Statistics) -> list[tuple[str, float]]:
    """The tsqueries that candidates are found by, with their weights: the rarest words, as long as
    they leave few; and of the common ones those that stand together in few."""
    followed = 0.0
    chosen: list[tuple[str, ...]] = []
    for lexeme in rarest:
        followed += statistics.frequencies.get(lexeme, 0.0)
        if followed > _FOLLOWED:
            break
        chosen.append((lexeme,))
    common = rarest[len(chosen) :][:_COMMON_TOGETHER]
    if not chosen:
        chosen, expected = _together(common, statistics)
        if expected < _SCORED:
            chosen += [(lexeme,) for lexeme in rarest[:1]]
    return [
        (" & ".join(map(_quoted, words)), sum(map(statistics.weight, words))) for words in chosen
    ]


def _together(common: Sequence[str], statistics: Statistics) -> tuple[list[tuple[str, ...]], float]:
    """Sets of words, the largest first, that few chunks have, and how many chunks that is: as if
    words had nothing to do with each other."""
    expected = 0.0
    chosen: list[tuple[str, ...]] = []
    for size in range(len(common), 1, -1):
        for words in combinations(common, size):
            shares = (statistics.frequencies.get(w, 0.0) / statistics.passages for w in words)
            more = statistics.passages * math.prod(shares)
            if expected + more > _FOLLOWED or len(chosen) == _SETS:
                return chosen, expected
            expected += more
            chosen.append(words)
    return chosen, expected


def _has_all(words: str) -> str:
    """Of a tsquery what an index can tell: phrases as words that all occur."""
    return re.sub(r"<(?:-|\d+)>", "&", words)


def _most_promising(
    scores: Mapping[str, float], cosines: Mapping[str, float], limit: int
) -> list[str]:
    highest = max(scores.values(), default=0.0) or 1.0
    floor = min(cosines.values(), default=0.0)
    together = {
        key: (1 - _MEANING) * scores.get(key, 0.0) / highest + _MEANING * cosines.get(key, floor)
        for key in {**scores, **cosines}
    }
    return sorted(together, key=lambda key: (-together[key], key))[:limit]


def _candidate(
    row: Row,
    highlighter: Highlighter,
    chunk: float | None,
    cosine: float | None,
    floor: float,
) -> _Candidate:
    windows = highlighter.windows(row["content"] if "memory_id" in row else row["text"])
    best = max((window.words for window in windows), default=0.0)
    return _Candidate(
        row=row,
        chunk=best if chunk is None else chunk,
        cosine=floor if cosine is None else cosine,
        near=cosine is not None,
        title=highlighter.share(row.get("title") or ""),
        windows=windows,
    )


def _ranked(candidates: list[_Candidate], inside_one: bool, per_chunk: int) -> list[_Found]:
    """Of each chunk its best windows that do not overlap."""
    chunk = max((item.chunk for item in candidates), default=0.0) or 1.0
    windows = [window for item in candidates for window in item.windows]
    words = max((window.words for window in windows), default=0.0) or 1.0
    pairs = max((window.pairs for window in windows), default=0.0) or 1.0

    def score(item: _Candidate, window: Window) -> float:
        lexical = (
            _CHUNK * item.chunk / chunk
            + _WINDOW * window.words / words
            + _PAIRS * window.pairs / pairs
        )
        return (1 - _MEANING) * lexical + _MEANING * item.cosine + _TITLE * item.title

    lifted = _neighbours(candidates, score) if inside_one else [0.0] * len(candidates)
    found = []
    for item, lift in zip(candidates, lifted, strict=True):
        chosen: list[Window] = []
        for window in sorted(item.windows, key=lambda w: (-score(item, w), w.start)):
            if len(chosen) == per_chunk:
                break
            if all(window.end <= other.start or window.start >= other.end for other in chosen):
                chosen.append(window)
                total = score(item, window) + lift
                found.append(_Found(item.row, window, total, _sources(item, window)))
    return sorted(found, key=lambda item: (-item.score, _order(item.row), item.window.start))


def _sources(item: _Candidate, window: Window) -> tuple[str, ...]:
    """By what it was found, in the words of the specification."""
    if "memory_id" in item.row:
        words, meaning = "memory_full_text", "dense_memory"
    else:
        words = "full_text"
        meaning = "dense_chunks" if item.row["is_chunked"] else "dense_artifacts"
    found = {words: item.in_title or window.words > 0, meaning: item.near}
    return tuple(name for name, is_source in found.items() if is_source)


def _with_a_memory(ranked: list[_Found], limit: int) -> list[_Found]:
    """The best; the last of them is the best memory that has words of the query, where none is
    among them: a long document with the same words in many places would hide all memories."""
    shown = ranked[:limit]
    if any("memory_id" in found.row for found in shown):
        return shown
    memories = (
        found for found in ranked[limit:] if "memory_id" in found.row and found.window.words > 0
    )
    if (best := next(memories, None)) is None:
        return shown
    return [*shown[: limit - 1], best]


def _excerpt(found: _Found) -> Passage:
    whole = passage_of(found.row, found.score, found.sources)
    return _cut(whole, found.window.start, found.window.end, found.window)


def _whole_chunks(ranked: list[_Found]) -> list[Passage]:
    """Chunks overlap: what an earlier one has shown already is left out of a later one."""
    shown: dict[str, list[tuple[int, int]]] = {}
    passages = []
    for found in ranked:
        whole = passage_of(found.row, found.score, found.sources)
        if whole.start_char is None or whole.artifact_uid is None or whole.end_char is None:
            passages.append(whole)
            continue
        start, end = whole.start_char, whole.end_char
        for first, last in shown.setdefault(whole.artifact_uid, []):
            if first <= start < last:
                start = last
            if first < end <= last:
                end = first
        if start < end:
            shown[whole.artifact_uid].append((start, end))
            offset = whole.start_char
            passages.append(_cut(whole, start - offset, end - offset, found.window))
    return passages


def _cut(whole: Passage, start: int, end: int, window: Window) -> Passage:
    """A part of a passage; offsets are those inside it."""
    text = whole.text[start:end]
    if whole.start_char is None:
        return replace(whole, text=text)
    offset = whole.start_char
    first, last = max(window.start, start), min(window.end, end)
    return replace(
        whole,
        text=text,
        start_char=offset + start,
        end_char=offset + end,
        highlight=(offset + first, offset + last) if first < last else None,
    )


def _neighbours(
    candidates: list[_Candidate], score: Callable[[_Candidate, Window], float]
) -> list[float]:
    """What the chunks before and after add to each chunk of one document."""
    own = {
        item.row["start_char"]: max((score(item, window) for window in item.windows), default=0.0)
        for item in candidates
        if "memory_id" not in item.row
    }
    places = sorted(own)
    position = {place: number for number, place in enumerate(places)}
    lifts = []
    for item in candidates:
        number = position.get(item.row.get("start_char"))
        if number is None:
            lifts.append(0.0)
            continue
        beside = [n for n in (number - 1, number + 1) if 0 <= n < len(places)]
        lifts.append(_NEIGHBOUR * sum(own[places[n]] for n in beside))
    return lifts


def _order(row: Row) -> str:
    """For equal scores: the same order every time."""
    return str(row["memory_id"] if "memory_id" in row else row["chunk_id"])
