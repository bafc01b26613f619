"""as_of: what the memory showed at a moment."""

import random
from itertools import pairwise

import psycopg
import pytest

from memory_core.kernel import migrations
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from memory_core.search import event_matching
from tests.integration.planted_events import Event, Garden, Planted
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


OPTIONS = {
    "enable_seqscan": "off",  # the tables are small
    "cpu_operator_cost": "1",
}
THEN_BY_INDEX = "SELECT event_id::text FROM visible_events_as_of(%s::timestamptz)"
THEN_BY_PERIODS = """
SELECT e.event_id::text
FROM semantic_event e JOIN revision_period p USING (artifact_uid, revision_id)
WHERE p.since <= %(at)s AND (p.until IS NULL OR p.until > %(at)s)
"""


class TestAnyHistory:
    """The indexes find exactly the events whose revision has a period with that moment."""

    @pytest.mark.parametrize("seed", range(6))
    async def test_the_indexes_agree_with_the_periods(
        self,
        seed: int,
        garden: Garden,
        tools: ToolClient,
        sql: psycopg.Connection,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        dice = random.Random(seed)
        # As if there were many events: some searches go back in time, others ask the indexes.
        monkeypatch.setattr(event_matching, "FEW_MATCHES", 0)
        monkeypatch.setattr(event_matching, "RECENT", seed % 2 * 1_000)
        monkeypatch.setattr(event_matching, "LOOKED_UP", seed % 3 * 1_000)
        planted: dict[tuple[str, int], Planted] = {}
        moments = [moment(sql)]
        for _ in range(25):
            await self.something_happens(dice, garden, tools, sql, planted)
            moments.append(moment(sql))

        self.ask_indexes(sql)
        for at in [*moments, *self.edges(sql)]:
            by_index = [row[0] for row in sql.execute(THEN_BY_INDEX, [at])]
            by_periods = [row[0] for row in sql.execute(THEN_BY_PERIODS, {"at": at})]
            assert len(by_index) == len(set(by_index)), at
            assert set(by_index) == set(by_periods), at
        at = moments[-10]
        expected = {row[0] for row in sql.execute(THEN_BY_PERIODS, {"at": at})}
        for query in (None, "okapi", "-zebra"):
            found = await tools("event_search", query=query, as_of=at, limit=100)
            assert {event["event_id"] for event in found["events"]} == expected
            assert found["total"] == len(expected)

    def ask_indexes(self, sql: psycopg.Connection) -> None:
        for name, value in OPTIONS.items():
            sql.execute("SELECT set_config(%s, %s, false)", [name, value])
        plan = "\n".join(row[0] for row in sql.execute(f"EXPLAIN {THEN_BY_INDEX}", [MARCH]))
        for index in ("since", "period", "periods"):
            assert f"idx_event_entry_{index} " in plan, plan

    def edges(self, sql: psycopg.Connection) -> list[str]:
        """Where a period begins or ends: it has its first moment and not its last."""
        times = "SELECT since FROM revision_period UNION SELECT until FROM revision_period"
        return [row[0].isoformat() for row in sql.execute(times) if row[0] is not None]

    async def something_happens(
        self,
        dice: random.Random,
        garden: Garden,
        tools: ToolClient,
        sql: psycopg.Connection,
        planted: dict[tuple[str, int], Planted],
    ) -> None:
        document, version = dice.choice("abc"), dice.randrange(3)
        text = f"Version {version} of the okapi plan {document}."
        known = planted.get((document, version))
        match dice.choice(("ingest", "ingest", "ingest", "extract", "relabel", "hand", "delete")):
            case "ingest" if known is None:
                planted[document, version] = await garden.document(
                    Event(text), Event(text, category="Change"), source_id=document
                )
            case "ingest":
                await tools(
                    "artifact_ingest", content=text, source_id=document, source_system="test",
                    artifact_type="note",
                )  # fmt: skip
            case "extract" if known is not None:
                await garden.extracted(known, text, [Event(text, category="Feedback")])
            case "relabel" if known is not None:
                sql.execute(
                    "UPDATE artifact_revision SET artifact_type = %s WHERE artifact_uid = %s",
                    [dice.choice(("note", "doc")), known.uid],
                )
            case "hand" if known is not None:
                sql.execute(
                    "UPDATE revision_period SET since = since - interval '1 second' "
                    "WHERE artifact_uid = %s AND since = (SELECT min(since) FROM revision_period "
                    "WHERE artifact_uid = %s)",
                    [known.uid, known.uid],
                )
            case "delete" if known is not None and dice.random() < 0.3:
                await tools("artifact_delete", artifact_uid=known.uid)
                for version in range(3):
                    planted.pop((document, version), None)


async def test_a_revision_that_is_superseded_by_hand_ends_then(
    garden: Garden, tools: ToolClient, sql: psycopg.Connection
) -> None:
    planted = await garden.document(OLD, source_id="plan")
    before = moment(sql)
    sql.execute("UPDATE artifact_revision SET is_latest = false")
    after = moment(sql)
    await garden.document(NEW, source_id="plan")

    shown = [narratives(await tools("event_search", as_of=at)) for at in (before, after)]

    assert shown == [[OLD.narrative], []]
    assert sql.execute(
        "SELECT until <= %s FROM revision_period WHERE revision_id = %s",
        [after, planted.revision],
    ).fetchone() == (True,)
