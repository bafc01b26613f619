"""The scores of passages: Postgres' BM25 equals the formula, and its statistics are exact."""

import math
import random
import re
from collections import Counter

import psycopg
import pytest

from memory_core.runtime import Runtime
from memory_core.search import bm25
from memory_core.search.candidates import promising_chunks, scores_of
from memory_core.search.passage_filters import Filters
from memory_core.search.word_statistics import statistics_of
from memory_core.upkeep import statistics
from tests.integration.searched_text import note
from tests.tool_client import ToolClient

# Words that the stemmer leaves alone and that no list of stop words has.
WORDS = ["otter", "river", "budget", "lantern", "badger", "garden", "ticket", "harbor"]


def corpus(dice: random.Random) -> list[str]:
    """Texts of very different lengths; some words are in most of them, some in few."""
    texts = []
    for number in range(30):
        length = dice.choice([3, 10, 40, 150, 400])
        ranks = [min(int(dice.expovariate(0.5)), len(WORDS) - 1) for _ in range(length)]
        texts.append(f"text{number} " + " ".join(WORDS[rank] for rank in ranks))
    return texts


def expected(texts: list[str], query: list[str]) -> dict[str, float]:
    """Plain BM25 over all texts, as it stands in books."""
    counts = [Counter(re.findall(r"\w+", text)) for text in texts]
    average = sum(map(len, texts)) / len(texts)
    frequency = {word: sum(word in count for count in counts) for word in query}
    scores = {}
    for text, count in zip(texts, counts, strict=True):
        total = 0.0
        for word in query:
            weight = math.log(1 + (len(texts) - frequency[word] + 0.5) / (frequency[word] + 0.5))
            damping = 1.2 * (0.25 + 0.75 * len(text) / average)
            total += weight * count[word] * 2.2 / (count[word] + damping)
        scores[text] = total
    return scores


async def told(runtime: Runtime, sql: psycopg.Connection, query: list[str]) -> dict[str, float]:
    """What Postgres computes, by text."""
    async with runtime.database.session() as session:
        statistics = await statistics_of(session, query)
        keys = await promising_chunks(session, query, statistics, Filters())
        scores = await scores_of(session, keys, query, statistics)
    texts = dict(
        sql.execute(
            "SELECT c.chunk_id, t.content FROM revision_chunk c "
            "JOIN revision_text t USING (artifact_uid, revision_id)"
        ).fetchall()
    )
    return {texts[chunk]: score for chunk, score in scores.items()}


@pytest.mark.parametrize("seed", range(4))
async def test_postgres_scores_as_the_formula_does(
    tools: ToolClient, runtime: Runtime, sql: psycopg.Connection, seed: int
) -> None:
    dice = random.Random(seed)
    texts = corpus(dice)
    # The planner's statistics of an earlier moment, as autovacuum leaves them, do not matter.
    await note(tools, " ".join(WORDS), source_id="0")
    sql.execute("ANALYZE chunk_entry")
    for number, text in enumerate(texts):
        await note(tools, text, source_id=str(number))
    query = dice.sample(WORDS, 3)

    scored = await told(runtime, sql, query)

    wanted = {text: score for text, score in expected(texts, query).items() if score > 0}
    assert scored.keys() == wanted.keys()
    for text, score in scored.items():
        assert score == pytest.approx(wanted[text], abs=1e-6)


async def test_statistics_are_exact_after_revisions_restores_relabelling_and_deletions(
    tools: ToolClient, runtime: Runtime, sql: psycopg.Connection
) -> None:
    dice = random.Random(7)
    for step in range(60):
        source = str(dice.randrange(8))
        stored = await note(
            tools, f"{WORDS[dice.randrange(3)]} " * dice.randrange(1, 900), source_id=source,
            title=dice.choice(["One", "Two"]),
        )  # fmt: skip
        if step % 7 == 0:
            await tools("artifact_delete", artifact_uid=stored["artifact_uid"])
        if step % 10 == 0:
            await statistics.rebuild(runtime.database)

    assert kept_statistics(sql) == real_statistics(sql)


async def test_housekeeping_repairs_statistics_that_were_changed_by_hand(
    tools: ToolClient, runtime: Runtime, sql: psycopg.Connection
) -> None:
    await note(tools, "otter river")
    sql.execute("UPDATE passage_statistics SET passages = 7, characters = 0")

    counted = await statistics.rebuild(runtime.database)

    assert counted == 1
    assert kept_statistics(sql) == real_statistics(sql)


def kept_statistics(sql: psycopg.Connection) -> object:
    return sql.execute("SELECT sum(passages), sum(characters) FROM passage_statistics").fetchone()


def real_statistics(sql: psycopg.Connection) -> object:
    return sql.execute(
        "SELECT count(*), sum(c.end_char - c.start_char) FROM artifact_revision r "
        "JOIN revision_chunk c USING (artifact_uid, revision_id) WHERE r.is_latest"
    ).fetchone()


@pytest.mark.parametrize("seed", range(3))
async def test_an_unrelated_document_changes_scores_by_its_statistics_alone_until_it_is_deleted(
    tools: ToolClient, runtime: Runtime, sql: psycopg.Connection, seed: int
) -> None:
    dice = random.Random(100 + seed)
    texts = corpus(dice)
    for number, text in enumerate(texts):
        await note(tools, text, source_id=str(number))
    query = dice.sample(WORDS, 3)
    before = await told(runtime, sql, query)
    unrelated = "invoice monday " * dice.choice([1, 50, 400])

    other = await note(tools, unrelated, source_id="other")
    during = await told(runtime, sql, query)
    await tools("artifact_delete", artifact_uid=other["artifact_uid"])
    after = await told(runtime, sql, query)

    # Its number and length are all that the formula sees of it.
    wanted = expected([*texts, unrelated], query)
    assert during.keys() == before.keys()
    for text, score in during.items():
        assert score == pytest.approx(wanted[text], abs=1e-6)
    assert after == before


async def test_an_unrelated_document_does_not_reorder_others(tools: ToolClient) -> None:
    for number, text in enumerate(["otter otter river", "otter river garden", "otter badger"]):
        await note(tools, text, source_id=str(number))
    before = await order(tools, "otter river")
    other = await note(tools, "Invoices are sent on Mondays.", source_id="other")
    during = [text for text in await order(tools, "otter river") if "Invoices" not in text]

    await tools("artifact_delete", artifact_uid=other["artifact_uid"])

    assert before == during == await order(tools, "otter river")


async def order(tools: ToolClient, query: str) -> list[str]:
    return [hit["text"] for hit in (await tools("hybrid_search", query=query))["results"]]


@pytest.mark.parametrize("often", [1, 2, 3, 7, 50, 254])
def test_the_rank_of_a_lexeme_tells_how_often_it_occurs(
    sql: psycopg.Connection, often: int
) -> None:
    row = sql.execute(
        "SELECT width_bucket(ts_rank('{1,1,1,1}', to_tsvector('english', %s), 'otter')::float8, "
        "%s::float8[])",
        ("otter " * often + "river", bm25.occurrence_thresholds()),
    ).fetchone()

    assert row == (often,)


async def test_a_search_works_with_planner_statistics_of_a_table_that_was_emptied_since(
    tools: ToolClient, sql: psycopg.Connection
) -> None:
    for number in range(20):
        await note(tools, f"otter river number{number}", source_id=str(number))
    sql.execute("ANALYZE chunk_entry")
    sql.execute("UPDATE pg_class SET reltuples = -1 WHERE relname = 'chunk_entry'")

    answer = await tools("hybrid_search", query="otter river number7")

    assert "number7" in answer["results"][0]["text"]
