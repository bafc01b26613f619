"""event_get, event_list_for_revision, event_reextract, job_status, stakeholder_map,
commitment_list and timeline: each says what is there, and why when nothing is."""

from typing import Any
from uuid import uuid4

import psycopg
import pytest

from memory_core.kernel.errors import ErrorCode, MemoryFault
from memory_core.queue import jobs
from memory_core.runtime import Runtime
from tests.integration import demo_corpus
from tests.integration.planted_events import Event, Garden, ingest
from tests.tool_client import Json, ToolClient

JOB_FIELDS = {
    *("job_id", "artifact_uid", "revision_id", "status", "attempts", "max_attempts"),
    *("created_at", "updated_at", "locked_by", "locked_at", "last_error_code"),
    *("last_error_message", "next_run_at"),
}
UNKNOWN_EVENT = "00000000-0000-4000-8000-000000000000"


def set_status(sql: psycopg.Connection, status: str, **columns: Any) -> None:
    columns["status"] = status
    sql.execute("UPDATE event_jobs SET status = 'PENDING' WHERE status <> 'PENDING'")
    assignments = ", ".join(f"{name} = %({name})s" for name in columns)
    sql.execute(f"UPDATE event_jobs SET {assignments}", columns)


# --- event_get -------------------------------------------------------------------------------


@pytest.fixture
async def stored(tools: ToolClient, runtime: Runtime) -> Json:
    """An event that the real pipeline extracted."""
    text = "# Minutes\n\nWe decided to charge per location. Everybody agreed to that.\n"
    await ingest(tools, text, title="Minutes", ts="2026-01-10T09:00:00Z")
    await demo_corpus.extract_pending(runtime)
    answer = await tools("event_search", query="charge per location")
    return {**answer["events"][0], "text": text}


@pytest.mark.parametrize("prefix", ["", "evt_"])
async def test_an_event_with_all_that_is_known_of_it(
    tools: ToolClient, stored: Json, prefix: str
) -> None:
    event = await tools("event_get", event_id=prefix + stored["event_id"])

    for field in ("event_id", "artifact_uid", "revision_id", "category", "narrative", "actors"):
        assert event[field] == stored[field]
    job = await tools("job_status", artifact_uid=event["artifact_uid"])
    assert event["extraction_run_id"] == job["job_id"]
    assert event["extractor"] == "rules"
    assert event["model"]
    assert event["prompt_version"]
    assert event["is_latest"] is True
    assert event["created_at"]
    assert event["title"] == "Minutes"
    document = await tools("artifact_get", artifact_uid=event["artifact_uid"])
    [evidence] = event["evidence"]
    assert evidence["evidence_id"]
    assert evidence["artifact_id"] == document["artifact_id"]
    assert stored["text"][evidence["start_char"] : evidence["end_char"]] == evidence["quote"]
    assert evidence["text_before"] is None
    assert evidence["text_after"] is None


@pytest.mark.parametrize("context", [1, 5, 2000])
async def test_a_quote_in_its_surroundings(tools: ToolClient, stored: Json, context: int) -> None:
    event = await tools("event_get", event_id=stored["event_id"], context_chars=context)

    [evidence] = event["evidence"]
    start, end, text = evidence["start_char"], evidence["end_char"], stored["text"]
    assert evidence["text_before"] == text[max(start - context, 0) : start]
    assert evidence["text_after"] == text[end : end + context]


async def test_an_event_of_an_old_revision_says_so(garden: Garden, tools: ToolClient) -> None:
    old = await garden.document(Event("The first plan."), source_id="plan")
    await garden.document(Event("The second plan."), source_id="plan")

    assert (await tools("event_get", event_id=old.ids[0]))["is_latest"] is False


async def test_an_unknown_event_is_not_found(tools: ToolClient) -> None:
    for event_id in (UNKNOWN_EVENT, f"evt_{UNKNOWN_EVENT}"):
        error = await tools.refusal("event_get", event_id=event_id)
        assert error["error_code"] == "NOT_FOUND"
        assert UNKNOWN_EVENT in error["error"]


