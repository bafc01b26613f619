"""job_list, job_cancel, job_status with its history, and `mcp-memory jobs …`."""

import psycopg
import pytest

from tests.integration.commands import Command, answer, words
from tests.integration.planted_events import ingest
from tests.tool_client import Json, ToolClient


@pytest.fixture
async def stored(tools: ToolClient) -> list[Json]:
    """Five documents, in the order of their jobs."""
    return [
        await ingest(tools, f"Note {number}.", source_id=f"note-{number}", title=f"Note {number}")
        for number in range(5)
    ]


@pytest.fixture
def failed(stored: list[Json], sql: psycopg.Connection) -> list[Json]:
    """Of these, two have failed."""
    for one, code in ((stored[1], "OPENAI_TIMEOUT"), (stored[3], "OPENAI_AUTH_ERROR")):
        sql.execute(
            "UPDATE event_jobs SET status = 'FAILED', last_error_code = %s WHERE job_id = %s",
            [code, one["job_id"]],
        )
    return stored


def ids(page: Json) -> list[str]:
    return [job["job_id"] for job in page["jobs"]]


# --- job_list -----------------------------------------------------------------------------------


async def test_pages_follow_each_other_whatever_comes_meanwhile(
    tools: ToolClient, stored: list[Json]
) -> None:
    newest_first = [one["job_id"] for one in reversed(stored)]
    first = await tools("job_list", limit=2)
    await ingest(tools, "One more.", source_id="more")
    second = await tools("job_list", limit=2, cursor=first["next_cursor"])
    third = await tools("job_list", limit=2, cursor=second["next_cursor"])

    assert [*ids(first), *ids(second), *ids(third)] == newest_first
    assert third["next_cursor"] is None
    assert first["jobs"][0]["title"] == "Note 4"


async def test_jobs_of_one_state(tools: ToolClient, failed: list[Json]) -> None:
    page = await tools("job_list", status="FAILED", limit=1)
    rest = await tools("job_list", status="FAILED", limit=1, cursor=page["next_cursor"])

    assert [*ids(page), *ids(rest)] == [failed[3]["job_id"], failed[1]["job_id"]]
    assert page["jobs"][0]["last_error_code"] == "OPENAI_AUTH_ERROR"
    assert rest["next_cursor"] is None
    assert await tools("job_list", status="CANCELED") == {"jobs": [], "next_cursor": None}


@pytest.mark.parametrize("cursor", ["the next one", "", "MjAyNg", "é"])
async def test_a_cursor_of_no_page_is_refused(
    tools: ToolClient, stored: list[Json], cursor: str
) -> None:
    if cursor == "":
        assert len(ids(await tools("job_list", cursor=cursor))) == 5, "none is meant"
        return
    error = await tools.refusal("job_list", cursor=cursor)
    assert (error["error_code"], error["details"]["parameter"]) == ("VALIDATION_ERROR", "cursor")


# --- job_status and job_cancel ------------------------------------------------------------------


async def test_the_history_tells_every_step(tools: ToolClient, stored: list[Json]) -> None:
    job_id = stored[0]["job_id"]
    canceled = await tools("job_cancel", job_id=f"job_{job_id}")
    await tools("event_reextract", artifact_uid=stored[0]["artifact_uid"], priority=7)
    job = await tools("job_status", job_id=job_id)

    assert (canceled["status"], job["status"]) == ("CANCELED", "PENDING")
    assert (job["priority"], job["origin"], job["generation"]) == (7, "tool", 2)
    steps = [(step["prev_status"], step["next_status"]) for step in job["history"]]
    assert steps == [(None, "PENDING"), ("PENDING", "CANCELED"), ("CANCELED", "PENDING")]
    assert {"attempt", "generation", "origin", "who"} <= job["history"][0]["detail"].keys()


async def test_what_has_failed_cannot_be_canceled(tools: ToolClient, failed: list[Json]) -> None:
    error = await tools.refusal("job_cancel", job_id=failed[1]["job_id"])

    assert (error["error_code"], error["details"]["status"]) == ("CONFLICT", "FAILED")


@pytest.mark.parametrize("priority", [-101, 101, 1.5, "high"])
async def test_a_priority_has_limits(tools: ToolClient, priority: object) -> None:
    error = await tools.refusal(
        "artifact_ingest", artifact_type="note", source_system="notes", content="x",
        priority=priority,
    )  # fmt: skip
    assert error["error_code"] == "VALIDATION_ERROR"


# --- the command line ---------------------------------------------------------------------------


def test_list_and_its_pages(command: Command, failed: list[Json]) -> None:
    text = words(command("jobs", "list", "--limit", "2"))
    assert "more: --cursor " in text
    cursor = text.rpartition("--cursor ")[2].strip()
    page = answer(command, "jobs", "list", "--limit", "2", "--cursor", cursor)

    assert ids(page) == [failed[2]["job_id"], failed[1]["job_id"]]
    assert "OPENAI_AUTH_ERROR" in words(command("jobs", "list", "--status", "failed"))


def test_show_cancel_and_retry_by_the_first_characters(
    command: Command, stored: list[Json]
) -> None:
    job = stored[0]["job_id"][:10]
    assert "CANCELED" in command("jobs", "cancel", job)
    shown = words(command("jobs", "show", job))
    assert "PENDING CANCELED" in shown
    command("jobs", "retry", job)

    job_shown = answer(command, "jobs", "show", job)
    assert (job_shown["status"], job_shown["generation"]) == ("PENDING", 2)
    assert job_shown["history"][1]["detail"]["who"] == "tool job_cancel"


def test_retry_all_that_failed_or_with_one_code(command: Command, failed: list[Json]) -> None:
    assert answer(command, "jobs", "retry", "--failed", "--code", "OPENAI_TIMEOUT") == {"jobs": 1}
    assert answer(command, "jobs", "retry", "--failed") == {"jobs": 1}
    assert answer(command, "jobs")["counts"] == {"PENDING": 5}
