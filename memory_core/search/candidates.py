"""Candidate chunks for the words of a query, and their BM25: an index finds them, Postgres scores
them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memory_core.kernel.database import Session
from memory_core.search import bm25
from memory_core.search.bm25 import Statistics
from memory_core.search.lexemes import quoted
from memory_core.search.passage_filters import Filters
from memory_core.search.passage_words import newest_without
from memory_core.search.query_text import Asked

# Only the rarest words of a query are used; a long query has more than it needs.
MOST_WORDS = 16
# The rarest words lead to all their chunks, up to this number.
_FOLLOWED = 8_000
# The heaviest common words lead to the chunks in which they are strong.
_MOST_STRONG = 3
_FOLLOWED_STRONG = 16_000
_FOLLOWED_STRONG_OF_MANY = 9_000
# Sets of common words lead to the chunks that have a whole set. Larger sets lead to the chunks that
# lack at most one of the words.
_MOST_COMMON = 8
_WHOLE_SETS = (4, 5)
_LARGE_SETS = (6, _MOST_COMMON)
_FOLLOWED_SETS = 3_000
_FOLLOWED_TO_THE_LETTER = 6_000
# How many chunks are scored: more if many common words make the best ones uncertain.
_SCORED = 500
_FEW_COMMON = 3
_SCORED_OF_MANY = 900
_SCORED_OF_ONE = 1_000


@dataclass(frozen=True, slots=True)
class ChunkKey:
    artifact_uid: str
    revision_id: str
    chunk_index: int


@dataclass(frozen=True, slots=True)
class ChunkScore:
    chunk_id: str
    score: float


@dataclass(frozen=True, slots=True)
class Candidates:
    """The chunks of one query. `limit`: how many of the best are wanted. `length_weight`: how much
    the length of a chunk matters."""

    session: Session
    asked: Asked
    filters: Filters
    statistics: Statistics
    limit: int
    length_weight: float = bm25.B

    async def scores(self, lexemes: Sequence[str]) -> dict[str, float]:
        """BM25 of chunks by their ids."""
        if self.asked.is_open_ended:
            return await self._without()
        rarest = sorted(lexemes, key=self.statistics.weight, reverse=True)[:MOST_WORDS]
        keys = await self._keys(rarest)
        if not keys or not rarest:
            return {}
        return await scores_of(
            self.session, keys, rarest, self.statistics,
            limit=self.limit, length_weight=self.length_weight,
        )  # fmt: skip

    async def _without(self) -> dict[str, float]:
        """A query that only excludes has no words to score by, so the newest chunks come first."""
        ids = await newest_without(self.session, self.asked, self.filters, self.limit)
        return {id_: 1.0 / rank for rank, id_ in enumerate(ids, start=1)}

    async def _keys(self, rarest: list[str]) -> list[ChunkKey]:
        filters = self.filters.for_sql()
        if self.asked.to_the_letter:
            return await self.session.rows(
                ChunkKey,
                "chunks_to_the_letter",
                words=_with_all_words(self.asked.words),
                letters=self.asked.words,
                followed=_FOLLOWED_TO_THE_LETTER,
                limit=_SCORED_OF_ONE,
                **filters,
            )
        if self.filters.artifact_uid is not None:
            keys = await self.session.rows(
                ChunkKey, "chunks_of_document", limit=_SCORED_OF_ONE + 1, **filters
            )
            if len(keys) <= _SCORED_OF_ONE:
                return keys
        return await promising_chunks(self.session, rarest, self.statistics, self.filters)


async def promising_chunks(
    session: Session, rarest: Sequence[str], statistics: Statistics, filters: Filters
) -> list[ChunkKey]:
    """The chunks of the rarest words, and those in which common words are strong."""
    rare = _rare(rarest, statistics)
    expected = sum(statistics.frequencies.get(lexeme, 0.0) for lexeme in rare)
    common = list(rarest[len(rare) :][:_MOST_COMMON])
    # If rare words lead to few chunks, all of these are scored.
    strong = [*(rare if expected > _SCORED else ()), *common[:_MOST_STRONG]]
    sets = _sets(common, statistics) if common else {}
    is_few = len(common) <= _FEW_COMMON
    return await session.rows(
        ChunkKey,
        "chunk_candidates",
        rare=[quoted(lexeme) for lexeme in rare],
        rare_weights=[statistics.weight(lexeme) for lexeme in rare],
        strong=strong,
        strong_weights=[statistics.weight(lexeme) for lexeme in strong],
        strong_rare=[lexeme in rare for lexeme in strong],
        sets=list(sets),
        set_weights=list(sets.values()),
        followed=_FOLLOWED,
        followed_strong=(_FOLLOWED_STRONG if is_few else _FOLLOWED_STRONG_OF_MANY)
        // max(len(strong), 1),
        followed_sets=_FOLLOWED_SETS,
        limit=_SCORED if is_few else _SCORED_OF_MANY,
        **filters.for_sql(),
    )


async def scores_of(
    session: Session,
    keys: list[ChunkKey],
    lexemes: Sequence[str],
    statistics: Statistics,
    *,
    limit: int = _SCORED_OF_ONE,
    length_weight: float = bm25.B,
) -> dict[str, float]:
    scored = await session.rows(
        ChunkScore,
        "score_chunks",
        # Texts with line breaks: as arrays, some thousand values would be quoted one by one.
        uids="\n".join(key.artifact_uid for key in keys),
        revisions="\n".join(key.revision_id for key in keys),
        indexes="\n".join(str(key.chunk_index) for key in keys),
        lexemes=[quoted(lexeme) for lexeme in lexemes],
        weights=[statistics.weight(lexeme) for lexeme in lexemes],
        average_length=statistics.average_length,
        thresholds=bm25.occurrence_thresholds(),
        k1=bm25.K1,
        b=length_weight,
        limit=limit,
    )
    return {chunk.chunk_id: chunk.score for chunk in scored}


def _rare(rarest: Sequence[str], statistics: Statistics) -> list[str]:
    followed = 0.0
    for number, lexeme in enumerate(rarest):
        followed += statistics.frequencies.get(lexeme, 0.0)
        if followed > _FOLLOWED:
            return list(rarest[:number])
    return list(rarest)


def _sets(common: Sequence[str], statistics: Statistics) -> dict[str, float]:
    """Sets of the heaviest words: the tsquery for the chunks that have them, and their weight."""
    sizes = _WHOLE_SETS if len(common) > min(_WHOLE_SETS) else (len(common),)
    sets = {}
    for size in sizes:
        words = common[:size]
        sets[_all_of(words)] = sum(map(statistics.weight, words))
    for size in _LARGE_SETS:
        if size <= len(common):
            words = common[:size]
            sets[_all_but_one(words)] = sum(map(statistics.weight, words)) * (1 - 1 / size)
    return sets


def _all_of(lexemes: Sequence[str]) -> str:
    return " & ".join(map(quoted, lexemes))


def _all_but_one(lexemes: Sequence[str]) -> str:
    """Chunks that lack at most one word, as two halves of which one must be complete: for eight
    words the index checks 24 terms, and 56 with one clause per missing word."""
    if len(lexemes) == 1:
        return ""
    half = len(lexemes) // 2
    first, second = lexemes[:half], lexemes[half:]
    either = [(first, second), (second, first)]
    clauses = [[_all_of(whole), _all_but_one(other)] for whole, other in either]
    return "(" + " | ".join(" & ".join(filter(None, clause)) for clause in clauses) + ")"


def _with_all_words(words: str) -> str:
    """The part of a tsquery that an index can check: all words of a phrase occur."""
    return re.sub(r"<(?:-|\d+)>", "&", words)
