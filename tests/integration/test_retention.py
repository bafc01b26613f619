"""Documents are deleted when their retention policy has run out, and not before."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from memory_core.index.writer import settle_now
from memory_core.kernel import migrations, queries
from memory_core.kernel.database import Session
from memory_core.kernel.orchestrator import NoOrchestrator
from memory_core.runtime import Runtime
from memory_core.upkeep import retention
from memory_core.upkeep.retention import RetentionOutcome
from tests.indexing import counts as indexed_counts
from tests.integration.commands import Command, answer
from tests.integration.planted_events import Event, Garden, Planted, ingest
from tests.tool_client import Json, ToolClient

END = datetime(2031, 5, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
OTTERS = "The otters moved into the boathouse."
PARSER = Event(
    "Alice Chen will deliver the parser module.",
    category="Commitment",
    time="2026-01-15",
    actors=("Alice Chen",),
)
GUIDE = Event(
    "Bob Ray will write the migration guide.",
    category="Commitment",
    time="2026-01-20",
    actors=("Bob Ray",),
)
PARSER_DONE = Event(
    "Alice Chen delivered the parser module.",
    category="Execution",
    time="2026-01-14",
    actors=("Alice Chen",),
)


async def run(runtime: Runtime, now: datetime, **options: Any) -> RetentionOutcome:
    return await retention.run(runtime.database, runtime.orchestrator, now, **options)


async def custom(tools: ToolClient, source_id: str = "one", **fields: Any) -> Json:
    values = {"retention_policy": "custom", "expires_at": END.isoformat(), **fields}
    return await ingest(tools, f"{OTTERS} {source_id}", source_id=source_id, **values)


async def exists(tools: ToolClient, uid: str) -> bool:
    result = await tools.client.call_tool("artifact_get", {"artifact_uid": uid})
    return not result.is_error


async def promised(garden: Garden, *events: Event, **fields: Any) -> Planted:
    return await garden.document(
        *events,
        source_id="promises",
        ts="2026-01-01T00:00:00Z",
        **{"retention_policy": "until_resolved", **fields},
    )


async def reported(garden: Garden) -> Planted:
    return await garden.document(PARSER_DONE, source_id="report", ts="2026-01-14T00:00:00Z")


# --- each policy -------------------------------------------------------------------------------


async def test_custom_ends_at_its_moment(tools: ToolClient, runtime: Runtime) -> None:
    uid = (await custom(tools))["artifact_uid"]

    assert (await run(runtime, END)).expired == []
    assert await exists(tools, uid)
    assert (await run(runtime, END + SECOND)).deleted == [uid]
    assert not await exists(tools, uid)


async def test_a_year_is_counted_from_storing_not_from_the_documents_date(
    tools: ToolClient, runtime: Runtime, sql: psycopg.Connection
) -> None:
    uid = (await ingest(tools, OTTERS, retention_policy="1y", ts="2001-01-01"))["artifact_uid"]
    sql.execute("UPDATE artifact_revision SET ingested_at = %s, latest_since = %s",
                [END, END])  # fmt: skip
    over = END.replace(year=END.year + 1)

    assert (await run(runtime, over - SECOND)).expired == []
    assert (await run(runtime, over + SECOND)).deleted == [uid]


async def test_a_year_begins_again_when_old_content_is_restored(
    tools: ToolClient, runtime: Runtime, sql: psycopg.Connection
) -> None:
    uid = (await ingest(tools, OTTERS, retention_policy="1y"))["artifact_uid"]
    await ingest(tools, "They moved out again.", retention_policy="1y")
    sql.execute("UPDATE artifact_revision SET ingested_at = '2020-01-01', "
                "latest_since = '2020-01-01'")  # fmt: skip
    assert (await ingest(tools, OTTERS))["status"] == "restored"

    now = datetime.now(UTC)
    assert (await run(runtime, now)).expired == []
    assert (await run(runtime, now + timedelta(days=367))).deleted == [uid]


async def test_until_resolved_ends_with_the_last_open_promise(
    garden: Garden, tools: ToolClient, runtime: Runtime
) -> None:
    planted = await promised(garden, PARSER)
    assert (await run(runtime, END)).expired == []

    report = await reported(garden)

    assert (await run(runtime, END)).deleted == [planted.uid]
    assert await exists(tools, report.uid)


async def test_one_open_promise_keeps_the_document(garden: Garden, runtime: Runtime) -> None:
    await promised(garden, PARSER, GUIDE)
    await reported(garden)
    assert (await run(runtime, END)).expired == []


async def test_without_a_promise_or_before_extraction_nothing_is_resolved(
    garden: Garden, runtime: Runtime, sql: psycopg.Connection
) -> None:
    await garden.document(source_id="no promise", retention_policy="until_resolved")
    planted = await promised(garden, PARSER)
    await reported(garden)
    sql.execute("UPDATE event_jobs SET status = 'PENDING' WHERE job_id = %s", [planted.job_id])
    assert (await run(runtime, END)).expired == []


async def test_a_report_that_the_owner_does_not_see_resolves_nothing(
    garden: Garden, runtime: Runtime, sql: psycopg.Connection
) -> None:
    planted = await promised(garden, PARSER)
    report = await reported(garden)
    shown_to = (
        "UPDATE artifact_revision SET audience_id = audience_of(tenant_id, %s) "
        "WHERE artifact_uid = %s"
    )
    sql.execute(shown_to, [["user:bob"], report.uid])
    assert (await run(runtime, END)).expired == []
    sql.execute(shown_to, [["org"], report.uid])
    assert (await run(runtime, END)).deleted == [planted.uid]


@pytest.mark.parametrize("fields", [{}, {"retention_policy": "custom"}], ids=["none", "no date"])
async def test_without_an_end_a_document_stays(
    tools: ToolClient, runtime: Runtime, fields: Json
) -> None:
    await ingest(tools, OTTERS, **fields)
    assert (await run(runtime, datetime(2999, 1, 1, tzinfo=UTC))).expired == []


async def test_the_labels_of_the_latest_revision_decide(
    tools: ToolClient, runtime: Runtime
) -> None:
    await custom(tools)
    await custom(tools, retention_policy="forever", expires_at=None)
    assert (await run(runtime, END + SECOND)).expired == []


# --- a run -------------------------------------------------------------------------------------


async def test_a_dry_run_lists_and_deletes_nothing(tools: ToolClient, runtime: Runtime) -> None:
    uid = (await custom(tools))["artifact_uid"]
    outcome = await run(runtime, END + SECOND, dry_run=True)
    assert [one.artifact_uid for one in outcome.expired] == [uid]
    assert outcome.deleted == []
    assert await exists(tools, uid)


async def test_the_log_says_expired_and_no_search_finds_it(
    tools: ToolClient, runtime: Runtime, sql: psycopg.Connection
) -> None:
    uid = (await custom(tools))["artifact_uid"]
    assert (await tools("hybrid_search", query="otters"))["results"]

    await run(runtime, END + SECOND)
    again = await run(runtime, END + SECOND)

    assert (again.expired, again.deleted, again.failed) == ([], [], {})
    logged = sql.execute(
        "SELECT event_type, payload ->> 'artifact_uid', metadata ->> 'source' FROM log.events "
        "WHERE aggregate_type = 'artifact' ORDER BY version DESC LIMIT 1"
    ).fetchone()
    assert logged == ("artifact.expired", uid, "retention")
    for tool in ("hybrid_search", "artifact_search"):
        assert (await tools(tool, query="otters"))["results"] == []
    await settle_now(runtime, [uid])
    assert set((await indexed_counts(runtime)).values()) == {0}


async def test_a_run_is_bounded_and_the_next_goes_on(tools: ToolClient, runtime: Runtime) -> None:
    uids = {(await custom(tools, f"note {n}"))["artifact_uid"] for n in range(3)}
    first = await run(runtime, END + SECOND, most=2)
    second = await run(runtime, END + SECOND, most=2)
    assert (len(first.deleted), len(second.deleted)) == (2, 1)
    assert {*first.deleted, *second.deleted} == uids


class Interrupting(NoOrchestrator):
    """Does something in the deletion of a document."""

    def __init__(self, act: Callable[[str], Awaitable[None]]) -> None:
        self._act = act

    async def forget(self, session: Session, artifact_uid: str) -> int:
        await self._act(artifact_uid)
        return 0


async def test_a_document_that_fails_does_not_stop_the_others(
    tools: ToolClient, runtime: Runtime
) -> None:
    first, *others = sorted([(await custom(tools, f"note {n}"))["artifact_uid"] for n in range(3)])

    async def refuse(uid: str) -> None:
        if uid == first:
            raise RuntimeError("it cannot be forgotten")

    outcome = await retention.run(runtime.database, Interrupting(refuse), END + SECOND)

    assert (outcome.deleted, outcome.failed) == (others, {first: "RuntimeError"})
    assert await exists(tools, first)
    assert (await run(runtime, END + SECOND)).deleted == [first]


async def test_a_document_that_gets_another_policy_meanwhile_stays(
    tools: ToolClient, runtime: Runtime
) -> None:
    stored = {(await custom(tools, name))["artifact_uid"]: name for name in ("a", "b")}
    first, second = sorted(stored)

    async def keep_the_other(uid: str) -> None:
        await custom(tools, stored[second], retention_policy="forever", expires_at=None)

    outcome = await retention.run(runtime.database, Interrupting(keep_the_other), END + SECOND)

    assert (len(outcome.expired), outcome.deleted, outcome.failed) == (2, [first], {})
    assert await exists(tools, second)


async def test_the_command_shows_and_deletes(tools: ToolClient, command: Command) -> None:
    past = "2020-01-01T00:00:00Z"
    uid = (await custom(tools, expires_at=past, title="Otters"))["artifact_uid"]
    await custom(tools, "stays")

    # In a thread: a command has an event loop of its own.
    shown = await asyncio.to_thread(answer, command, "retention", "preview")
    assert shown["expired"] == [
        {
            "artifact_uid": uid,
            "title": "Otters",
            "source_system": "test",
            "retention_policy": "custom",
            "expired_at": past,
        }
    ]
    said = await asyncio.to_thread(command, "retention", "preview")
    assert "1 would be deleted" in said
    done = await asyncio.to_thread(answer, command, "retention", "run")
    assert done["deleted"] == [uid]
    assert "No document has expired." in await asyncio.to_thread(command, "retention", "run")
    assert not await exists(tools, uid)


def test_what_stays_for_ever_is_not_looked_at(own_database: str) -> None:
    migrations.apply(own_database)
    with psycopg.connect(own_database, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(
            "INSERT INTO artifact_revision (artifact_uid, revision_id, artifact_id, artifact_type,"
            " source_system, source_id, content_hash, token_count, is_chunked, chunk_count,"
            " retention_policy) SELECT 'uid_' || n, 'rev', 'art', 'note', 'notes', '', '', 1,"
            " false, 0, CASE WHEN n % 500 = 0 THEN '1y' ELSE 'forever' END"
            " FROM generate_series(1, 20000) AS n"
        )
        connection.execute("VACUUM ANALYZE artifact_revision")
        asked = {"now": END, "after": "", "uid": None, "limit": 50}
        plan = connection.execute(
            b"EXPLAIN " + queries.get("retention_candidates"), asked
        ).fetchall()

    assert "idx_artifact_revision_retention" in str(plan)