@pytest.mark.parametrize(
    "event_id",
    [
        "evt_abc123", "evt_nonexistent", "abc123", "'; DROP TABLE event_jobs", "x" * 10_000,
        "evt_\x00", "evt_\ud800",
    ],
)  # fmt: skip
async def test_an_id_that_is_not_even_well_formed_names_no_event(
    tools: ToolClient, event_id: str
) -> None:
    error = await tools.refusal("event_get", event_id=event_id)

    assert error["error_code"] == "NOT_FOUND"
    assert error["error"].startswith("There is no event ")
    assert len(error["error"]) < 300


@pytest.mark.parametrize(
    "arguments",
    [
        {"event_id": ""},
        {"event_id": 7},
        {"event_id": UNKNOWN_EVENT, "context_chars": -1},
        {"event_id": UNKNOWN_EVENT, "context_chars": 2001},
        {},
    ],
)
async def test_bad_arguments_of_event_get_are_refused(tools: ToolClient, arguments: Json) -> None:
    error = await tools.refusal("event_get", **arguments)

    assert error["error_code"] == "VALIDATION_ERROR"


# --- event_list_for_revision -----------------------------------------------------------------


async def test_the_events_of_a_revision(garden: Garden, tools: ToolClient) -> None:
    first = await garden.document(Event("The first plan."), source_id="plan")
    second = await garden.document(
        Event("The second plan.", time="2026-01-01"),
        Event("The second budget.", time="2026-02-01"),
        source_id="plan",
    )

    latest = await tools("event_list_for_revision", artifact_uid=first.uid)
    old = await tools(
        "event_list_for_revision",
        artifact_uid=first.uid,
        revision_id=first.revision,
        include_evidence=True,
    )

    assert latest["revision_id"] == second.revision
    assert latest["is_latest"] is True
    assert [e["narrative"] for e in latest["events"]] == ["The second budget.", "The second plan."]
    assert latest["total"] == 2
    assert not [event for event in latest["events"] if "evidence" in event]
    assert (old["is_latest"], old["total"]) == (False, 1)
    assert old["events"][0]["evidence"][0]["quote"] == "The first plan."


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("PENDING", "waiting"),
        ("PROCESSING", "running"),
        ("FAILED", "event_reextract"),
        ("DONE", "has no events"),
    ],
)
async def test_an_empty_list_says_why(
    tools: ToolClient, sql: psycopg.Connection, status: str, said: str
) -> None:
    document = await ingest(tools, "Nothing.")
    set_status(sql, status)

    answer = await tools("event_list_for_revision", artifact_uid=document["artifact_uid"])

    assert (answer["events"], answer["total"], answer["job_status"]) == ([], 0, status)
    assert said in answer["explanation"]


async def test_an_empty_list_without_a_job_says_so(
    tools: ToolClient, sql: psycopg.Connection
) -> None:
    document = await ingest(tools, "Nothing.")
    sql.execute("DELETE FROM event_jobs")

    answer = await tools("event_list_for_revision", artifact_uid=document["artifact_uid"])

    assert answer["job_status"] is None
    assert "no extraction job" in answer["explanation"]


async def test_old_events_of_a_revision_under_way_are_called_so(
    garden: Garden, tools: ToolClient
) -> None:
    planted = await garden.document(Event("The plan."), source_id="plan")
    await tools("event_reextract", artifact_uid=planted.uid, force=True)

    answer = await tools("event_list_for_revision", artifact_uid=planted.uid)

    assert answer["total"] == 1
    assert "earlier extraction" in answer["explanation"]


@pytest.mark.parametrize("tool", ["event_list_for_revision", "event_reextract", "job_status"])
async def test_an_unknown_document_or_revision_is_not_found(tools: ToolClient, tool: str) -> None:
    stored = (await ingest(tools, "Something."))["artifact_uid"]

    for arguments in (
        {"artifact_uid": "uid_0000000000000000"},
        {"artifact_uid": stored, "revision_id": "rev_0000000000000000"},
    ):
        error = await tools.refusal(tool, **arguments)
        assert error["error_code"] == "NOT_FOUND"
        assert arguments["artifact_uid"] in error["error"]


# --- event_reextract: the table of the design ------------------------------------------------


def job_row(sql: psycopg.Connection) -> tuple[Any, ...]:
    row = sql.execute("SELECT status, attempts, generation, locked_by FROM event_jobs").fetchone()
    assert row is not None
    return row


