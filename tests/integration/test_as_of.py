"""as_of: what the memory showed at a moment."""

from itertools import pairwise

import psycopg
import pytest

from memory_core.kernel import migrations
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from tests.integration.planted_events import Event, Garden
from tests.pipeline_client import Pipeline
from tests.tool_client import Json, ToolClient

OLD = Event("The team decided to charge per seat.", time="2026-01-10")
NEW = Event("The team decided to charge per use.", time="2026-02-10")
MARCH = "2026-03-01T12:00:00Z"


def moment(sql: psycopg.Connection) -> str:
    [now] = sql.execute("SELECT clock_timestamp()").fetchone() or [None]
    return str(now.isoformat())


def narratives(answer: Json) -> list[str]:
    return [event["narrative"] for event in answer["events"]]


async def test_events_of_the_revision_that_was_latest_then(
    garden: Garden, tools: ToolClient, sql: psycopg.Connection
) -> None:
    before = moment(sql)
    planted = await garden.document(OLD, source_id="plan")
    between = moment(sql)
    await garden.document(NEW, source_id="plan")
    after = moment(sql)

    for query in ("charge", None):
        shown = [
            narratives(await tools("event_search", query=query, as_of=at))
            for at in (before, between, after)
        ]
        assert shown == [[], [OLD.narrative], [NEW.narrative]]
    days = (await tools("timeline", as_of=between))["days"]
    assert [event["narrative"] for day in days for event in day["events"]] == [OLD.narrative]
    read = await tools("artifact_get", artifact_uid=planted.uid, as_of=between)
    assert read["content"] == OLD.narrative
    history = await tools("artifact_history", artifact_uid=planted.uid, as_of=between)
    assert [(one["revision_id"], one["is_latest"]) for one in history["revisions"]] == [
        (planted.revision, True)
    ]


async def test_what_was_restored_was_latest_twice(
    garden: Garden, tools: ToolClient, sql: psycopg.Connection
) -> None:
    planted = await garden.document(OLD, source_id="plan")
    first = moment(sql)
    await garden.document(NEW, source_id="plan")
    second = moment(sql)
    await tools(
        "artifact_ingest",
        content=OLD.narrative,
        source_id="plan",
        source_system="test",
        artifact_type="note",
    )
    third = moment(sql)

    texts = [
        (await tools("artifact_get", artifact_uid=planted.uid, as_of=at))["content"]
        for at in (first, second, third)
    ]

    assert texts == [OLD.narrative, NEW.narrative, OLD.narrative]
    periods = sql.execute(
        "SELECT since, until FROM revision_period WHERE artifact_uid = %s ORDER BY since",
        [planted.uid],
    ).fetchall()
    assert len(periods) == 3
    # Without a gap: at every moment since the first there is one.
    assert all(one[1] == other[0] for one, other in pairwise(periods))
    assert periods[-1][1] is None


async def test_a_deleted_document_stays_deleted(
    garden: Garden, tools: ToolClient, sql: psycopg.Connection
) -> None:
    planted = await garden.document(OLD, source_id="plan")
    then = moment(sql)
    await tools("artifact_delete", artifact_uid=planted.uid)

    assert narratives(await tools("event_search", as_of=then)) == []
    error = await tools.refusal("artifact_get", artifact_uid=planted.uid, as_of=then)
    assert error["error_code"] == "NOT_FOUND"


async def test_before_a_document_came_there_was_none(garden: Garden, tools: ToolClient) -> None:
    planted = await garden.document(OLD, source_id="plan")

    error = await tools.refusal("artifact_get", artifact_uid=planted.uid, as_of="2020-01-01")

    assert error["error_code"] == "NOT_FOUND"
    assert "artifact_history" in error["error"]


@pytest.mark.parametrize("tool", ["event_search", "timeline"])
async def test_what_is_no_time_is_refused(tools: ToolClient, tool: str) -> None:
    error = await tools.refusal(tool, as_of="yesterday")

    assert error["error_code"] == "VALIDATION_ERROR"


