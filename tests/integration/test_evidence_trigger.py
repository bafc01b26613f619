"""The promise kept by the database itself: a quote is the text at its offsets."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
import pytest

from memory_core.events.broken_evidence import broken_evidence
from memory_core.runtime import Runtime
from tests.pipeline_client import Pipeline

TEXT = (
    "# Décisions 🚀\n\n"
    "- We decided to launch the beta in May.\n- Bob Roth will test the beta by Friday.\n"
)
INSERT = (
    "INSERT INTO event_evidence (event_id, artifact_uid, revision_id, start_char, end_char, quote)"
    " SELECT v.event_id, v.artifact_uid, v.revision_id, n.start_char, n.end_char, n.quote"
    " FROM (SELECT * FROM event_evidence ORDER BY start_char LIMIT 1) v,"
    " unnest(%s::int[], %s::int[], %s::text[]) AS n (start_char, end_char, quote)"
)
WRONG = "is not the text that stands there"


@pytest.fixture
async def proved(runtime: Runtime) -> Pipeline:
    """A document with its events."""
    pipeline = Pipeline(runtime)
    await pipeline.remember(TEXT)
    await pipeline.extract()
    assert len(await pipeline.events()) == 2
    return pipeline


async def insert(pipeline: Pipeline, *quotes: tuple[int, int, str]) -> None:
    starts, ends, texts = (list(column) for column in zip(*quotes, strict=True))
    await pipeline.rows(INSERT, starts, ends, texts)


@asynccontextmanager
async def unguarded(pipeline: Pipeline) -> AsyncIterator[None]:
    await pipeline.rows("ALTER TABLE event_evidence DISABLE TRIGGER USER")
    yield
    await pipeline.rows("ALTER TABLE event_evidence ENABLE TRIGGER USER")


def at(quote: str) -> tuple[int, int, str]:
    start = TEXT.index(quote)
    return start, start + len(quote), quote


async def test_the_text_at_its_offsets_is_accepted(proved: Pipeline) -> None:
    await insert(proved, at("launch the beta"), at("🚀"), at("Décisions"))

    assert len(await proved.events()) == 5


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param((0, 5, "moons"), id="other words"),
        pytest.param((3, 7, "Deci"), id="another spelling"),
        pytest.param((at("launch")[0] + 1, at("launch")[1] + 1, "launch"), id="off by one"),
        pytest.param((at("launch")[0], at("launch")[1] + 1, "launch"), id="too long a span"),
        pytest.param((10_000, 10_006, "launch"), id="past the end"),
    ],
)
async def test_a_wrong_quote_is_refused(proved: Pipeline, wrong: tuple[int, int, str]) -> None:
    before = await proved.events()
    with pytest.raises(psycopg.errors.CheckViolation, match=WRONG):
        await insert(proved, wrong)

    assert await proved.events() == before


async def test_one_wrong_quote_of_many_refuses_the_whole_statement(proved: Pipeline) -> None:
    before = await proved.events()
    good = at("launch the beta")
    with pytest.raises(psycopg.errors.CheckViolation, match=WRONG):
        await insert(proved, *[good] * 50, (0, 3, "abc"), *[good] * 50)

    assert await proved.events() == before


@pytest.mark.parametrize(
    "change",
    ["quote = 'x' || quote", "start_char = start_char + 1", "end_char = end_char - 1"],
)
async def test_a_quote_cannot_be_made_wrong_later(proved: Pipeline, change: str) -> None:
    before = await proved.events()
    with pytest.raises(psycopg.errors.CheckViolation, match=WRONG):
        await proved.rows(f"UPDATE event_evidence SET {change}")

    assert await proved.events() == before


async def test_what_leaves_quotes_right_may_be_changed(proved: Pipeline) -> None:
    await proved.rows("UPDATE event_evidence SET match_kind = 'normalised'")

    assert {row["match_kind"] for row in await proved.events()} == {"normalised"}


@pytest.mark.parametrize(("start", "end"), [(-1, 3), (5, 5), (6, 5)])
async def test_a_span_is_not_empty_and_begins_in_the_text(
    proved: Pipeline, start: int, end: int
) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        await insert(proved, (start, end, ""))


# --- the same invariant as a check over everything --------------------------------------------


async def test_quotes_of_a_long_text_are_compared_wherever_they_stand(runtime: Runtime) -> None:
    """A long text is compared in windows: the edges of these are nothing special."""
    words = [f"wört{number}🚀 " for number in range(60_000)]
    pipeline = Pipeline(runtime)
    ingested = await pipeline.remember(f"{TEXT}{''.join(words)}")
    await pipeline.extract()
    [stored] = await pipeline.rows("SELECT content FROM revision_text")
    text = stored["content"]
    edge = 131_072
    starts = [0, edge - 1, edge, edge + 1, 2 * edge - 20, 3 * edge - 7, len(text) - 40]
    assert len(text) > 3 * edge
    right = [(start, start + 40, text[start : start + 40]) for start in starts]
    right.append((edge - 5, 2 * edge + 5, text[edge - 5 : 2 * edge + 5]))

    await insert(pipeline, *right)

    for start, end, quote in right:
        with pytest.raises(psycopg.errors.CheckViolation, match=WRONG):
            await insert(pipeline, (start + 1, end + 1, quote))
    await pipeline.rows("DELETE FROM event_evidence WHERE end_char - start_char > 1000")
    async with unguarded(pipeline):
        await insert(pipeline, (edge - 1, edge + 39, text[edge : edge + 40]))
    [broken] = await pipeline.broken_evidence()
    assert (broken.artifact_uid, broken.start_char) == (ingested.artifact_uid, edge - 1)


async def test_a_sound_database_has_no_offenders(proved: Pipeline) -> None:
    database = proved.runtime.database

    assert await proved.broken_evidence() == []
    assert await proved.events_without_evidence() == []
    assert await broken_evidence(database, [item.job for item in proved.outcomes]) == 0


async def test_a_planted_wrong_quote_is_found(proved: Pipeline) -> None:
    async with unguarded(proved):
        await insert(proved, (0, 5, "moons"), at("launch"))

    [found] = await proved.broken_evidence()
    assert (found.start_char, found.end_char) == (0, 5)
    jobs = [item.job for item in proved.outcomes]
    assert await broken_evidence(proved.runtime.database, jobs) == 1
    assert await broken_evidence(proved.runtime.database, []) == 0


async def test_a_quote_of_more_than_25_words_is_found(proved: Pipeline) -> None:
    words = " ".join(f"w{number}" for number in range(60))
    await proved.remember(words, "long")
    event = (await proved.events())[0]
    quote = " ".join(words.split()[:26])
    await proved.rows(
        "INSERT INTO event_evidence (event_id, artifact_uid, revision_id, start_char, end_char,"
        " quote) SELECT %s, artifact_uid, revision_id, 0, %s, %s FROM revision_text"
        " WHERE content = %s",
        event["event_id"],
        len(quote),
        quote,
        words,
    )

    [found] = await proved.broken_evidence()
    assert found.end_char == len(quote)


async def test_a_quote_whose_text_is_gone_is_found(proved: Pipeline) -> None:
    await proved.rows("DELETE FROM revision_text")

    assert len(await proved.broken_evidence()) == 2


async def test_a_text_that_was_changed_under_its_quotes_is_found(proved: Pipeline) -> None:
    await proved.rows("UPDATE revision_text SET content = 'x' || content")

    assert len(await proved.broken_evidence()) == 2


async def test_an_event_without_evidence_is_found(proved: Pipeline) -> None:
    [first, _] = await proved.events()
    await proved.rows("DELETE FROM event_evidence WHERE event_id = %s", first["event_id"])

    [found] = await proved.events_without_evidence()
    assert found.id == str(first["event_id"])


async def test_no_more_offenders_are_named_than_asked_for(proved: Pipeline) -> None:
    async with unguarded(proved):
        await insert(proved, *[(0, 5, "moons")] * 30)

    assert len(await proved.broken_evidence(limit=20)) == 20
