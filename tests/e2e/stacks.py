"""A real stack under test: its processes, what it answers, and how to hurt it."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil

from memory_core.kernel import tls
from stack.layout import Layout
from stack.orphans import MARKER
from stack.process import StackProcess
from stack.stack_state import StackState
from tests.patience import PATIENCE
from tests.scripted_provider import ScriptedProvider

OFFLINE = {"EXTRACTOR": "rules", "EMBEDDER": "local"}
# How each child is known among the processes of a stack: words of its command line.
_COMMANDS = {
    "chroma": ("chroma", "run"),
    "dagster-code": ("memory_assets.dagster_internals.code_server",),
    "dagster-webserver": ("memory_assets.dagster_internals.web_server",),
    "dagster-daemon": ("memory_assets.dagster_internals.daemon", "run"),
    "mcp-server": ("mcp_server.cli", "serve"),
}
# Every child, and what the terminal calls it.
CHILDREN = {
    "postgres": "Postgres 16",
    "chroma": "Chroma",
    "dagster-code": "Dagster code server",
    "dagster-webserver": "Dagster UI",
    "dagster-daemon": "Dagster daemon",
    "mcp-server": "MCP server",
}


def eventually(question: Callable[[], Any], *, within: float = PATIENCE, what: str = "it") -> Any:
    """Ask until the answer is true; an error counts as no."""
    deadline = time.monotonic() + within
    pause = 0.05
    failure: Exception | None = None
    while True:
        try:
            if answer := question():
                return answer
            failure = None
        except (OSError, ValueError, LookupError, httpx.HTTPError, psutil.Error) as error:
            failure = error
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come to pass within {within:g} s") from failure
        time.sleep(pause)
        # Asking all the time would take the processor from the processes that are waited for.
        pause = min(pause * 1.25, 0.5)


class Stack:
    """One data dir and whatever runs on it."""

    def __init__(self, data_dir: Path, **variables: str) -> None:
        self.data_dir = data_dir
        self.layout = Layout(data_dir)
        self.variables = {**OFFLINE, **variables}
        self.process = StackProcess(data_dir, self.variables)
        self._state: StackState | None = None

    def start(self) -> "Stack":
        self._state = self.process.start()
        return self

    @property
    def state(self) -> StackState:
        assert self._state is not None
        return self._state

    @property
    def dsn(self) -> str:
        assert self.state.postgres_dsn is not None
        return self.state.postgres_dsn

    @property
    def mcp_url(self) -> str:
        assert self.state.mcp_url is not None
        return self.state.mcp_url

    @property
    def health_url(self) -> str:
        return self.mcp_url.removesuffix("/mcp") + "/health"

    def health(self) -> httpx.Response:
        url = self.health_url
        return httpx.get(url, timeout=15, trust_env=False, verify=tls.verify(url))

    def is_well(self) -> bool:
        answer = self.health()
        return answer.status_code == 200 and answer.json()["status"] == "ok"

    def graphql(self, query: str, **variables: object) -> Any:
        url = f"{self.state.dagster_url}/graphql"
        answer = httpx.post(
            url,
            json={"query": query, "variables": variables},
            timeout=30,
            trust_env=False,
            verify=tls.verify(url),
        )
        answer.raise_for_status()
        assert "errors" not in answer.json(), answer.text
        return answer.json()["data"]

    def processes(self) -> dict[int, psutil.Process]:
        """Everything that carries the mark of this data dir and lives."""
        alive = {}
        for process in psutil.process_iter():
            try:
                marked = process.environ().get(MARKER) == str(self.data_dir)
                if marked and process.status() != psutil.STATUS_ZOMBIE:
                    alive[process.pid] = process
            except psutil.Error:
                continue
        return alive

    def pid_of(self, child: str) -> int:
        if child == "postgres":
            return int((self.layout.postgres / "postmaster.pid").read_text().splitlines()[0])
        parents = {}
        for process in self.processes().values():
            try:
                line, parent = process.cmdline(), process.ppid()
            except psutil.NoSuchProcess:
                continue
            words = [*line, *(Path(word).name for word in line)]
            if all(word in words for word in _COMMANDS[child]):
                parents[process.pid] = parent
        # A child may have children of the same command line: the eldest is meant.
        [eldest] = [pid for pid, parent in parents.items() if parent not in parents]
        return eldest

    def times_ready(self, child: str) -> int:
        """How often the terminal said that this child became ready."""
        return self.process.output.count(f"✓ {CHILDREN[child]}")

    def kill(self) -> None:
        """End the supervisor without a warning, and wait until it is gone."""
        self.process.stop(signal.SIGKILL)

    def __enter__(self) -> "Stack":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.process.stop()


@contextmanager
def scripted_stack(
    folder: Path, scripted: ScriptedProvider | None = None, **variables: str
) -> Iterator[tuple[Stack, ScriptedProvider]]:
    """A stack whose model is the scripted provider, asked once and not again by the client."""
    with (
        scripted or ScriptedProvider() as provider,
        Stack(
            folder,
            **{
                "EXTRACTOR": "openai",
                "OPENAI_API_KEY": "sk-test",
                "OPENAI_BASE_URL": provider.base_url,
                "OPENAI_MAX_RETRIES": "0",
                **variables,
            },
        ) as stack,
    ):
        yield stack, provider
