"""`mcp-memory up`: it starts, serves, heals, refuses, gives up, recovers and ends as promised.

The tests of the first class share one stack and run in the order in which they stand.
"""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psutil
import psycopg
import pytest
from mcp import Client

from memory_core.kernel import file_locks as locks
from memory_core.kernel.settings import Settings, variable_names
from stack.connection import connected
from stack.rotation import LIMIT_BYTES
from tests.e2e.stacks import CHILDREN, OFFLINE, Stack, eventually
from tests.patience import PATIENCE

LOCATIONS = """{ workspaceOrError { ... on Workspace { locationEntries { name loadStatus
    locationOrLoadError { __typename ... on RepositoryLocation {
        repositories { assetNodes { assetKey { path } } } } } } } } }"""


def up(data_dir: Path, **variables: str) -> subprocess.Popen[str]:
    """A supervisor that is not waited for."""
    environment = {k: v for k, v in os.environ.items() if k not in variable_names()}
    own = {"MCP_PORT": "0", "DAGSTER_PORT": "0", **OFFLINE, **variables}
    return subprocess.Popen(
        [sys.executable, "-m", "mcp_server.cli", "up"],
        env={**environment, **own, "DATA_DIR": str(data_dir)},
        cwd=data_dir.parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def outcome(process: subprocess.Popen[str]) -> tuple[int, str]:
    output, _ = process.communicate(timeout=90)
    assert "Traceback" not in output
    return process.returncode, output


def ask(dsn: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(query.encode())
        return cursor.fetchall() if cursor.description else []


def ports_of(process: psutil.Process) -> set[tuple[str, int]]:
    """Where it listens, if it is in our network."""
    if Path(f"/proc/{process.pid}/ns/net").readlink() != Path("/proc/self/ns/net").readlink():
        return set()
    return {
        (connection.laddr.ip, connection.laddr.port)
        for connection in process.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    }


class TestOneStack:
    def test_it_is_healthy(self, stack: Stack) -> None:
        answer = stack.health()
        assert answer.status_code == 200, answer.text
        assert answer.json()["status"] == "ok"
        parts = ("postgres", "chroma", "queue", "daemon")
        assert {part: answer.json()[part]["state"] for part in parts} == dict.fromkeys(parts, "up")

    def test_it_says_what_it_did_and_how_to_use_it(self, stack: Stack) -> None:
        output = stack.process.output
        assert {child: stack.times_ready(child) for child in CHILDREN} == dict.fromkeys(CHILDREN, 1)
        assert stack.mcp_url in output
        assert str(stack.state.dagster_url) in output
        pasted = json.loads(output[output.index("{") : output.rindex("}") + 1])
        assert pasted == {"mcpServers": {"memory": {"type": "http", "url": stack.mcp_url}}}

    def test_every_child_writes_a_log_of_its_own(self, stack: Stack) -> None:
        for child in CHILDREN:
            assert stack.layout.log_of(child).exists(), child

    async def test_an_mcp_client_can_call_a_tool(self, stack: Stack) -> None:
        async with Client(stack.mcp_url) as client:
            answer = await client.call_tool("embedding_health", {})
        assert not answer.is_error
        assert answer.structured_content is not None
        assert answer.structured_content["provider"] == "local"

    def test_every_line_of_the_mcp_servers_log_has_its_time(self, stack: Stack) -> None:
        lines = stack.layout.log_of("mcp-server").read_text().splitlines()
        assert lines
        assert [line for line in lines if not re.match(r"\d{4}-\d\d-\d\dT[\d:.]+Z ", line)] == []

    def test_no_child_logs_below_the_level_that_is_set(self, stack: Stack) -> None:
        for child in CHILDREN:
            assert "DEBUG" not in stack.layout.log_of(child).read_text(), child

    def test_chroma_tells_of_no_request(self, stack: Stack) -> None:
        assert "HTTP request" not in stack.layout.log_of("chroma").read_text()

    def test_a_large_log_is_cut_while_the_stack_runs(self, stack: Stack) -> None:
        log = stack.layout.log_of("dagster-daemon")
        with log.open("ab") as file:
            file.write(b"x" * LIMIT_BYTES)
        eventually(lambda: log.stat().st_size < LIMIT_BYTES, what="a smaller log")
        assert log.with_suffix(".log.1").stat().st_size > LIMIT_BYTES

    def test_dagster_has_loaded_the_code_location(self, stack: Stack) -> None:
        [entry] = stack.graphql(LOCATIONS)["workspaceOrError"]["locationEntries"]
        assert (entry["name"], entry["loadStatus"]) == ("memory", "LOADED")
        [repository] = entry["locationOrLoadError"]["repositories"]
        assert repository["assetNodes"]

    def test_dagster_keeps_its_tables_apart_from_ours(self, stack: Stack) -> None:
        rows = ask(
            stack.dsn,
            "SELECT table_schema FROM information_schema.tables "
            "WHERE table_name IN ('runs', 'event_logs', 'daemon_heartbeats')",
        )
        assert set(rows) == {("dagster",)}

    @pytest.mark.parametrize("child", sorted(CHILDREN))
    def test_it_listens_on_no_more_ports_than_it_needs(self, stack: Stack, child: str) -> None:
        family = psutil.Process(stack.pid_of(child))
        listening: set[tuple[str, int]] = set()
        for process in (family, *family.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess, FileNotFoundError):  # ended meanwhile
                listening |= ports_of(process)
        expected = {
            "dagster-webserver": {urlsplit(str(stack.state.dagster_url)).port},
            "mcp-server": {urlsplit(stack.mcp_url).port},
        }
        assert listening == {("127.0.0.1", port) for port in expected.get(child, set())}

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can ask as another user")
    def test_another_user_cannot_connect_to_the_code_server(self, stack: Stack) -> None:
        # Who connects may have it read any variable of its environment, the model key among them.
        [socket_path] = (stack.layout.root / "dagster-socket").iterdir()
        connect = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
        done = subprocess.run(
            ["/usr/bin/env", "python3", "-c", connect, str(socket_path)],
            user=12345,
            group=12345,
            extra_groups=[],
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
        assert "PermissionError" in done.stderr

    def test_names_that_are_led_here_are_refused(self, stack: Stack) -> None:
        for url in (stack.health_url, stack.mcp_url, str(stack.state.dagster_url)):
            answer = httpx.get(url, headers={"Host": "evil.example"}, trust_env=False)
            assert answer.status_code == 421, url

    def test_foreign_pages_are_refused(self, stack: Stack) -> None:
        for url in (stack.health_url, stack.mcp_url, str(stack.state.dagster_url)):
            answer = httpx.get(url, headers={"Origin": "http://evil.example"}, trust_env=False)
            assert answer.status_code == 403, url

    @pytest.mark.parametrize("method", ["GET", "POST"])
    def test_no_address_can_change_anything_in_dagster(self, stack: Stack, method: str) -> None:
        location = 'repositoryLocationName: "memory"'
        mutation = f"mutation {{ shutdownRepositoryLocation({location}) {{ __typename }} }}"
        url = f"{stack.state.dagster_url}/graphql"
        answer = httpx.request(method, url, params={"query": mutation}, trust_env=False)
        assert answer.status_code == 405
        assert stack.times_ready("dagster-code") == 1

    def test_a_command_uses_it_and_leaves_it_running(self, stack: Stack) -> None:
        with connected(Settings(_env_file=None, data_dir=stack.data_dir)) as resolved:
            assert resolved.dsn == stack.dsn
            assert resolved.chroma_address == f"unix:{stack.state.chroma_socket}"
        assert stack.is_well()

    def test_a_second_one_on_the_same_data_dir_is_refused(self, stack: Stack) -> None:
        code, output = outcome(up(stack.data_dir))
        assert code == 1
        assert f"pid {stack.process.pid}" in output
        assert "DATA_DIR" in output
        assert stack.is_well()

    @pytest.mark.parametrize("child", sorted(CHILDREN))
    def test_a_killed_child_comes_back(self, stack: Stack, child: str) -> None:
        others = {name: stack.pid_of(name) for name in CHILDREN if name != child}
        victim, before = stack.pid_of(child), stack.times_ready(child)
        os.kill(victim, signal.SIGKILL)
        eventually(lambda: stack.times_ready(child) > before, what=f"a new {child}")
        assert stack.pid_of(child) != victim
        eventually(stack.is_well, what="health")
        assert {name: stack.pid_of(name) for name in others} == others, "no other child was ended"

    def test_each_death_was_told_on_the_terminal(self, stack: Stack) -> None:
        output = stack.process.output
        assert output.count("ended (SIGKILL)") == len(CHILDREN)
        assert output.count("Starting it again in 0.5 s.") == len(CHILDREN)

    async def test_after_all_that_it_still_works(self, stack: Stack) -> None:
        await self.test_an_mcp_client_can_call_a_tool(stack)
        self.test_dagster_has_loaded_the_code_location(stack)

    def test_killed_itself_it_leaves_orphans(self, stack: Stack) -> None:
        ask(stack.dsn, "INSERT INTO event_jobs (artifact_uid, revision_id) VALUES ('u', 'kept')")
        stack.kill()
        assert not locks.is_held(stack.layout.supervisor_lock)
        assert psutil.pid_exists(stack.pid_of("postgres"))
        assert stack.processes()

    def test_the_next_one_ends_them_and_has_every_row(self, stack: Stack) -> None:
        orphans = set(stack.processes())
        stack.start()
        assert stack.is_well()
        assert not orphans & set(stack.processes())
        assert ask(stack.dsn, "SELECT revision_id FROM event_jobs WHERE artifact_uid = 'u'") == [
            ("kept",)
        ]

    def test_ctrl_c_ends_everything(self, stack: Stack) -> None:
        assert stack.process.stop(signal.SIGINT, timeout=PATIENCE) == 0
        assert stack.processes() == {}
        assert not (stack.layout.postgres / "postmaster.pid").exists(), "Postgres was not stopped"
        assert stack.process.output.rstrip().endswith("Stopped.")


class TestRefusals:
    @pytest.mark.parametrize("variable", ["MCP_PORT", "DAGSTER_PORT", "CHROMA_PORT"])
    def test_a_taken_port_is_an_error_that_names_its_variable(
        self, tmp_path: Path, variable: str
    ) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            code, output = outcome(up(tmp_path / "data", **{variable: str(port)}))
        assert code == 1
        assert f"{variable}={port} is taken" in output
        assert f"set {variable} to a free port" in " ".join(output.split())

    def test_a_bad_setting_is_one_line(self, tmp_path: Path) -> None:
        code, output = outcome(up(tmp_path / "data", LOG_LEVEL="loud"))
        assert (code, output.count("\n")) == (2, 1)
        assert output.startswith("LOG_LEVEL=")
        assert not (tmp_path / "data").exists()

    def test_a_database_that_is_away_is_said_to_be(self, tmp_path: Path) -> None:
        dsn = "postgresql://events:s3cr3t@127.0.0.1:1/events"
        code, output = outcome(up(tmp_path / "data", EVENTS_DB_DSN=dsn))
        assert code == 1
        assert "EVENTS_DB_DSN" in output
        assert "s3cr3t" not in output


class TestGivingUp:
    def test_a_child_that_keeps_dying_ends_it_with_the_childs_last_lines(
        self, tmp_path: Path
    ) -> None:
        # Given a Postgres that cannot start
        stack = Stack(tmp_path / "data")
        stack.layout.create()
        stack.layout.postgres.mkdir()
        (stack.layout.postgres / "PG_VERSION").write_text("16\n")
        # When the stack is started
        code, output = outcome(up(stack.data_dir))
        # Then it was tried again, and the reason is on the terminal
        assert code == 1
        assert "Starting it again in 0.5 s" in output
        assert "Gave up after 3 deaths" in output
        assert "postgresql.conf" in output
        assert stack.processes() == {}


class TestTogether:
    def test_two_at_the_same_instant_are_one_and_a_refusal(self, tmp_path: Path) -> None:
        stack = Stack(tmp_path / "data")
        both = [up(stack.data_dir), up(stack.data_dir)]
        try:
            eventually(lambda: any(process.poll() is not None for process in both))
            [refused] = [process for process in both if process.poll() is not None]
            [winner] = [process for process in both if process is not refused]
            code, output = outcome(refused)
            assert code == 1
            assert f"pid {winner.pid}" in output
            # Told to stop half-way through its start, the other one leaves nothing either.
            winner.send_signal(signal.SIGTERM)
            winner.communicate(timeout=PATIENCE)
            assert stack.processes() == {}
        finally:
            for process in both:
                process.kill()
                process.communicate()

    def test_it_takes_over_from_services_that_a_command_uses(self, tmp_path: Path) -> None:
        # Given a command that started Postgres and Chroma for itself
        stack = Stack(tmp_path / "data")
        with connected(Settings(_env_file=None, data_dir=stack.data_dir)) as resolved:
            ask(
                resolved.dsn, "INSERT INTO event_jobs (artifact_uid, revision_id) VALUES ('u', 'r')"
            )
            # When the whole stack is started meanwhile
            with stack:
                # Then the command finds everything where it was
                assert f"unix:{stack.state.chroma_socket}" == resolved.chroma_address
                assert ask(resolved.dsn, "SELECT count(*) FROM event_jobs") == [(1,)]
                assert stack.is_well()
        assert stack.processes() == {}
