"""A secret given in any setting, or as a key, shows up nowhere but with those who need it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx
import psycopg
import pytest
from psycopg import sql

from memory_core.access import keys
from memory_core.kernel.settings import Settings, variable_names
from stack import ports
from tests.e2e.stacks import Stack, eventually
from tests.scripted_provider import AuthError, ScriptedProvider

KEY = "sk-CANARY-of-the-model-0123456789"
PASSWORD, PROVIDER, COLLECTOR = "CANARYofPostgres", "CANARYofProvider", "CANARYofCollector"
# Every setting that can hold a secret, and the secret in it.
SECRETS = {
    "OPENAI_API_KEY": KEY,
    "EVENTS_DB_DSN": PASSWORD,
    "OPENAI_BASE_URL": PROVIDER,
    "OTEL_EXPORTER_OTLP_ENDPOINT": COLLECTOR,
}
_RUNS = """{ runsOrError { ... on Runs { results {
    runId runConfigYaml tags { key value }
    eventConnection { events { ... on MessageEvent { message } } }
} } } }"""


@dataclass
class Deployment:
    stack: Stack
    provider: ScriptedProvider
    variables: dict[str, str]
    key: str = ""
    answers: list[str] = field(default_factory=list)

    def command(self, *words: str) -> str:
        """What a command prints, on both streams."""
        ours = {name: value for name, value in os.environ.items() if name not in variable_names()}
        done = subprocess.run(
            [sys.executable, "-m", "mcp_server.cli", *words],
            env={**ours, **self.variables, "DATA_DIR": str(self.stack.data_dir)},
            capture_output=True,
            text=True,
            timeout=200,
        )
        return done.stdout + done.stderr

    def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": tool, "arguments": arguments}}  # fmt: skip
        answer = self._post(body)
        self.answers.append(answer.text)
        [line] = [line for line in answer.text.splitlines() if line.startswith("data: {")]
        return dict(json.loads(line.removeprefix("data: "))["result"])

    def _post(self, body: dict[str, Any], **headers: str) -> httpx.Response:
        opening = {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }  # fmt: skip
        headers = {
            "authorization": f"Bearer {self.key}",
            "accept": "application/json, text/event-stream",
        }
        with httpx.Client(trust_env=False, timeout=60, headers=headers) as client:
            first = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening}
            opened = client.post(self.stack.mcp_url, json=first)
            assert opened.status_code == 200, opened.text
            session = {"mcp-session-id": opened.headers["mcp-session-id"]}
            initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            client.post(self.stack.mcp_url, json=initialized, headers=session)
            return client.post(self.stack.mcp_url, json=body, headers=session)


@pytest.fixture(scope="module")
def dsn(services: Settings) -> Iterator[str]:
    """A database of its own, with a password in its address that its server does not ask for."""
    with psycopg.connect(services.dsn, autocommit=True) as admin:
        admin.execute("CREATE DATABASE secrets")
        parts = urlsplit(services.dsn)
        user, _, host = parts.netloc.rpartition("@")
        netloc = f"{user.partition(':')[0]}:{PASSWORD}@{host}"
        yield urlunsplit(parts._replace(path="/secrets", netloc=netloc))
        admin.execute("DROP DATABASE secrets WITH (FORCE)")


@pytest.fixture(scope="module")
def deployment(dsn: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A stack in which documents were stored and extracted, and calls failed."""
    with ScriptedProvider() as provider:
        variables = {
            "AUTH": "keys",
            "EXTRACTOR": "openai",
            "EMBEDDER": "local",
            "EVENTS_DB_DSN": dsn,
            "LOG_LEVEL": "DEBUG",
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": provider.base_url.replace("://", f"://me:{PROVIDER}@"),
            "OPENAI_MAX_RETRIES": "0",
            "TOOLSETS": "core,events,admin",
            # Nothing listens there: what is said of that must not name it whole.
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://me:{COLLECTOR}@127.0.0.1:{ports.free_port()}",
        }
        with Stack(tmp_path_factory.mktemp("stack"), **variables) as stack:
            deployment = Deployment(stack, provider, variables)
            use(deployment)
            yield deployment