async def test_a_revision_and_a_moment_exclude_each_other(
    garden: Garden, tools: ToolClient
) -> None:
    planted = await garden.document(OLD, source_id="plan")

    error = await tools.refusal(
        "artifact_get", artifact_uid=planted.uid, revision_id=planted.revision, as_of=MARCH
    )

    assert error["error_code"] == "VALIDATION_ERROR"


def test_periods_of_what_was_stored_before_are_made_of_what_is_known(
    own_database: str, settings: Settings
) -> None:
    """A, B, then A again; and a document with one revision."""
    shipped = migrations.shipped()
    [periods] = [one for one in shipped if "CREATE TABLE revision_period" in one.statements]
    migrations.apply(own_database, [one for one in shipped if one.number < periods.number])
    with psycopg.connect(own_database, autocommit=True) as connection:
        for uid, revision, came, since, latest in (
            ("uid_a", "rev_a", "2026-01-01", "2026-03-01", True),
            ("uid_a", "rev_b", "2026-02-01", "2026-02-01", False),
            ("uid_b", "rev_c", "2026-01-15", "2026-01-15", True),
        ):
            connection.execute(
                "INSERT INTO artifact_revision (artifact_uid, revision_id, artifact_id, "
                "artifact_type, source_system, source_id, content_hash, token_count, is_chunked, "
                "chunk_count, ingested_at, latest_since, is_latest) "
                "VALUES (%s, %s, %s, 'note', 'test', %s, %s, 1, false, 0, %s, %s, %s)",
                [uid, revision, revision, uid, revision, came, since, latest],
            )

        migrations.apply(own_database)

        rows = connection.execute(
            "SELECT revision_id, since::date::text, until::date::text FROM revision_period "
            "ORDER BY artifact_uid, since"
        ).fetchall()
    assert rows == [
        ("rev_a", "2026-01-01", "2026-02-01"),
        ("rev_b", "2026-02-01", "2026-03-01"),
        ("rev_a", "2026-03-01", None),
        ("rev_c", "2026-01-15", None),
    ]


class TestWhatWasExtractedSince:
    """The revision is the one of then; its events are those that are stored now."""

    TEXT = "Decision: we charge per seat from May on."

    async def found(self, tools: ToolClient, at: str) -> list[Json]:
        events: list[Json] = (await tools("event_search", query="charge", as_of=at))["events"]
        days = (await tools("timeline", as_of=at))["days"]
        assert [event for day in days for event in day["events"]] == events
        return events

    async def test_an_event_that_came_later_says_so(
        self, tools: ToolClient, runtime: Runtime, sql: psycopg.Connection
    ) -> None:
        pipeline = Pipeline(runtime)
        await pipeline.remember(self.TEXT)
        before = moment(sql)
        await pipeline.extract()
        after = moment(sql)

        [early], [late] = await self.found(tools, before), await self.found(tools, after)

        assert early["extracted_later"] is True
        assert "extracted_later" not in late
        assert {**early, "extracted_later": None} == {**late, "extracted_later": None}

    async def test_one_that_was_extracted_again_was_known_all_the_time(
        self, tools: ToolClient, runtime: Runtime, sql: psycopg.Connection
    ) -> None:
        pipeline = Pipeline(runtime)
        stored = await pipeline.remember(self.TEXT)
        await pipeline.extract()
        between = moment(sql)
        await tools("event_reextract", artifact_uid=stored.artifact_uid, force=True)
        await pipeline.extract()

        [event] = await self.found(tools, between)
        assert "extracted_later" not in event

    async def test_without_a_log_of_it_the_extraction_tells(
        self, garden: Garden, tools: ToolClient, sql: psycopg.Connection
    ) -> None:
        """What was stored before the log began."""
        planted = await garden.document(OLD, source_id="plan")
        sql.execute("SET session_replication_role = replica; DELETE FROM log.events")
        sql.execute("UPDATE extraction SET finished_at = '2026-01-01'")
        sql.execute(
            "UPDATE revision_period SET since = '2026-01-01' WHERE artifact_uid = %s",
            [planted.uid],
        )

        [event] = (await tools("event_search", query="charge", as_of="2026-02-01"))["events"]
        assert "extracted_later" not in event
