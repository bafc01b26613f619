"""`mcp-memory search`, `documents`, `people`, `status`, `config` as people and scripts run them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from pydantic import SecretStr

from mcp_server.cli.command_wording import in_commands
from memory_core.kernel.errors import InvalidInput, MemoryFault, NotFound
from memory_core.kernel.settings import Settings
from tests.integration.commands import Command, answer, words
from tests.integration.planted_events import Event, Garden, Planted, ingest
from tests.patience import PATIENCE
from tests.tool_client import Json, ToolClient

ANSWER = "We dropped SMS codes because carriers deliver them too late."
LONG = "\n".join(
    [
        "# Signing in",
        *(f"Paragraph {number} tells of something else entirely." for number in range(30)),
        ANSWER,
        *(f"Paragraph {number} goes on about other matters." for number in range(30)),
    ]
)
DECISION = Event(
    "Alice Chen decided to drop SMS codes.", time="2026-03-01", actors=("Alice Chen",),
    subject="sign-in", quote=ANSWER,
)  # fmt: skip


@pytest.fixture
async def planted(garden: Garden) -> Planted:
    return await garden.document(
        DECISION, source_id="signing-in.md", content=LONG, title="Signing\x1b[31m in"
    )


# --- search ----------------------------------------------------------------------------------


def test_search_shows_the_sentence_that_answers_and_where_it_is_from(
    command: Command, planted: Planted
) -> None:
    text = words(command("search", "why did we drop SMS codes?"))

    assert text.startswith(f"1. Signing[31m in {planted.uid[:12]}, note")
    assert ANSWER in text
    assert "Paragraph 0 tells" not in text
    assert "Paragraph 0 tells" in command("search", "why did we drop SMS codes?", "--full")


def test_search_for_scripts_is_the_tools_own_answer(command: Command, planted: Planted) -> None:
    shown = answer(command, "search", "SMS codes", "--document", planted.uid[:10])

    assert [hit["artifact_uid"] for hit in shown["results"]] == [planted.uid]


@pytest.mark.usefixtures("settings")
def test_an_empty_search_says_that_nothing_is_stored(command: Command) -> None:
    assert command("search", "anything").strip() == "Nothing is stored yet."


@pytest.fixture
async def promised(garden: Garden) -> Planted:
    return await garden.document(
        Event("Bob Ray will paint the hall.", category="Commitment", time="2099-01-01"),
        source_id="hall.md",
    )


def test_a_due_date_is_called_one(command: Command, promised: Planted) -> None:
    assert "due 2099-01-01 Commitment" in words(command("events", "search", "hall"))
    assert "Commitment due 2099-01-01" in words(command("events", "search", "hall", "--full"))
    assert "due 2099-01-01 Commitment" in words(command("documents", "show", promised.uid))
    assert "Commitment due Bob Ray" in words(command("events", "timeline", "hall"))
    shown = words(command("events", "show", promised.ids[0]))
    assert "when no date given due 2099-01-01" in shown


# --- why an answer about events is empty -----------------------------------------------------

QUESTIONS = [
    ("events", "search", "zebra"),
    ("events", "timeline", "zebra"),
    ("events", "commitments"),
    ("people", "zebra"),
]


@pytest.fixture
async def waiting(tools: ToolClient) -> Json:
    return await ingest(tools, "Something was said.", source_id="note")


@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
def test_nothing_is_stored(command: Command, question: tuple[str, ...]) -> None:
    assert "Nothing is stored yet." in command(*question)
    assert answer(command, *question)["why_empty"] == "Nothing is stored yet."


@pytest.mark.usefixtures("waiting")
@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
def test_nothing_is_extracted_yet(command: Command, question: tuple[str, ...]) -> None:
    text = words(command(*question))

    assert "Not extracted yet: 1 waiting." in text
    assert "start `mcp-memory up`" in text


@pytest.mark.usefixtures("waiting")
@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
def test_extraction_failed(
    command: Command, sql: psycopg.Connection, question: tuple[str, ...]
) -> None:
    sql.execute("UPDATE event_jobs SET status = 'FAILED', last_error_code = 'OPENAI_AUTH_ERROR'")

    assert "Extraction failed: 1 with OPENAI_AUTH_ERROR." in words(command(*question))


@pytest.mark.usefixtures("planted")
def test_truly_nothing_matches(command: Command) -> None:
    text = words(command("events", "search", "--category", "Feedback"))

    assert text == "No event matches in 1 document with extracted events."


def test_the_cause_of_a_job_that_was_given_up_is_told(
    command: Command, sql: psycopg.Connection, waiting: Json
) -> None:
    sql.execute(
        "UPDATE event_jobs SET status = 'FAILED', last_error_code = 'MAX_ATTEMPTS_EXCEEDED', "
        "last_error_message = 'Gave up after 5 attempts. Last cause: OPENAI_TIMEOUT: too late'"
    )

    assert "1 with OPENAI_TIMEOUT" in command("events", "search")


def test_of_one_document_only_its_own_extraction_matters(
    command: Command, planted: Planted, waiting: Json
) -> None:
    uid = waiting["artifact_uid"]

    assert "1 waiting" in command("events", "search", "--document", uid)
    assert "waiting" not in command(
        "events", "search", "--document", planted.uid, "--category", "Feedback"
    )


# --- documents -------------------------------------------------------------------------------


def test_documents_are_listed_with_their_events(
    command: Command, planted: Planted, waiting: Json
) -> None:
    text = words(command("documents", "list"))

    assert f"{planted.uid[:12]} note" in text
    assert " 1 Signing[31m in signing-in.md" in text
    assert "waiting" in text
    assert "2 of 2" in text
    by_name = answer(command, "documents", "list", "SIGNING")
    assert [row["artifact_uid"] for row in by_name["documents"]] == [planted.uid]
    assert by_name["total"] == 1
    assert "No document matches." in command("documents", "list", "zebra")


def test_a_document_is_shown_with_revisions_events_and_text(
    command: Command, planted: Planted
) -> None:
    text = words(command("documents", "show", planted.uid[:9]))

    assert planted.uid in text
    assert planted.revision in text
    assert " 1 event id when kind what " in text
    assert DECISION.narrative in text
    assert "# Signing in" in text
    assert "--text" in text
    assert command("documents", "show", planted.uid, "--text") == LONG
    shown = answer(command, "documents", "show", planted.uid)
    assert shown["content"] == LONG
    assert [event["event_id"] for event in shown["events"]] == planted.ids


def store_ids(sql: psycopg.Connection, *uids: str) -> None:
    for number, uid in enumerate(uids):
        sql.execute(
            "INSERT INTO artifact_revision (artifact_uid, revision_id, artifact_id, artifact_type,"
            " source_system, source_id, content_hash, token_count, is_chunked, chunk_count, title)"
            " VALUES (%s, 'rev_0123456789abcdef', %s, 'note', 'test', %s, 'x', 1, false, 0, %s)",
            [uid, f"art_{number:016x}", uid, f"Note {number}"],
        )


def test_a_shortened_id_that_fits_two_documents_names_both(
    command: Command, sql: psycopg.Connection
) -> None:
    store_ids(sql, "uid_abcd111111111111", "uid_abcd222222222222")

    with pytest.raises(InvalidInput) as fault:
        command("documents", "show", "uid_abcd")

    assert "uid_abcd111111111111 Note 0; uid_abcd222222222222 Note 1" in fault.value.message


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("uid_ffff", "`mcp-memory documents list` shows the ids"),
        ("ffff0000", "`mcp-memory documents list` shows the ids"),
    ],
)
def test_an_id_of_nothing_says_where_ids_are(command: Command, given: str, told: str) -> None:
    with pytest.raises(NotFound, match=told):
        command("documents", "show", given)


def test_an_id_that_is_too_short_is_refused(command: Command) -> None:
    with pytest.raises(InvalidInput, match="at least 4 characters"):
        command("documents", "show", "uid_ab")


# --- people ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("planted")
def test_people_with_their_roles_and_a_document(command: Command) -> None:
    text = words(command("people"))

    assert "Alice Chen 1 2026-03-01 owner 1 Signing[31m in" in text
    assert DECISION.narrative in command("people", "--full")
    assert answer(command, "people")["stakeholders"][0]["name"] == "Alice Chen"


# --- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("documents", "show", "uid_0000000000000000"), "`mcp-memory search` finds documents"),
        (("events", "diff", "uid_0000000000000000"), "`mcp-memory search` finds documents"),
        (
            ("events", "search", "--category", "Nonsense"),
            "Invalid --category: Nonsense. Must be one of: ",
        ),
        (("events", "search", "--from", "yesterdayish"), "--from"),
        (("events", "search", "--sort", "colour"), "Invalid --sort: "),
        (("people", "--category", "Nonsense"), "Invalid --category: Nonsense. Must be one of: "),
        (("search", "x", "--type", "poem"), "Invalid --type: "),
    ],
)
def test_errors_speak_of_commands_and_options(
    command: Command, arguments: tuple[str, ...], told: str
) -> None:
    with pytest.raises(MemoryFault) as fault:
        command(*arguments)

    message = in_commands(fault.value.message)
    assert told in message
    assert "artifact_" not in message
    assert "event_search" not in message


def test_an_error_is_one_line_on_stderr_and_exit_code_1(settings: Settings, tmp_path: Path) -> None:
    """In a process of its own, as it ends."""
    done = subprocess.run(
        [sys.executable, "-m", "mcp_server.cli", "documents", "show", "uid_0000000000000000"],
        env={**os.environ, **settings.environment()}, cwd=tmp_path,
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip

    assert (done.returncode, done.stdout) == (1, "")
    assert "`mcp-memory search` finds documents" in done.stderr
    assert "Traceback" not in done.stderr


# --- ingest ----------------------------------------------------------------------------------


def test_a_folder_without_a_file_is_said(command: Command, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    assert "No file was found there" in command("ingest", str(tmp_path / "empty"))


# --- jobs ------------------------------------------------------------------------------------


def test_all_that_failed_is_asked_for_again(
    command: Command, sql: psycopg.Connection, planted: Planted, waiting: Json
) -> None:
    sql.execute(
        "UPDATE event_jobs SET status = 'FAILED', last_error_code = 'OPENAI_TIMEOUT' "
        "WHERE artifact_uid = %s", [waiting["artifact_uid"]],
    )  # fmt: skip

    none = command("reextract", "--failed", "--code", "OPENAI_AUTH_ERROR")
    assert none.strip() == "No job has failed with OPENAI_AUTH_ERROR."
    assert answer(command, "reextract", "--failed") == {"jobs": 1}
    assert sorted(answer(command, "jobs")["counts"].items()) == [("DONE", 1), ("PENDING", 1)]


@pytest.mark.usefixtures("planted")
def test_watching_ends_when_nothing_waits(command: Command) -> None:
    assert "DONE 1" in words(command("jobs", "--watch"))


# --- status and config -----------------------------------------------------------------------


def test_status_tells_which_memory_and_what_is_in_it(
    command: Command, settings: Settings, planted: Planted, waiting: Json
) -> None:
    text = words(command("status"))

    assert f" Memory {settings.data_dir}" in f" {text}"
    assert "Documents 2" in text
    assert "Events 1" in text
    assert "1 done, 1 waiting" in text
    assert "Extractor rules, no model" in text
    assert "Embedder local" in text
    shown = answer(command, "status")
    assert shown["extraction"]["documents"] == 2
    assert shown["versions"]["postgres"].startswith("16")


def test_a_look_at_a_memory_that_was_never_used_makes_none(tmp_path: Path) -> None:
    folder = tmp_path / "none"
    done = subprocess.run(
        [sys.executable, "-m", "mcp_server.cli", "status", "--json"],
        env={**os.environ, "DATA_DIR": str(folder)}, cwd=tmp_path,
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip

    assert json.loads(done.stdout)["memory"] == str(folder)
    assert not folder.exists()


def test_config_names_every_setting_its_source_and_no_secret(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-do-not-show")
    monkeypatch.setenv("EVENTS_DB_DSN", "postgresql://me:do-not-show@127.0.0.1:1/x")
    for name in ("RRF_CONSTANT", "MCP_MEMORY_CHOSEN"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".env").write_text("RRF_CONSTANT=61\n")

    rows = {row["name"]: row for row in answer(command, "config")["settings"]}

    assert set(rows) == {name.upper() for name in Settings.model_fields}
    assert rows["OPENAI_API_KEY"] == {
        "name": "OPENAI_API_KEY", "value": "***", "from": "environment",
    }  # fmt: skip
    assert rows["EVENTS_DB_DSN"]["value"] == "postgresql://me:***@127.0.0.1:1/x"
    assert rows["RRF_CONSTANT"]["value"] == "61"
    assert rows["RRF_CONSTANT"]["from"] == str(tmp_path / ".env")
    assert "do-not-show" not in command("config")


def test_every_secret_of_the_settings_is_masked() -> None:
    from memory_core.kernel.setting_origins import origins

    secret = SecretStr("postgresql://me:do-not-show@127.0.0.1/x")
    settings = Settings(_env_file=None, openai_api_key="do-not-show", events_db_dsn=secret)  # type: ignore[call-arg,arg-type]

    assert not any("do-not-show" in origin.value for origin in origins(settings))


# --- the command itself ----------------------------------------------------------------------


def test_a_misspelt_command_is_guessed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mcp_server.cli", "documnets"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip

    assert done.returncode == 2
    assert "Did you mean 'documents'?" in done.stderr


def test_every_reading_command_has_json(command: Command) -> None:
    for arguments in (
        ("search", "x"), ("documents", "list"), ("people",), ("status",), ("config",), ("jobs",),
        ("events", "search"), ("events", "timeline"), ("events", "commitments"),
    ):  # fmt: skip
        assert answer(command, *arguments), arguments
