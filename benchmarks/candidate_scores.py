"""How much of the best scores the candidates of a search have, compared with all passages."""

import random
from collections.abc import Sequence
from statistics import mean

from rich.table import Table

from memory_core.kernel.database import Session
from memory_core.runtime import Runtime
from memory_core.search import bm25
from memory_core.search.bm25 import Statistics
from memory_core.search.candidates import promising_chunks, scores_of
from memory_core.search.lexemes import quoted
from memory_core.search.passage_filters import Filters
from memory_core.search.word_statistics import statistics_of

NUMBERS = (1, 2, 3, 4, 6, 8)
QUERIES = 3
TOP = 20

# The same formula as in `score_chunks`, over every passage that has some of the words.
_ALL = """
SELECT sum(score) AS total FROM (
    SELECT s.score
    FROM visible_chunk e JOIN revision_chunk c USING (artifact_uid, revision_id, chunk_index)
    CROSS JOIN LATERAL (
        SELECT sum(l.weight * o.often * (%(k1)s::float8 + 1)
                   / (o.often + %(k1)s::float8 * (1 - %(b)s::float8 + %(b)s::float8
                      * (c.end_char - c.start_char) / %(average_length)s::float8))) AS score
        FROM unnest(%(lexemes)s::tsquery[], %(weights)s::float8[]) AS l (lexeme, weight)
        CROSS JOIN LATERAL (
            SELECT width_bucket(ts_rank('{1,1,1,1}', c.words, l.lexeme)::float8,
                                %(thresholds)s::float8[])::float8 AS often) o
        WHERE o.often > 0
    ) s
    WHERE c.words @@ %(any_word)s::tsquery
    ORDER BY s.score DESC
    LIMIT %(top)s
) best
"""


async def candidate_scores(runtime: Runtime, words: Sequence[str]) -> Table:
    """`words`: common ones, as lexemes."""
    table = Table("common words", f"of the {TOP} best scores", "worst query", "passages scored")
    for number in NUMBERS:
        dice = random.Random(number)
        shares, scored = [], []
        for _ in range(QUERIES):
            lexemes = dice.sample(list(words), number)
            async with runtime.database.session() as session:
                statistics = await statistics_of(session, lexemes)
                rarest = sorted(lexemes, key=statistics.weight, reverse=True)
                keys = await promising_chunks(session, rarest, statistics, Filters())
                scores = await scores_of(session, keys, lexemes, statistics, limit=TOP)
                best = await _best_of_all(session, lexemes, statistics)
            shares.append(sum(scores.values()) / best)
            scored.append(len(keys))
        table.add_row(
            str(number), f"{mean(shares):.2%}", f"{min(shares):.2%}", f"{mean(scored):,.0f}"
        )
    return table


async def _best_of_all(session: Session, lexemes: Sequence[str], statistics: Statistics) -> float:
    cursor = await session.connection.execute(
        _ALL,
        {
            "lexemes": [quoted(lexeme) for lexeme in lexemes],
            "any_word": " | ".join(map(quoted, lexemes)),
            "weights": [statistics.weight(lexeme) for lexeme in lexemes],
            "average_length": statistics.average_length,
            "thresholds": bm25.occurrence_thresholds(),
            "k1": bm25.K1,
            "b": bm25.B,
            "top": TOP,
        },
    )
    row = await cursor.fetchone()
    assert row is not None
    return float(row["total"])
