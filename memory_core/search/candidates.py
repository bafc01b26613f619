"""Which chunks a query's words lead to, and their BM25: found by the index, scored in Postgres."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from memory_core.kernel.database import Row, Session
from memory_core.search import bm25
from memory_core.search.bm25 import Statistics
from memory_core.search.lexemes import quoted
from memory_core.search.passage_filters import Filters
from memory_core.search.query_text import Asked

# The rarest words of a query are looked for; a long query has more than anybody needs.
MOST_WORDS = 16
# Where all words are common: of these, the number of sets that are looked for together.
_COMMON_TOGETHER = 5
_SETS = 6
# A word is followed through the index for this many chunks, and that many are scored.
_FOLLOWED = 10_000
_FOLLOWED_TO_THE_LETTER = 6_000
_SCORED = 1_000
# For what a query only excludes, this many of the newest chunks are looked at.
_LOOKED_AT = 3_000


@dataclass(frozen=True, slots=True)
class Candidates:
    """The chunks of one query; `limit`: how many of the best are wanted."""

    session: Session
    asked: Asked
    filters: Filters
    statistics: Statistics
    limit: int

    async def scores(self, lexemes: Sequence[str]) -> dict[str, float]:
        """BM25 of chunks by their ids."""
        if self.asked.is_open_ended:
            return await self._without()
        rarest = sorted(lexemes, key=self.statistics.weight, reverse=True)[:MOST_WORDS]
        keys = await self._keys(rarest)
        if not keys or not rarest:
            return {}
        return await scores_of(self.session, keys, rarest, self.statistics, limit=self.limit)

    async def _without(self) -> dict[str, float]:
        """A query that only excludes has no words to score by: the newest come first."""
        rows = await self.session.all(
            "newest_chunks_without",
            words=self.asked.words,
            last=_LOOKED_AT,
            limit=self.limit,
            **self.filters.for_sql(),
        )
        return {row["chunk_id"]: 1.0 / rank for rank, row in enumerate(rows, start=1)}

    async def _keys(self, rarest: list[str]) -> list[Row]:
        filters = self.filters.for_sql()
        if self.asked.to_the_letter:
            return await self.session.all(
                "chunks_to_the_letter",
                words=_has_all(self.asked.words),
                letters=self.asked.words,
                followed=_FOLLOWED_TO_THE_LETTER,
                limit=_SCORED,
                **filters,
            )
        if self.filters.artifact_uid is not None:
            rows = await self.session.all("chunks_of_document", limit=_SCORED + 1, **filters)
            if len(rows) <= _SCORED:
                return rows
        telling = _telling(rarest, self.statistics)
        if not telling:
            return []
        # Each set of common words has its share, so that no set takes the time of the others.
        sets = sum(" & " in words for words, _ in telling)
        return await self.session.all(
            "chunk_candidates",
            words=[words for words, _ in telling],
            weights=[weight for _, weight in telling],
            followed=_FOLLOWED // len(telling) if sets else _FOLLOWED,
            limit=_SCORED,
            **filters,
        )


async def scores_of(
    session: Session,
    keys: list[Row],
    lexemes: Sequence[str],
    statistics: Statistics,
    *,
    limit: int = _SCORED,
) -> dict[str, float]:
    rows = await session.all(
        "score_chunks",
        uids=[key["artifact_uid"] for key in keys],
        revisions=[key["revision_id"] for key in keys],
        indexes=[key["chunk_index"] for key in keys],
        lexemes=[quoted(lexeme) for lexeme in lexemes],
        weights=[statistics.weight(lexeme) for lexeme in lexemes],
        average_length=statistics.average_length,
        thresholds=bm25.occurrence_thresholds(),
        k1=bm25.K1,
        b=bm25.B,
        limit=limit,
    )
    return {row["chunk_id"]: row["score"] for row in rows}


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
        (" & ".join(map(quoted, words)), sum(map(statistics.weight, words))) for words in chosen
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
