"""Candidates: of a corpus too large to score whole, the best are among those that are scored."""

import random
from collections import Counter

import psycopg
import pytest

from memory_core.runtime import Runtime
from memory_core.search import bm25
from memory_core.search.candidates import promising_chunks, scores_of
from memory_core.search.passage_filters import Filters
from memory_core.search.word_statistics import statistics_of
from memory_core.upkeep import statistics

COMMON = ["otter", "river", "budget", "lantern", "badger", "garden", "ticket", "harbor", "window"]
CHUNKS = 9_000
TOP = 20


@pytest.fixture
async def texts(sql: psycopg.Connection, runtime: Runtime) -> list[str]:
    """Most have most of the words; how often, and how much else they have, differs."""
    dice = random.Random(11)
    made = []
    for number in range(CHUNKS):
        words = [f"filler{dice.randrange(500)}" for _ in range(dice.choice([5, 20, 60, 150]))]
        for word in COMMON:
            words += [word] * min(int(dice.expovariate(0.6)), 12)
        dice.shuffle(words)
        made.append(f"n{number} " + " ".join(words))
    _plant(sql, made)
    await statistics.rebuild(runtime.database)
    sql.execute("ANALYZE chunk_entry")
    return made


def _plant(sql: psycopg.Connection, texts: list[str]) -> None:
    sql.execute(
        "INSERT INTO artifact_revision (artifact_uid, revision_id, artifact_id, artifact_type, "
        "source_system, source_id, content_hash, token_count, is_chunked, chunk_count, is_latest, "
        "latest_since, partition_key) "
        "SELECT 'u' || n, 'r' || n, 'a' || n, 'note', 'test', n::text, n::text, 1, false, 1, true, "
        "now(), n::text FROM generate_series(0, %s - 1) n",
        [len(texts)],
    )
    sql.execute(
        "INSERT INTO revision_chunk (artifact_uid, revision_id, chunk_index, chunk_id, start_char, "
        "end_char, token_count, content_hash, words) "
        "SELECT 'u' || n - 1, 'r' || n - 1, 0, 'c' || n - 1, 0, length(t), 1, n::text, "
        "to_tsvector('english', t) FROM unnest(%s::text[]) WITH ORDINALITY AS x (t, n)",
        [texts],
    )


async def test_candidates_lose_at_most_one_percent_of_the_score(
    texts: list[str], runtime: Runtime
) -> None:
    counts = [Counter(text.split()) for text in texts]
    dice = random.Random(5)
    for many in range(1, len(COMMON) + 1):
        asked = dice.sample(COMMON, many)
        async with runtime.database.session() as session:
            statistics = await statistics_of(session, asked)
            rarest = sorted(asked, key=statistics.weight, reverse=True)
            keys = await promising_chunks(session, rarest, statistics, Filters())
            scores = await scores_of(session, keys, asked, statistics, limit=TOP)
        weights = {word: statistics.weight(word) for word in asked}
        exhaustive = sorted(
            (
                bm25.score(count, len(text), statistics.average_length, weights)
                for text, count in zip(texts, counts, strict=True)
            ),
            reverse=True,
        )

        assert len(keys) < CHUNKS / 5
        assert sum(scores.values()) >= 0.99 * sum(exhaustive[:TOP]), asked