def use(deployment: Deployment) -> None:
    create = ("keys", "create", "--tenant", "default", "--user", "alice", "--json")
    # What comes after the object was said on stderr.
    deployment.key = json.JSONDecoder().raw_decode(deployment.command(*create))[0]["key"]
    note = {"artifact_type": "note", "source_system": "test"}
    deployment.provider.enqueue(AuthError())
    for content in ("Decision: We refuse the key.", "Decision: We take the key."):
        stored = deployment.call("artifact_ingest", **note, content=content)
        job = stored["structuredContent"]["job_id"]
        eventually(lambda job=job: _status(deployment, job) in ("FAILED", "DONE"), what="the job")
    deployment.call("artifact_get", artifact_uid="uid_0000000000000000")
    unknown = keys.new_text()
    httpx.get(deployment.stack.health_url, headers={"authorization": f"Bearer {unknown}"})


def _status(deployment: Deployment, job: str) -> str:
    answer = deployment.call("job_status", job_id=job)
    return str(answer["structuredContent"]["status"])


def secrets_in(text: str, deployment: Deployment) -> list[str]:
    secret = deployment.key.rpartition("_")[2]
    secrets = {**SECRETS, "the key of a client": secret}
    return [name for name, value in secrets.items() if value in text]


def test_every_setting_that_is_a_secret_is_tried() -> None:
    declared = {
        name.upper()
        for name, field in Settings.model_fields.items()
        if "SecretStr" in str(field.annotation)
    }
    assert declared <= SECRETS.keys()


def test_not_in_the_data_dir(deployment: Deployment) -> None:
    leaked = {
        str(file.relative_to(deployment.stack.data_dir)): secrets
        for file in deployment.stack.data_dir.rglob("*")
        if file.is_file()
        and (secrets := secrets_in(file.read_bytes().decode("latin-1"), deployment))
    }
    assert leaked == {}


def test_not_on_a_command_line(deployment: Deployment) -> None:
    for process in deployment.stack.processes().values():
        assert secrets_in(" ".join(process.cmdline()), deployment) == []


def test_not_in_the_environment_of_those_who_need_none(deployment: Deployment) -> None:
    children = {
        " ".join(process.cmdline()): secrets_in(str(process.environ()), deployment)
        for process in deployment.stack.processes().values()
    }
    for words in ("web_server", "daemon"):
        [secrets] = [found for line, found in children.items() if f"internals.{words}" in line]
        assert secrets == ["EVENTS_DB_DSN"]  # Dagster's tables are there
    stores = [found for line, found in children.items() if "chroma run" in line]
    assert stores
    assert all(found == [] for found in stores)
    assert not any("the key of a client" in found for found in children.values())


def test_not_in_dagsters_pages(deployment: Deployment) -> None:
    shown = json.dumps(deployment.stack.graphql("{ instance { info } }"))
    runs = json.dumps(deployment.stack.graphql(_RUNS))
    assert "runId" in runs
    assert secrets_in(shown + runs, deployment) == []


def test_not_in_any_table(deployment: Deployment, dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        tables = connection.execute(
            "SELECT schemaname, tablename FROM pg_tables "
            "WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        for schema, table in tables:
            query = sql.SQL("SELECT t::text FROM {} t").format(sql.Identifier(schema, table))
            text = "\n".join(str(row[0]) for row in connection.execute(query))
            assert secrets_in(text, deployment) == [], f"{schema}.{table}"


def test_not_in_an_answer(deployment: Deployment) -> None:
    assert secrets_in("\n".join(deployment.answers), deployment) == []


@pytest.mark.parametrize(
    "words", [("config",), ("status",), ("doctor",), ("doctor", "--provider"), ("keys", "list"),
              ("jobs",), ("config", "--json"), ("status", "--json")],
    ids=" ".join,
)  # fmt: skip
def test_not_in_what_a_command_prints(deployment: Deployment, words: tuple[str, ...]) -> None:
    assert secrets_in(deployment.command(*words), deployment) == []