async def test_without_a_job_one_is_made(tools: ToolClient, sql: psycopg.Connection) -> None:
    document = await ingest(tools, "Something.")
    sql.execute("DELETE FROM event_jobs")

    answer = await tools("event_reextract", artifact_uid=document["artifact_uid"])

    assert answer["status"] == "PENDING"
    assert answer["revision_id"] == document["revision_id"]
    assert job_row(sql) == ("PENDING", 0, 1, None)
    assert (await tools("job_status", job_id=answer["job_id"]))["origin"] == "tool"


@pytest.mark.parametrize("status", ["PENDING", "PROCESSING"])
async def test_what_is_under_way_is_left_alone(
    tools: ToolClient, sql: psycopg.Connection, status: str
) -> None:
    document = await ingest(tools, "Something.")
    set_status(sql, status, attempts=2, locked_by="run-1")

    answer = await tools("event_reextract", artifact_uid=document["artifact_uid"])

    assert answer["status"] == status
    assert status in answer["message"]
    assert "force" in answer["message"]
    assert job_row(sql) == (status, 2, 1, "run-1")


async def test_what_failed_is_reset(tools: ToolClient, sql: psycopg.Connection) -> None:
    document = await ingest(tools, "Something.")
    set_status(
        sql, "FAILED", attempts=5, last_error_code="OPENAI_TIMEOUT", last_error_message="late"
    )

    answer = await tools("event_reextract", artifact_uid=document["artifact_uid"])

    assert answer["status"] == "PENDING"
    assert job_row(sql) == ("PENDING", 0, 2, None)
    status = await tools("job_status", artifact_uid=document["artifact_uid"])
    assert (status["last_error_code"], status["last_error_message"]) == (None, None)


async def test_what_is_done_stays_done_and_names_force(
    garden: Garden, tools: ToolClient, sql: psycopg.Connection
) -> None:
    planted = await garden.document(Event("The plan."), source_id="plan")

    answer = await tools("event_reextract", artifact_uid=planted.uid)

    assert answer["status"] == "DONE"
    assert "force=true" in answer["message"]
    assert job_row(sql) == ("DONE", 1, 1, "run-1")


@pytest.mark.parametrize("status", ["PENDING", "PROCESSING", "DONE", "FAILED"])
async def test_force_resets_whatever_it_is_and_keeps_the_events(
    garden: Garden, tools: ToolClient, sql: psycopg.Connection, status: str
) -> None:
    planted = await garden.document(Event("The plan."), source_id="plan")
    set_status(sql, status, attempts=3, locked_by="run-1")

    answer = await tools("event_reextract", artifact_uid=planted.uid, force=True)

    assert answer["status"] == "PENDING"
    assert job_row(sql) == ("PENDING", 0, 2, None)
    assert (await tools("event_search"))["total"] == 1, "readable until they are replaced"


async def test_force_gives_a_job_from_before_the_limit_of_today(
    tools: ToolClient, sql: psycopg.Connection
) -> None:
    document = await ingest(tools, "Something.")
    sql.execute("UPDATE event_jobs SET max_attempts = 2")

    answer = await tools("event_reextract", artifact_uid=document["artifact_uid"], force=True)

    job = await tools("job_status", job_id=answer["job_id"])
    assert job["max_attempts"] == 5


async def test_force_takes_the_lease_from_a_run_in_flight(
    tools: ToolClient, runtime: Runtime
) -> None:
    document = await ingest(tools, "Something.")
    [due] = await jobs.claimable(runtime.database, 10)
    [job] = await jobs.claim(runtime.database, [due.partition_key], "run-1")

    await tools("event_reextract", artifact_uid=document["artifact_uid"], force=True)

    with pytest.raises(jobs.LeaseLost):
        async with runtime.database.transaction() as session:
            await jobs.hold(session, job)
    assert not (await jobs.heartbeat(runtime.database, "run-1", [job.job_id])).jobs


