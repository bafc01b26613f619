"""Operating it as the UI does: over GraphQL, against the real web server and daemon."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from mcp import Client

from memory_core.processing.stages import CHUNK_EXTRACTIONS, STAGES
from tests.e2e.operating import Operator
from tests.e2e.pipeline import asks_about, document
from tests.e2e.stacks import eventually, scripted_stack
from tests.scripted_provider import AuthError, Held

Json = dict[str, Any]
LATER = STAGES[STAGES.index(CHUNK_EXTRACTIONS) + 1 :]
LIVE, REVISIONS = 50, 200


@pytest.fixture(scope="module")
def _operator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    with scripted_stack(
        tmp_path_factory.mktemp("operating"),
        MODEL_PRICES="gpt-4o=2.50/10.00",
        MAX_LIVE_PARTITIONS=str(LIVE),
        HISTORY_DAYS="7",
        OPENAI_TIMEOUT="300",
    ) as (stack, provider):
        operator = Operator(stack, provider)
        # What the tests ask for by hand must not come by itself as well.
        operator.stop_schedules()
        yield operator


@pytest.fixture
def operator(_operator: Operator) -> Operator:
    _operator.provider.reset()
    return _operator


def job_status(operator: Operator, ingested: Json) -> Json:
    return call(operator, "job_status", artifact_uid=ingested["artifact_uid"])


def call(operator: Operator, tool: str, **arguments: Any) -> Json:
    async def ask() -> Json:
        async with Client(operator.stack.mcp_url) as client:
            answer = await client.call_tool(tool, arguments)
            assert not answer.is_error, answer.content
            assert answer.structured_content is not None
            return answer.structured_content

    return asyncio.run(ask())


# --- materialising by hand ---------------------------------------------------------------------


@pytest.mark.slow
def test_chosen_partitions_are_redone_by_a_backfill_and_others_by_hand_meanwhile(
    operator: Operator,
) -> None:
    """One test, since the daemon looks for backfills every thirty seconds only."""
    titles = [f"Backfilled {number}" for number in range(4)]
    ingested = operator.ingest_all(
        [
            {"content": document(seed=20 + number, count=40), "title": title}
            for number, title in enumerate(titles)
        ]
    )
    operator.wait_done(*ingested)
    chosen, left = ingested[:3], ingested[3]
    stories = [operator.story(one) for one in ingested]
    calls = len(operator.provider.chats)
    backfill = operator.launch_backfill(LATER, [operator.partition(one) for one in chosen])

    redo_a_failed_revision(operator)
    an_upstream_asset_alone_brings_what_follows_along(operator)
    what_another_run_holds_is_left_to_it(operator)

    eventually(lambda: operator.backfill_status(backfill) == "COMPLETED_SUCCESS", what="backfill")
    for one in chosen:
        extraction = operator.extraction(one)
        assert extraction["requested_by"] == "backfill"
        assert extraction["cache_hits"] == extraction["chunks"]
        assert job_status(operator, one)["status"] == "DONE"
        assert job_status(operator, one)["generation"] == 2
    assert operator.extraction(left)["generation"] == 1
    assert [operator.story(one) for one in ingested] == stories
    asked = [call for call in operator.provider.chats if "Backfilled" in str(call.body)]
    assert len(asked) == calls, "a chunk was paid for again"
    [run_id] = {operator.extraction(one)["run_id"] for one in chosen}
    assert operator.tags(run_id).items() >= {"trigger": "backfill", "revisions": "3"}.items()


def redo_a_failed_revision(operator: Operator) -> None:
    operator.provider.enqueue(AuthError(only=asks_about("Refused once")))
    ingested = operator.ingest("Decision: try once more.", title="Refused once")
    operator.wait_for(ingested, "FAILED")
    key = operator.partition(ingested)
    assert key.startswith("refused-once:")
    eventually(lambda: key in operator.partitions("stored_events")[1], what="a red partition")

    run_id = operator.launch("__ASSET_JOB", assets=STAGES, partition=key)

    assert operator.wait_finished(run_id) == "SUCCESS"
    status = job_status(operator, ingested)
    assert status["status"] == "DONE"
    assert (status["origin"], status["locked_by"]) == ("ui", run_id)
    assert (status["attempts"], status["last_error_code"]) == (1, None)
    assert len(operator.events(ingested)) == 1
    assert operator.is_green(ingested)
    assert (
        operator.tags(run_id).items()
        >= {
            "trigger": "ui",
            "artifact": ingested["artifact_uid"],
            "source": "test",
            "title": "Refused once",
        }.items()
    )
    shown = operator.metadata("stored_events", key)
    assert shown.items() >= {"title": "Refused once", "calls": 1, "events": 1}.items()
    assert shown["cost"] > 0


def an_upstream_asset_alone_brings_what_follows_along(operator: Operator) -> None:
    ingested = operator.ingest("Decision: begin in the middle.", title="Upstream")
    [job] = operator.wait_done(ingested)
    operator.wait_finished(job["locked_by"])
    key = operator.partition(ingested)

    run_id = operator.launch("__ASSET_JOB", assets=[CHUNK_EXTRACTIONS], partition=key)

    assert operator.wait_finished(run_id) == "SUCCESS"
    assert operator.extraction(ingested)["run_id"] == run_id
    makers = {stage: operator.maker(stage, key) for stage in STAGES}
    assert makers.pop("chunk_text") != run_id
    assert set(makers.values()) == {run_id}, "the page says what was done"


def what_another_run_holds_is_left_to_it(operator: Operator) -> None:
    slow = Held(only=asks_about("Held"))
    operator.provider.enqueue(slow)
    ingested = operator.ingest("Decision: hold the line.", title="Held")
    holder = operator.wait_for(ingested, "PROCESSING")["locked_by"]
    key = operator.partition(ingested)

    run_id = operator.launch("__ASSET_JOB", assets=STAGES, partition=key)

    assert operator.wait_finished(run_id) == "SUCCESS"
    assert f"run {holder} is working on it" in operator.said(run_id)
    assert operator.tags(run_id)["left_to_another_run"] == "1"
    slow.gate.set()
    assert operator.wait_finished(holder) == "SUCCESS"
    assert job_status(operator, ingested)["status"] == "DONE"
    assert operator.is_green(ingested)


def test_a_check_alone_extracts_nothing(operator: Operator) -> None:
    operator.wait_done(operator.ingest("Decision: check it.", title="Checked"))
    operator.wait_idle()
    before = operator.sql("SELECT count(*) AS n, max(updated_at) AS last FROM event_jobs")
    check = "quotes_are_the_text_at_their_offsets"

    run_id = operator.launch_check("stored_events", check)

    assert operator.wait_finished(run_id) == "SUCCESS"
    assert operator.sql("SELECT count(*) AS n, max(updated_at) AS last FROM event_jobs") == before
    results = {result["runId"]: result["status"] for result in operator.check_results(check)}
    assert results[run_id] == "SUCCEEDED"


# --- figures -----------------------------------------------------------------------------------


def test_the_pipeline_tells_how_it_does(operator: Operator) -> None:
    ingested = operator.ingest("Decision: count it.", title="Counted")
    operator.wait_done(ingested)

    run_id = operator.launch("report_health")
    assert operator.wait_finished(run_id) == "SUCCESS"

    shown = operator.metadata("pipeline_health")
    assert shown["events_per_day"] >= shown["revisions_per_day"] >= 1
    assert shown["tokens_per_day"] > shown["calls_per_day"] >= 1
    assert shown["p95_seconds_to_events"] > 0
    assert shown["p95_call_seconds"] > 0
    assert shown["cost_per_day"] > 0
    assert 0 <= shown["failure_rate"] <= 1
    assert shown["oldest_pending_seconds"] == 0


def test_a_document_that_waits_too_long_is_told_and_an_idle_memory_is_fresh(
    operator: Operator,
) -> None:
    assert freshness(operator) == "SUCCEEDED"
    with operator.queue_closed():
        waiting = operator.ingest("Decision: wait for it.", title="Waiting")
        operator.sql(
            "UPDATE event_jobs SET created_at = now() - interval '31 minutes' WHERE job_id = %s",
            waiting["job_id"],
        )
        assert freshness(operator) == "FAILED"
    operator.wait_done(waiting)
    assert freshness(operator) == "SUCCEEDED"


def freshness(operator: Operator) -> str:
    run_id = operator.launch("verify_events_are_fresh")
    operator.wait_finished(run_id)
    [status] = [
        str(result["status"])
        for result in operator.check_results("events_are_fresh")
        if result["runId"] == run_id
    ]
    return status


# --- upkeep ------------------------------------------------------------------------------------


def keep_house(operator: Operator) -> Json:
    run_id = operator.launch("keep_house")
    assert operator.wait_finished(run_id) == "SUCCESS", operator.said(run_id)
    return operator.metadata("housekeeping")


@pytest.mark.slow
def test_partitions_are_retired_beyond_the_limit_and_come_back_when_asked_for(
    operator: Operator,
) -> None:
    def versions(word: str) -> Sequence[Json]:
        return [
            {
                "content": f"Decision: plan {number} is {word}.",
                "source_id": f"retired-{number}",
                "title": f"Plan {number}",
            }
            for number in range(REVISIONS // 2)
        ]

    with operator.queue_closed():
        old = operator.ingest_all(versions("old"))
    operator.wait_done(*old)
    with operator.queue_closed():
        new = operator.ingest_all(versions("new"))
    operator.wait_done(*new)
    operator.wait_idle()
    with operator.queue_closed():
        # Superseded and oldest: the first to go, but for the work before it.
        call(
            operator,
            "event_reextract",
            artifact_uid=old[0]["artifact_uid"],
            revision_id=old[0]["revision_id"],
            force=True,
        )
        shown = keep_house(operator)

    assert shown["live_partitions"] == LIVE
    live = set(operator.live_partitions())
    assert len(live) == LIVE
    assert operator.partition(old[0]) in live, "its job waits"
    assert live.isdisjoint(operator.partition(one) for one in old[1:])
    assert {operator.partition(one) for one in new[-LIVE + 10 :]} <= live, "the newest stay"
    operator.wait_done(old[0])

    # A retired revision is asked for as any other, by whatever way; its key is back then.
    by_command, by_tool, by_backfill = old[1:4]
    stories = {one["job_id"]: operator.story(one) for one in old[1:4]}
    named = {name: by_tool[name] for name in ("artifact_uid", "revision_id")}
    operator.command("reextract", by_command["artifact_uid"], by_command["revision_id"], "--force")
    call(operator, "event_reextract", **named, force=True)
    operator.sql(
        "UPDATE extraction SET extract_version = '0-old' WHERE artifact_uid = %s "
        "AND revision_id = %s",
        by_backfill["artifact_uid"],
        by_backfill["revision_id"],
    )
    renewed(operator, by_command)
    renewed(operator, by_tool)
    operator.command("backfill", "start", "--artifact", by_backfill["artifact_uid"], "--yes")
    renewed(operator, by_backfill)
    assert job_of(operator, by_backfill)["origin"] == "backfill"
    assert {one["job_id"]: operator.story(one) for one in old[1:4]} == stories


def renewed(operator: Operator, retired: Json) -> None:
    """Wait until a retired revision is done again, and seen to be."""
    eventually(
        lambda: (job := job_of(operator, retired))["status"] == "DONE" and job["generation"] == 2,
        what="the retired revision",
    )
    run_id = job_of(operator, retired)["locked_by"]
    assert operator.wait_finished(run_id) == "SUCCESS"
    assert operator.partition(retired) in operator.live_partitions()
    assert operator.is_green(retired)


def job_of(operator: Operator, ingested: Json) -> Json:
    [job] = operator.sql("SELECT * FROM event_jobs WHERE job_id = %s", ingested["job_id"])
    return job


@pytest.mark.slow
def test_history_is_pruned_but_for_what_shows_the_state_of_a_partition(
    operator: Operator,
) -> None:
    twice = operator.ingest("Decision: twice in history.", title="Twice in history")
    [first] = operator.wait_done(twice)
    operator.wait_finished(first["locked_by"])
    key = operator.partition(twice)
    last = operator.launch("__ASSET_JOB", assets=STAGES, partition=key)
    operator.wait_finished(last)
    operator.provider.enqueue(AuthError(only=asks_about("Red for ever")))
    red = operator.ingest("Decision: stay red.", title="Red for ever")
    failed = operator.wait_for(red, "FAILED")["locked_by"]
    operator.wait_finished(failed)
    health = [operator.launch("report_health") for _ in range(2)]
    for run_id in health:
        operator.wait_finished(run_id)
    unfinished = operator.pretend_a_run_never_ended()
    operator.age_runs([first["locked_by"], last, failed, *health, unfinished], days=8)
    young = operator.launch("report_health")
    operator.wait_finished(young)

    shown = keep_house(operator)

    assert shown["pruned_runs"] >= 3
    kept = {run["runId"] for run in operator.runs()}
    assert kept.isdisjoint({first["locked_by"], *health})
    assert {last, failed, unfinished, young} <= kept
    assert operator.is_green(twice)
    assert operator.partition(red) in operator.partitions("stored_events")[1]
    assert operator.maker("stored_events", key) == last
    assert operator.stale_status("stored_events", key) == "FRESH"
    assert keep_house(operator)["pruned_runs"] == 0
