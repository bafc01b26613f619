"""`mcp-memory ingest` as people run it, and artifact_ingest_file as assistants do."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest
from mcp import Client

from mcp_server.server import build_server
from memory_core.importing import batch_store
from memory_core.importing.roots import Registry, Root
from memory_core.index.generation import CollectionName
from memory_core.kernel import ids
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from tests.indexing import caught_up
from tests.tool_client import Json, ToolClient, in_one_task

FIRST = batch_store._FIRST_BATCH
# One batch gets through, two are on their way, one waits for them, and some are left.
NOTES = 15 * FIRST + 100
PATIENCE_SECONDS = 600.0


class Command:
    """The command line in a process of its own, on the services of the test session."""

    def __init__(self, settings: Settings, data_dir: Path) -> None:
        data_dir.mkdir()
        own = settings.model_copy(update={"data_dir": data_dir})
        self._environment = {**os.environ, **own.environment(), "COLUMNS": "200"}
        self.data_dir = data_dir

    def start(self, *arguments: str | Path) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "mcp_server.cli", "ingest", *map(str, arguments)],
            env=self._environment, cwd=self.data_dir, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def __call__(self, *arguments: str | Path, code: int = 0) -> str:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == code, err
        return out or err

    def json(self, *arguments: str | Path, code: int = 0) -> Json:
        """Exactly one object on stdout."""
        return dict(json.loads(self(*arguments, "--json", code=code)))


@pytest.fixture
def command(settings: Settings, runtime: Runtime, tmp_path: Path) -> Command:
    return Command(settings, tmp_path / "data")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "kickoff.md").write_text("Decision: we launch in May.\n")
    (folder / "\x1b[31mred.md").write_text("A name with colours.\n")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 no")
    (folder / "photo.png").write_bytes(b"\x89PNG\r\n" + b"\x00" * 50)
    return folder


def test_one_folder_from_first_look_to_pruning(command: Command, notes: Path) -> None:
    would = command.json(notes, "--dry-run", code=1)
    done = command.json(notes, code=1)
    shown = command(notes, "--jobs", "4", "--type", "doc", code=1)

    for answer in (would, done):
        assert len(answer["created"]) == 2
        assert [Path(one["path"]).name for one in answer["skipped"]] == ["photo.png"]
        assert [Path(one["path"]).name for one in answer["failed"]] == ["broken.pdf"]
        assert {"source_id", "artifact_uid", "path"} == set(answer["created"][0])
    assert (would["dry_run"], done["dry_run"]) == (True, False)
    for words in ("unchanged", "2", "a picture", "not a readable PDF", "stays note: --type"):
        assert words in shown
    assert "2 documents wait for events; nothing extracts them yet: start mcp-memory up" in shown
    assert "\x1b[31mred" not in shown, "a file's name cannot paint the terminal"

    (notes / "broken.pdf").unlink()
    (notes / "kickoff.md").unlink()
    assert "--yes" in command(notes, "--prune", "--json", code=1)
    listed = command.json(notes, "--prune", "--dry-run")
    assert [one["path"] for one in listed["pruned"]] == ["notes/kickoff.md"]
    assert command.json(notes, "--prune", "--yes")["pruned"] == listed["pruned"]
    assert command.json(notes, "--prune", "--yes")["pruned"] == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--type", "novel"], "choose one of email"),
        (["--git", "--watch"], "leave out --watch"),
        (["--watch", "--json"], "leave out --json"),
        (["--git"], "no git history"),
    ],
)
def test_what_cannot_be_is_refused_in_words(
    command: Command, notes: Path, arguments: list[str], words: str
) -> None:
    assert words in command(notes, *arguments, code=1)


def test_unknown_options_and_unusable_settings_have_a_code_of_their_own(
    command: Command, notes: Path
) -> None:
    assert "--no-such-option" in command(notes, "--no-such-option", code=2)
    command.data_dir.joinpath("imports.json").write_text("no JSON")
    assert "imports.json" in command(notes, code=2)


class Gate:
    """Holds some notes' locks, which storing them needs: an import waits there."""

    _WAITING = "pg_locks WHERE locktype = 'advisory' AND NOT granted"

    def __init__(self, sql: psycopg.Connection, notes: list[str]) -> None:
        self._sql = sql
        self._keys = [ids.artifact_uid("files", note) for note in notes]
        for key in self._keys:
            sql.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", [key])

    def wait_for(self, waiting: int) -> None:
        """Until that many batches stand before it."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while _number(self._sql, self._WAITING) < waiting:
            assert time.monotonic() < deadline, "no import came to the gate"

    def forget_the_dead(self) -> None:
        """A killed client's connection goes on waiting for as long as Postgres does not notice."""
        self._sql.execute(f"SELECT pg_terminate_backend(pid, 60000) FROM {self._WAITING}")

    def open(self) -> None:
        for key in self._keys:
            self._sql.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", [key])


