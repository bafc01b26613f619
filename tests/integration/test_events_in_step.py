"""An event is latest exactly when its revision is, whatever happens at the same time."""

import asyncio
from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest

from memory_core.kernel import queries
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from memory_core.upkeep import integrity
from tests.indexing import assert_exact
from tests.integration.asking import until
from tests.pipeline_client import Pipeline
from tests.tool_client import ToolClient

FIRST = "Decision: we launch the beta in May.\nBob Roth will test it."
SECOND = "Decision: we launch the beta in June.\nBob Roth will not test it."


@pytest.fixture
def pipeline(runtime: Runtime) -> Pipeline:
    return Pipeline(runtime)


@pytest.fixture
def other(services: Settings) -> Iterator[psycopg.Connection]:
    """A transaction of another process."""
    with psycopg.connect(services.dsn) as connection:
        yield connection
        connection.rollback()


def waiting(sql: psycopg.Connection, number: int = 1) -> bool:
    """Whether at least this number of transactions wait for others."""
    return len(sql.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchall()) >= number


def out_of_step(sql: psycopg.Connection) -> int:
    return len(sql.execute(queries.get("find_events_out_of_step"), {"limit": 100}).fetchall())


@pytest.mark.parametrize("again", [False, True], ids=["first extraction", "extracted before"])
async def test_an_extraction_that_ends_while_its_revision_is_superseded(
    pipeline: Pipeline,
    sql: psycopg.Connection,
    other: psycopg.Connection,
    tools: ToolClient,
    again: bool,
) -> None:
    """Also when it replaces events, for which both sides want the same rows."""
    first = await pipeline.remember(FIRST)
    keys = await pipeline.keys()
    if again:
        await pipeline.extract()
    # The ingest has written everything, and cannot append to the log.
    other.execute("LOCK TABLE log.aggregates IN SHARE MODE")
    ingesting = asyncio.create_task(pipeline.remember(SECOND))
    await until(lambda: waiting(sql))

    extracting = asyncio.create_task(
        pipeline.extract("run-2", keys=keys, asked_by="ui" if again else None)
    )
    await until(lambda: extracting.done() or waiting(sql, 2))
    other.rollback()
    second, [outcome] = await ingesting, await extracting

    assert second.status == "revised"
    assert outcome.failure is None
    rows = sql.execute(
        "SELECT DISTINCT e.revision_id, e.is_latest, s.is_latest "
        "FROM semantic_event e JOIN event_entry s USING (event_id)"
    ).fetchall()
    assert rows == [(first.revision_id, False, False)]
    assert (await tools("event_search"))["total"] == 0
    await assert_exact(pipeline.runtime)


async def test_a_revision_that_is_superseded_while_its_events_are_replaced(
    pipeline: Pipeline, sql: psycopg.Connection, other: psycopg.Connection
) -> None:
    """The old events are deleted, the new ones not committed: neither may end in a deadlock."""
    await pipeline.remember(FIRST)
    await pipeline.extract()
    keys = await pipeline.keys()
    # The new events cannot enter the names of their actors.
    other.execute("LOCK TABLE actor_name IN SHARE MODE")
    extracting = asyncio.create_task(pipeline.extract("run-2", keys=keys, asked_by="ui"))
    await until(lambda: waiting(sql))
    ingesting = asyncio.create_task(pipeline.remember(SECOND))
    await until(lambda: ingesting.done() or waiting(sql, 2))
    other.rollback()
    [outcome] = await extracting
    await ingesting

    assert outcome.failure is None
    assert sql.execute("SELECT DISTINCT is_latest FROM semantic_event").fetchall() == [(False,)]


async def test_a_writer_of_events_waits_for_what_becomes_of_their_revision(
    pipeline: Pipeline, sql: psycopg.Connection, other: psycopg.Connection
) -> None:
    """The table itself sees to it, without any lock that a writer might forget to take."""
    stored = await pipeline.remember(FIRST)
    other.execute(queries.get("supersede_revisions"), {"uids": [stored.artifact_uid]})
    insert = (
        "INSERT INTO semantic_event (artifact_uid, revision_id, category, narrative, "
        "subject_json, actors_json, confidence, extraction_run_id) "
        "VALUES (%s, %s, 'Decision', 'It is so.', '{}', '[]', 1, %s)"
    )

    writing = asyncio.create_task(
        pipeline.rows(insert, stored.artifact_uid, stored.revision_id, uuid4())
    )
    await until(lambda: writing.done() or waiting(sql))
    other.commit()
    await writing

    assert sql.execute("SELECT is_latest FROM semantic_event").fetchall() == [(False,)]


async def test_events_out_of_step_are_repaired_for_searches_too(
    pipeline: Pipeline, sql: psycopg.Connection, tools: ToolClient
) -> None:
    await pipeline.remember(FIRST)
    await pipeline.extract()
    await pipeline.remember(SECOND)
    await pipeline.extract("run-2")
    latest = (await tools("event_search"))["total"]
    assert out_of_step(sql) == 0
    sql.execute("UPDATE semantic_event SET is_latest = NOT is_latest")
    assert out_of_step(sql) > latest

    [check] = [one for one in integrity.CHECKS if one.name == "events_follow_their_revision"]
    await check.repair(pipeline.runtime)

    assert out_of_step(sql) == 0
    assert (await tools("event_search"))["total"] == latest
