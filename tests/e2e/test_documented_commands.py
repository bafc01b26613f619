"""The documentation is a test: every command and configuration of README and docs, as written.

A newcomer's machine: the checkout as git has it, an empty home, no variable set but PATH and HOME,
the default settings. The pages are read in order, each from top to bottom.
"""

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from mcp import Client, StdioServerParameters

from stack import ports
from tests.documented import Block, blocks, copy_of_checkout, missing_lines, pages
from tests.e2e.stacks import eventually

COMMAND_SECONDS = 400.0
START_SECONDS = 200.0
STOP_SECONDS = 90.0
DEFAULT_PORTS = (3000, 3001)
NOTE = """# Kick-off, 2 March 2026

Decision: We decided to launch the beta in May.

Alice Chen will draft the plan by 2026-03-20.
"""


class Newcomer:
    """Two terminals: one for commands, one for what keeps running."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.checkout = copy_of_checkout(folder / "checkout")
        self._log = folder / "background.log"
        self._background: subprocess.Popen[bytes] | None = None
        self._write_documents()

    def _write_documents(self) -> None:
        for folder in ("notes", "project/docs"):
            (self.home / folder).mkdir(parents=True)
            (self.home / folder / "kickoff.md").write_text(NOTE)
        project = self.home / "project"
        identity = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
        for words in (("init", "-q"), ("add", "."), (*identity, "commit", "-q", "-m", "Notes")):
            subprocess.run(["git", *words], cwd=project, check=True)

    @property
    def environment(self) -> dict[str, str]:
        # The pages below docs/ speak of an installed command.
        path = f"{self.checkout / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return {"PATH": path, "HOME": str(self.home)}

    def follow(self, block: Block) -> None:
        if block.keeps_running_until is not None:
            self._start(block)
        else:
            self._run(block)

    def _run(self, block: Block) -> None:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", self._filled_in(block.text)],
            cwd=self.checkout,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
        )
        report = f"{block.name}\n{block.text}\n---\n{done.stdout}{done.stderr}"
        assert done.returncode == 0, report
        if block.answer is not None:
            assert not missing_lines(block.answer, done.stdout), report

    def _start(self, block: Block) -> None:
        """In the second terminal, after Ctrl-C to what ran there."""
        self.stop()
        with self._log.open("wb") as log:
            self._background = subprocess.Popen(
                ["bash", "-c", f"exec {block.text.partition('#')[0].strip()}"],
                cwd=self.checkout,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        assert block.keeps_running_until is not None
        words = block.keeps_running_until
        eventually(
            lambda: words in self._log.read_text() or self._background_died(),
            within=START_SECONDS,
            what=f"{words!r} of {block.name}",
        )

    def _background_died(self) -> bool:
        assert self._background is not None
        assert self._background.poll() is None, self._log.read_text()
        return False

    def stop(self) -> None:
        """Ctrl-C in the second terminal; it must end well."""
        if self._background is None:
            return
        os.killpg(self._background.pid, signal.SIGINT)
        code = self._background.wait(STOP_SECONDS)
        self._background = None
        assert code in (0, -signal.SIGINT, 130), self._log.read_text()

    def kill(self) -> None:
        """Leave nothing behind, however the test went."""
        if self._background is not None:
            os.killpg(self._background.pid, signal.SIGTERM)
            self._background.wait(STOP_SECONDS)

    def _filled_in(self, text: str) -> str:
        """With real ids for the placeholders."""
        for placeholder, command, key in (
            ("UID", "documents list --json", "artifact_uid"),
            ("EVENT", "events search launch --json", "event_id"),
            ("JOB", "jobs list --json", "job_id"),
        ):
            if re.search(rf"\b{placeholder}\b", text):
                text = re.sub(rf"\b{placeholder}\b", self._first(command, key), text)
        return text

    def _first(self, command: str, key: str) -> str:
        answer = subprocess.run(
            ["mcp-memory", *command.split()], cwd=self.checkout, env=self.environment,
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        match = re.search(rf'"{key}": "([^"]+)"', answer.stdout)
        assert match is not None, answer.stdout
        return match[1]

    def processes(self) -> list[psutil.Process]:
        """What still runs on behalf of this home."""
        left = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("HOME") == str(self.home):
                    left.append(process)
            except psutil.Error:
                continue
        return left


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Newcomer]:
    busy = [port for port in DEFAULT_PORTS if not ports.is_free(port)]
    if busy:
        pytest.skip(f"something else uses the default ports {busy}")
    newcomer = Newcomer(tmp_path_factory.mktemp("newcomer"))
    yield newcomer
    newcomer.kill()


def runnable(page: Path) -> list[Block]:
    return [block for block in blocks(page) if block.language == "sh" and block.not_run is None]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_every_command_of_a_page_works_as_written(newcomer: Newcomer, page: Path) -> None:
    for block in runnable(page):
        newcomer.follow(block)


def test_nothing_is_left_running_after_ctrl_c(newcomer: Newcomer) -> None:
    newcomer.stop()
    eventually(lambda: not newcomer.processes(), within=STOP_SECONDS, what="an empty machine")


def configurations() -> list[Any]:
    """Of every MCP client that a page shows: its command and arguments."""
    return [
        pytest.param(server, id=f"{block.name}-{name}")
        for page in pages()
        for block in blocks(page)
        if block.language == "json" and block.not_run is None
        for name, server in json.loads(block.text).get("mcpServers", {}).items()
        if "command" in server
    ]


@pytest.mark.parametrize("server", configurations())
async def test_every_client_configuration_works_as_written(
    newcomer: Newcomer, server: dict[str, Any]
) -> None:
    command = server["command"].replace("/path/to/checkout", str(newcomer.checkout))
    parameters = StdioServerParameters(
        command=shutil.which(command, path=newcomer.environment["PATH"]) or command,
        args=server["args"],
        env={**newcomer.environment, **server.get("env", {})},
        cwd=newcomer.home,
    )
    async with Client(parameters) as client:
        stored = await client.call_tool(
            "artifact_ingest",
            {"artifact_type": "note", "source_system": "talk", "source_id": "1", "content": NOTE},
        )
        assert not stored.is_error, stored
        answer = await client.call_tool("hybrid_search", {"query": "launch the beta"})
        assert "launch the beta in May" in json.dumps(answer.structured_content)


def test_the_pages_say_why_a_block_is_not_run() -> None:
    for page in pages():
        for block in blocks(page):
            assert block.not_run is None or len(block.not_run) > 10, block.name
