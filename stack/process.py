"""A whole stack as a child process: for the demo, benchmarks and end-to-end tests."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from memory_core.kernel.env_file import HANDED_OVER
from memory_core.kernel.errors import StackFault
from memory_core.kernel.settings import variable_names
from stack import stack_state
from stack.child import SAFE_PATH
from stack.layout import Layout
from stack.stack_state import StackState
from stack.start_deadline import StartDeadline

# The stack gives up by itself and says which part did not start; this limit is for one that hangs.
START_SECONDS = 600.0
STOP_SECONDS = 60.0
_POLL_SECONDS = 0.1


class StackProcess:
    """`mcp-memory up` on a data dir, on free ports.

    It uses only the settings given here: neither the user's environment nor their `.env` may lead a
    demo or a test to a database that matters.
    """

    def __init__(self, data_dir: Path, variables: Mapping[str, str] | None = None) -> None:
        self.layout = Layout(data_dir.resolve())
        self._variables = {
            "MCP_PORT": "0",
            "DAGSTER_PORT": "0",
            **(variables or {}),
            "DATA_DIR": str(self.layout.root),
        }
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def output(self) -> str:
        return self.layout.log_of("up").read_text(errors="replace")

    def start(self) -> StackState:
        """Start it and wait until every part is ready."""
        self.layout.create()
        with self.layout.log_of("up").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "mcp_server.cli", "up"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**_without_settings(os.environ), **self._variables, **SAFE_PATH},
                cwd=self.layout.root,
                start_new_session=True,
            )
        deadline = StartDeadline(self.layout, START_SECONDS)
        while not deadline.passed:
            stack = stack_state.running(self.layout)
            if stack is not None and stack.ready and stack.pid == self.pid:
                return stack
            if self._process.poll() is not None:
                break
            time.sleep(_POLL_SECONDS)
        self.stop()
        raise StackFault(f"The stack did not start:\n{self.output[-3000:]}")

    def stop(self, number: signal.Signals = signal.SIGINT, *, timeout: float = STOP_SECONDS) -> int:
        """Stop it as Ctrl-C would; returns the exit code."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(number)
        return self._process.wait(timeout)


@contextmanager
def running_stack(
    data_dir: Path, variables: Mapping[str, str] | None = None
) -> Iterator[tuple[StackProcess, StackState]]:
    process = StackProcess(data_dir, variables)
    try:
        yield process, process.start()
    finally:
        process.stop()


def _without_settings(environment: Mapping[str, str]) -> dict[str, str]:
    ours = variable_names() | {HANDED_OVER}
    return {name: value for name, value in environment.items() if name not in ours}
