"""`mcp-memory doctor`: ✓ or ✗ for each thing, the remedy next to every ✗, and the exit code."""

import asyncio
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from memory_core.kernel import migrations
from memory_core.kernel.settings import Settings, variable_names
from memory_core.runtime import Runtime
from stack.ports import free_port
from tests.integration.commands import Command, answer
from tests.integration.planted_events import ingest
from tests.scripted_provider import Answer, ScriptedProvider, UnknownModel
from tests.tool_client import ToolClient

SECRET = "s3cr3t-d0-n0t-sh0w"


@dataclass(frozen=True)
class Report:
    code: int
    good: list[str]
    bad: dict[str, str]  # what → remedy
    text: str


Doctor = Callable[..., Report]


@pytest.fixture
def doctor(services: Settings, runtime: Runtime, tmp_path: Path) -> Doctor:
    """Run the command with the given variables; without any, all is well."""
    well = {
        "DATA_DIR": str(services.data_dir),
        "MCP_PORT": "0",
        "DAGSTER_PORT": "0",
        "EMBEDDER": "local",
    }

    def run(*options: str, **variables: str) -> Report:
        environment = {k: v for k, v in os.environ.items() if k not in variable_names()}
        done = subprocess.run(
            [sys.executable, "-m", "mcp_server.cli", "doctor", *options],
            env={**environment, **well, **variables},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        text = done.stdout + done.stderr
        assert "Traceback" not in text, text
        return Report(
            code=done.returncode,
            good=re.findall(r"(?m)^✓ (.*)$", text),
            bad=dict(re.findall(r"(?m)^✗ (.*)\n +→ (.*)$", text)),
            text=text,
        )

    return run


@pytest.fixture
def elsewhere(services: Settings) -> dict[str, str]:
    """The session's servers, named as if they were another operator's."""
    assert services.chroma_host is not None
    return {
        "EVENTS_DB_DSN": services.dsn,
        "CHROMA_HOST": services.chroma_host,
        "CHROMA_PORT": str(services.chroma_port),
    }


@pytest.fixture
def refusing_provider() -> Iterator[str]:
    """A model server that refuses every key, and repeats it in its refusal."""

    class Refusal(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = b'{"error": {"message": "Incorrect API key: %s"}}' % SECRET.encode()
            self.send_response(401)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Refusal) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


def starting(what: str, findings: dict[str, str]) -> tuple[str, str]:
    """The one finding that begins so, and its remedy."""
    [found] = [(text, remedy) for text, remedy in findings.items() if text.startswith(what)]
    return found


class TestAllIsWell:
    def test_everything_is_checked_and_the_exit_code_is_0(self, doctor: Doctor) -> None:
        report = doctor()
        assert (report.code, report.bad) == (0, {}), report.text
        checked = [re.split("[ :]", line)[0] for line in report.good]
        assert checked[:7] == [
            *("Python", "Disk", "Port", "Port", "Postgres", "Chroma", "Schema"),
        ]
        assert checked[-3:] == ["Jobs", "Embeddings", "Extraction"]
        assert report.text.endswith("All is well.\n")

    def test_servers_elsewhere_are_asked_where_they_are(
        self, doctor: Doctor, elsewhere: dict[str, str], tmp_path: Path
    ) -> None:
        report = doctor(**elsewhere, DATA_DIR=str(tmp_path / "data"))
        assert report.code == 0, report.text
        assert not (tmp_path / "data").exists(), "nothing of our own was needed"


class TestPostgres:
    def test_a_wrong_dsn(self, doctor: Doctor, elsewhere: dict[str, str]) -> None:
        dsn = f"postgresql://events:{SECRET}@127.0.0.1:1/events"
        report = doctor(**{**elsewhere, "EVENTS_DB_DSN": dsn})
        assert report.code == 1
        what, remedy = starting("Postgres", report.bad)
        assert "postgresql://events:***@127.0.0.1:1/events" in what
        assert "EVENTS_DB_DSN" in remedy
        assert len(report.bad) == 1, "the rest is well and said to be"
        assert SECRET not in report.text

    def test_a_wrong_dsn_with_a_chroma_of_our_own(self, doctor: Doctor) -> None:
        report = doctor(EVENTS_DB_DSN="postgresql://127.0.0.1:1/events")
        assert report.code == 1
        assert "EVENTS_DB_DSN" in starting("Postgres", report.bad)[1]

    def test_a_schema_that_is_behind(
        self, doctor: Doctor, elsewhere: dict[str, str], other_database: str
    ) -> None:
        report = doctor(**{**elsewhere, "EVENTS_DB_DSN": other_database})
        assert report.code == 1
        what, remedy = starting("Schema", report.bad)
        assert f"{len(migrations.shipped())} pending" in what
        assert "mcp-memory migrate" in remedy

    def test_looking_at_a_schema_does_not_change_it(
        self, doctor: Doctor, elsewhere: dict[str, str], other_database: str
    ) -> None:
        doctor(**{**elsewhere, "EVENTS_DB_DSN": other_database})
        assert len(migrations.pending(other_database)) == len(migrations.shipped())


class TestChroma:
    def test_a_wrong_port(self, doctor: Doctor, elsewhere: dict[str, str]) -> None:
        port = str(free_port())
        report = doctor(**{**elsewhere, "CHROMA_PORT": port})
        assert report.code == 1
        what, remedy = starting("Chroma", report.bad)
        assert f"127.0.0.1:{port}" in what
        assert "CHROMA_HOST and CHROMA_PORT" in remedy
        assert len(report.bad) == 1


class TestProvider:
    def test_a_wrong_address(self, doctor: Doctor) -> None:
        report = doctor(
            EMBEDDER="openai",
            OPENAI_API_KEY=SECRET,
            OPENAI_BASE_URL=f"http://127.0.0.1:{free_port()}/v1",
            OPENAI_MAX_RETRIES="0",
        )
        assert report.code == 1
        what, remedy = starting("Embeddings", report.bad)
        assert "cannot be reached" in what
        assert "OPENAI_BASE_URL" in remedy
        assert "EMBEDDER=local" in remedy
        assert SECRET not in report.text

    def test_a_refused_key_is_not_shown(self, doctor: Doctor, refusing_provider: str) -> None:
        report = doctor(EMBEDDER="openai", OPENAI_API_KEY=SECRET, OPENAI_BASE_URL=refusing_provider)
        assert report.code == 1
        assert "OPENAI_API_KEY" in starting("Embeddings", report.bad)[1]
        assert SECRET not in report.text


class TestJobs:
    """What a new user met: every job failed with a refused key, and all was said to be well."""

    async def test_failed_jobs_are_told_with_their_code_and_the_model_is_tried(
        self,
        doctor: Doctor,
        tools: ToolClient,
        sql: psycopg.Connection,
        refusing_provider: str,
    ) -> None:
        for name in ("one", "two"):
            await ingest(tools, f"Note {name}.", source_id=name)
        sql.execute(
            "UPDATE event_jobs SET status = 'FAILED', last_error_code = 'OPENAI_AUTH_ERROR', "
            "last_error_message = 'The model provider answered 401: the key was refused.'"
        )

        report = await asyncio.to_thread(
            doctor, OPENAI_API_KEY=SECRET, OPENAI_BASE_URL=refusing_provider, EMBEDDER="local"
        )

        assert report.code == 1
        what, remedy = starting("Jobs", report.bad)
        assert "2 failed with OPENAI_AUTH_ERROR: The model provider answered 401" in what
        assert "OPENAI_API_KEY" in remedy
        assert "mcp-memory reextract --failed" in remedy
        assert "the key was refused" in starting("Extraction", report.bad)[0]
        assert "All is well" not in report.text
        assert SECRET not in report.text

    async def test_what_waits_while_nothing_runs_is_worth_a_note(
        self, doctor: Doctor, tools: ToolClient
    ) -> None:
        await ingest(tools, "A note.", source_id="one")

        report = await asyncio.to_thread(doctor)

        assert report.code == 0, report.text
        assert "! Jobs: 1 waiting" in report.text
        assert "mcp-memory up" in report.text
        assert "All is well" not in report.text

    async def test_for_scripts(self, command: Command, tools: ToolClient) -> None:
        await ingest(tools, "A note.", source_id="one")

        report = await asyncio.to_thread(answer, command, "doctor")

        assert report["ok"] is True
        assert "Jobs: 1 waiting" in [finding["what"] for finding in report["findings"]]


class TestExtraction:
    def model(self, provider: ScriptedProvider) -> dict[str, str]:
        return {
            "OPENAI_API_KEY": SECRET,
            "OPENAI_BASE_URL": provider.base_url,
            "EMBEDDER": "local",
            "OPENAI_EVENT_MODEL": "scripted",
        }

    def test_the_model_is_asked_one_question_on_request(
        self, doctor: Doctor, provider: ScriptedProvider
    ) -> None:
        provider.enqueue(Answer({"ok": True}))

        report = doctor("--provider", **self.model(provider))

        assert report.code == 0, report.text
        assert "Extraction: scripted answers" in report.good
        assert len(provider.calls) == 1

    def test_unasked_nothing_is_paid_for(self, doctor: Doctor, provider: ScriptedProvider) -> None:
        report = doctor(**self.model(provider))

        assert report.code == 0, report.text
        assert "not tried" in report.text
        assert provider.calls == []

    def test_an_unknown_model_is_told(self, doctor: Doctor, provider: ScriptedProvider) -> None:
        provider.enqueue(UnknownModel())

        report = doctor("--provider", **self.model(provider))

        assert report.code == 1
        assert "OPENAI_EVENT_MODEL" in starting("Extraction", report.bad)[1]


class TestPorts:
    @pytest.mark.parametrize("variable", ["MCP_PORT", "DAGSTER_PORT"])
    def test_a_taken_one_is_named(self, doctor: Doctor, variable: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            report = doctor(**{variable: str(port)})
        assert report.code == 1
        _, remedy = starting(f"Port {port} ({variable})", report.bad)
        assert f"set {variable} to a free port" in remedy
        assert len(report.bad) == 1


class TestConfiguration:
    def test_a_bad_value_is_one_line_and_exit_code_2(self, doctor: Doctor) -> None:
        report = doctor(MCP_PORT="many")
        assert report.code == 2
        assert report.text.startswith("MCP_PORT='many' is not allowed: ")
        assert report.text.count("\n") == 1

    def test_a_data_dir_that_cannot_be_used(self, doctor: Doctor, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        report = doctor(DATA_DIR=str(tmp_path / "file"))
        assert report.code == 1
        assert "DATA_DIR" in starting("Postgres and Chroma", report.bad)[1]


@pytest.fixture
def other_database(services: Settings) -> Iterator[str]:
    """An empty database on the session's server."""
    with psycopg.connect(services.dsn, autocommit=True) as admin:
        admin.execute("CREATE DATABASE doctor_tests")
        yield urlunsplit(urlsplit(services.dsn)._replace(path="/doctor_tests"))
        admin.execute("DROP DATABASE doctor_tests WITH (FORCE)")