async def test_killed_and_interrupted_it_is_completed_by_running_it_again(
    command: Command, runtime: Runtime, tmp_path: Path, sql: psycopg.Connection
) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(NOTES):
        text = f"Note {number}: the otters moved {number} times.\n"
        (folder / f"{number:04d}.md").write_text(text)
    # One note of the second batch, one of the third: the first gets through, then nothing.
    gate = Gate(sql, [f"many/{number:04d}.md" for number in (FIRST, 3 * FIRST)])

    killed = command.start(folder, "--json")
    gate.wait_for(2)
    killed.kill()
    killed.communicate()
    gate.forget_the_dead()
    assert _rows(sql) == FIRST

    interrupted = command.start(folder, "--json")
    gate.wait_for(2)
    interrupted.send_signal(signal.SIGINT)
    assert interrupted.stderr is not None
    while "stopping" not in (said := interrupted.stderr.readline()):
        assert said, "it ended before it was asked to"
    gate.open()
    out, _ = interrupted.communicate(timeout=PATIENCE_SECONDS)

    assert interrupted.returncode == 130
    report = json.loads(out)
    assert report["interrupted"] is True
    assert len(report["unchanged"]) == FIRST
    assert 3 * FIRST <= len(report["created"]) <= 7 * FIRST, "what was under way is finished"
    assert len(report["created"]) + len(report["unchanged"]) == _rows(sql) < NOTES

    report = command.json(folder)
    assert len(report["created"]) + len(report["unchanged"]) == NOTES
    assert _rows(sql) == NOTES
    assert _number(sql, "event_jobs") == _number(sql, "revision_text") == NOTES
    await caught_up(runtime)
    assert await runtime.vectors.count(CollectionName.ARTIFACTS) == NOTES


def test_watching_ends_with_ctrl_c(command: Command, notes: Path, sql: psycopg.Connection) -> None:
    watching = command.start(notes, "--watch")
    _wait_for_rows(sql, more_than=1)
    (notes / "later.md").write_text("Written while it watches.\n")
    _wait_for_rows(sql, more_than=2)
    watching.send_signal(signal.SIGINT)
    _, said = watching.communicate(timeout=PATIENCE_SECONDS)

    assert watching.returncode == 0
    assert "Watching" in said
    assert "later.md" in said


def _rows(sql: psycopg.Connection) -> int:
    return _number(sql, "artifact_revision WHERE is_latest")


def _number(sql: psycopg.Connection, rows: str) -> int:
    row = sql.execute(f"SELECT count(*) FROM {rows}").fetchone()
    assert row is not None
    return int(row[0])


def _wait_for_rows(sql: psycopg.Connection, *, more_than: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while _rows(sql) <= more_than:
        assert time.monotonic() < deadline, "nothing is imported"


# --- the tool --------------------------------------------------------------------------------


async def test_a_file_is_ingested_only_below_the_allowed_folders(
    settings: Settings, runtime: Runtime, notes: Path, tmp_path: Path
) -> None:
    data_dir = notes / "data"
    data_dir.mkdir()
    (tmp_path / "secret.md").write_text("SECRET")
    (notes / "link.md").symlink_to(tmp_path / "secret.md")
    own = settings.model_copy(update={"ingest_roots": f"{notes}:/nowhere", "data_dir": data_dir})
    (data_dir / "own.md").write_text("Our own data.")
    async with in_one_task(Client(build_server(own, stdio=True))) as client:
        tools = ToolClient(client)
        first = await tools("artifact_ingest_file", path=str(notes / "kickoff.md"))
        again = await tools("artifact_ingest_file", path=str(notes / "kickoff.md"))
        answer = await tools("hybrid_search", query="launch in May")
        refused = [
            await tools.refusal("artifact_ingest_file", path=path)
            for path in (
                str(tmp_path / "secret.md"), str(notes / "link.md"), str(notes / "missing.md"),
                f"{notes}/../secret.md", "/etc/passwd", str(notes), "kickoff.md",
                f"{notes}x/kickoff.md", "/nowhere/x.md", str(data_dir / "own.md"),
            )
        ]  # fmt: skip

    assert [one["source_id"] for one in first["created"]] == ["notes/kickoff.md"]
    assert again["counts"]["unchanged"] == 1
    assert answer["results"][0]["artifact_uid"] == first["created"][0]["artifact_uid"]
    assert {error["error_code"] for error in refused} == {"VALIDATION_ERROR"}
    assert len({error["error"].partition("' ")[2] for error in refused}) == 1, (
        "nothing is given away"
    )


async def test_names_are_not_looked_up_above_the_allowed_folders(
    settings: Settings, runtime: Runtime, tmp_path: Path, sql: psycopg.Connection
) -> None:
    """Although the export is known from higher up."""
    channel = tmp_path / "export" / "general"
    channel.mkdir(parents=True)
    (channel.parent / "users.json").write_text('[{"id": "U1", "real_name": "Alice Secret"}]')
    said = [{"type": "message", "user": "U1", "text": "We ship in May.", "ts": "1772445660.0"}]
    (channel / "2026-03-02.json").write_text(json.dumps(said))
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    Registry(data_dir).remember(Root("export", channel.parent))
    own = settings.model_copy(update={"ingest_roots": str(channel), "data_dir": data_dir})

    async with in_one_task(Client(build_server(own, stdio=True))) as client:
        path = str(channel / "2026-03-02.json")
        done = await ToolClient(client)("artifact_ingest_file", path=path)

    assert done["counts"]["created"] == 1
    [(text,)] = sql.execute("SELECT content FROM revision_text").fetchall()
    assert "We ship in May." in text
    assert "Alice" not in text


async def test_without_allowed_folders_or_over_http_no_file_is_read(
    settings: Settings, notes: Path
) -> None:
    async with in_one_task(Client(build_server(settings, stdio=True))) as client:
        error = await ToolClient(client).refusal("artifact_ingest_file", path=str(notes))
    assert "INGEST_ROOTS" in error["error"]

    own = settings.model_copy(update={"ingest_roots": str(notes)})
    async with in_one_task(Client(build_server(own))) as client:
        path = str(notes / "kickoff.md")
        error = await ToolClient(client).refusal("artifact_ingest_file", path=path)
    assert error["error_code"] == "NOT_FOUND"