async def test_an_old_revision_can_be_named(garden: Garden, tools: ToolClient) -> None:
    old = await garden.document(Event("The first plan."), source_id="plan")
    await garden.document(Event("The second plan."), source_id="plan")

    answer = await tools(
        "event_reextract", artifact_uid=old.uid, revision_id=old.revision, force=True
    )

    assert (answer["revision_id"], answer["job_id"]) == (old.revision, str(old.job_id))
    latest = await tools("job_status", artifact_uid=old.uid)
    assert latest["status"] == "DONE"


# --- job_status ------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["PENDING", "PROCESSING", "DONE", "FAILED"])
async def test_all_fields_whatever_the_status(
    tools: ToolClient, sql: psycopg.Connection, status: str
) -> None:
    document = await ingest(tools, "Something.")
    set_status(sql, status)

    answer = await tools("job_status", artifact_uid=document["artifact_uid"])

    assert set(answer) >= JOB_FIELDS
    assert answer["status"] == status
    assert answer["max_attempts"] == 5
    assert (answer["next_run_at"] is not None) == (status == "PENDING")
    assert answer["job_id"] == document["job_id"]


async def test_a_failure_says_why(tools: ToolClient, runtime: Runtime) -> None:
    document = await ingest(tools, "Something.")
    [due] = await jobs.claimable(runtime.database, 10)
    [job] = await jobs.claim(runtime.database, [due.partition_key], "run-1")
    fault = MemoryFault("the model does not exist")
    fault.code = ErrorCode.OPENAI_INVALID_MODEL
    await jobs.fail(runtime.database, job, fault)

    answer = await tools("job_status", artifact_uid=document["artifact_uid"])

    assert answer["status"] == "FAILED"
    assert answer["last_error_code"] == "OPENAI_INVALID_MODEL"
    assert "does not exist" in answer["last_error_message"]
    assert answer["locked_by"] == "run-1"


@pytest.mark.parametrize("prefix", ["", "job_"])
async def test_by_the_id_of_the_job(tools: ToolClient, prefix: str) -> None:
    document = await ingest(tools, "Something.")

    answer = await tools("job_status", job_id=prefix + document["job_id"])

    assert answer == await tools("job_status", artifact_uid=document["artifact_uid"])


async def test_of_an_old_revision(garden: Garden, tools: ToolClient) -> None:
    old = await garden.document(Event("The first plan."), source_id="plan")
    await ingest(tools, "The second plan.", source_id="plan")

    latest = await tools("job_status", artifact_uid=old.uid)
    named = await tools("job_status", artifact_uid=old.uid, revision_id=old.revision)

    assert (latest["status"], named["status"]) == ("PENDING", "DONE")


async def test_unknown_jobs_are_not_found(tools: ToolClient, sql: psycopg.Connection) -> None:
    error = await tools.refusal("job_status", job_id=str(uuid4()))
    assert error["error_code"] == "NOT_FOUND"

    document = await ingest(tools, "Something.")
    sql.execute("DELETE FROM event_jobs")
    error = await tools.refusal("job_status", artifact_uid=document["artifact_uid"])
    assert error["error_code"] == "NOT_FOUND"
    assert "event_reextract" in error["error"]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"artifact_uid": "uid_1", "job_id": UNKNOWN_EVENT},
        {"job_id": ""},
        {"job_id": " ", "artifact_uid": ""},
    ],
)
async def test_a_job_is_named_in_one_way(tools: ToolClient, arguments: Json) -> None:
    error = await tools.refusal("job_status", **arguments)

    assert error["error_code"] == "VALIDATION_ERROR"


async def test_a_blank_id_is_none_given(tools: ToolClient) -> None:
    document = await ingest(tools, "Something.")

    by_job = await tools("job_status", job_id=document["job_id"], artifact_uid="", revision_id=" ")

    assert by_job == await tools("job_status", artifact_uid=document["artifact_uid"], job_id="")


@pytest.mark.parametrize("blank", ["", "  ", "\n"])
@pytest.mark.parametrize(
    "parameter",
    ["query", "actor", "subject", "source_system", "artifact_uid", "time_from", "time_to"],
)
async def test_a_blank_filter_is_none(
    garden: Garden, tools: ToolClient, parameter: str, blank: str
) -> None:
    await garden.document(Event("The plan."), source_id="plan")

    answer = await tools("event_search", **{parameter: blank})

    assert (answer["total"], answer["filters_applied"]) == (1, {})
