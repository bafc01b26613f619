"""The vocabulary: exact at every moment, whatever happens to documents; and what it is good for."""

import random

import psycopg
import pytest

from memory_core.runtime import Runtime
from memory_core.search import vocabulary
from memory_core.search.word_statistics import statistics_of
from memory_core.upkeep import statistics
from tests.integration.searched_text import note
from tests.tool_client import ToolClient

WORDS = ["otter", "river", "budget", "lantern", "badger", "garden", "ticket", "harbor"]


def real_frequencies(sql: psycopg.Connection) -> dict[str, int]:
    return dict(
        sql.execute(
            "SELECT w.lexeme, count(*) FROM artifact_revision r "
            "JOIN revision_chunk c USING (artifact_uid, revision_id) "
            "CROSS JOIN unnest(tsvector_to_array(c.words)) AS w (lexeme) "
            "WHERE r.is_latest GROUP BY w.lexeme"
        ).fetchall()
    )


def folded_frequencies(sql: psycopg.Connection) -> dict[str, int]:
    return dict(
        sql.execute(
            "SELECT lexeme, passages FROM word_frequency WHERE passages <> 0 ORDER BY lexeme"
        ).fetchall()
    )


async def told_frequencies(runtime: Runtime) -> dict[str, float]:
    async with runtime.database.session() as session:
        statistics = await statistics_of(session, WORDS)
    return {word: number for word, number in statistics.frequencies.items() if number}


async def test_frequencies_are_exact_after_revisions_restores_relabelling_and_deletions(
    tools: ToolClient, runtime: Runtime, sql: psycopg.Connection
) -> None:
    dice = random.Random(3)
    for step in range(50):
        words = dice.sample(WORDS, 3)
        stored = await note(
            tools, " ".join(words) * dice.randrange(1, 500), source_id=str(dice.randrange(6)),
            title=dice.choice(WORDS),
        )  # fmt: skip
        if step % 7 == 0:
            await tools("artifact_delete", artifact_uid=stored["artifact_uid"])
        if step % 11 == 0:
            await vocabulary.fold_all(runtime.database)
        real = real_frequencies(sql)
        assert await told_frequencies(runtime) == {w: real[w] for w in WORDS if w in real}

    await vocabulary.fold_all(runtime.database)

    assert folded_frequencies(sql) == real_frequencies(sql)


async def test_a_search_folds_when_much_has_changed(
    tools: ToolClient, runtime: Runtime, sql: psycopg.Connection
) -> None:
    await note(tools, "otter river")
    sql.execute(
        "INSERT INTO word_change (passages, words) SELECT 1, 'badger' "
        "FROM generate_series(1, %s)", [vocabulary.MOST_UNFOLDED]
    )  # fmt: skip

    counted = await told_frequencies(runtime)

    assert counted["badger"] == vocabulary.MOST_UNFOLDED
    assert sql.execute("SELECT count(*) FROM word_change").fetchone() == (0,)


async def test_two_sessions_do_not_fold_the_same_rows(
    tools: ToolClient, runtime: Runtime, sql: psycopg.Connection
) -> None:
    await note(tools, "otter river")
    async with runtime.database.transaction() as one:
        await one.value(bool, "try_lock_vocabulary")
        async with runtime.database.session() as other:
            assert await vocabulary.fold(other) == 0
    async with runtime.database.session() as other:
        assert await vocabulary.fold(other) > 0


async def test_housekeeping_repairs_a_vocabulary_that_was_changed_by_hand(
    tools: ToolClient, runtime: Runtime, sql: psycopg.Connection
) -> None:
    await note(tools, "otter river")
    await vocabulary.fold_all(runtime.database)
    sql.execute("UPDATE word_frequency SET passages = 7")
    sql.execute("INSERT INTO word_frequency (lexeme, passages) VALUES ('unicorn', 2)")
    assert not await vocabulary.is_right(runtime.database)

    await statistics.rebuild(runtime.database)

    assert folded_frequencies(sql) == real_frequencies(sql)
    assert await vocabulary.is_right(runtime.database)


@pytest.mark.parametrize("query", ["lantren", "lanten", "lanterns", "lanttern", "lamtern"])
async def test_a_mistyped_word_finds_what_is_meant(tools: ToolClient, query: str) -> None:
    await note(tools, "The lantern hangs in the hall.", source_id="1")
    await note(tools, "Invoices are sent on Mondays.", source_id="2")

    answer = await tools("hybrid_search", query=f"{query} hanging")

    assert "lantern" in answer["results"][0]["text"]
    assert "full_text" in answer["results"][0]["sources"]


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("cafe", "café"),
        ("resume", "résumé"),
        ("Muller", "Müller"),
        ("Mueller", "Müller"),
        ("Müller", "Mueller"),
        ("müller", "muller"),
        ("groesse", "Größe"),
        ("елка", "Ёлка"),
        ("Köster", "Ko\u0308ster"),  # as some files have it
        ("Koster", "Ko\u0308ster"),
        ("Ko\u0308ster", "Köster"),
        ("1.13.22", "v1.13.22"),
        ("v1.13.22", "1.13.22"),
    ],
)
async def test_a_word_is_found_in_another_spelling(
    tools: ToolClient, query: str, word: str
) -> None:
    await note(tools, f"There is {word} in it.", source_id="1")
    await note(tools, "Invoices are sent on Mondays.", source_id="2")

    [hit] = (await tools("hybrid_search", query=query))["results"]

    assert word in hit["text"]
    assert "full_text" in hit["sources"]


@pytest.mark.parametrize(
    "query", ["\ufefflantern", "\u202elantern\u202c", "lan\u00adtern", "lantern\u200b"]
)
@pytest.mark.parametrize("tool", ["hybrid_search", "memory_search"])
async def test_invisible_characters_of_a_query_hide_nothing(
    tools: ToolClient, tool: str, query: str
) -> None:
    text = "A lantern hangs there."
    await note(tools, text)
    await tools("memory_store", content=text, type="fact", confidence=1)

    answer = await tools(tool, query=query)

    assert answer == await tools(tool, query="lantern")


async def test_a_word_that_some_text_has_is_not_corrected(tools: ToolClient) -> None:
    await note(tools, "The lantern hangs in the hall.", source_id="1")
    await note(tools, "The lanterm is a made-up word.", source_id="2")

    answer = await tools("hybrid_search", query="lanterm")

    by_words = [hit["text"] for hit in answer["results"] if "full_text" in hit["sources"]]
    assert by_words == ["The lanterm is a made-up word."]


async def test_the_beginning_of_a_word_with_a_star_finds_its_endings(tools: ToolClient) -> None:
    await note(tools, "A lantern hangs there.", source_id="1")
    await note(tools, "The lanolin is in the cupboard.", source_id="2")
    await note(tools, "Invoices are sent on Mondays.", source_id="3")

    answer = await tools("hybrid_search", query="lan*")

    by_words = {hit["text"] for hit in answer["results"] if "full_text" in hit["sources"]}
    assert by_words == {"A lantern hangs there.", "The lanolin is in the cupboard."}
