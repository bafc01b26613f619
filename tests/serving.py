"""`mcp-memory serve` as a process of its own, over each transport."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from mcp import StdioServerParameters

from memory_core.kernel.settings import Settings
from stack import ports

SERVE = ["-m", "mcp_server.cli", "serve"]
START_SECONDS = 180.0


def variables(settings: Settings) -> dict[str, str]:
    """The environment of a server process: ours, and the services of this test session."""
    return {**os.environ, **settings.environment()}


def stdio(settings: Settings) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable, args=[*SERVE, "--stdio"], env=variables(settings)
    )


class HttpServer:
    """`mcp-memory serve` on a free port."""

    def __init__(self, settings: Settings, log: Path) -> None:
        self.port = ports.free_port()
        self._settings = settings.model_copy(update={"mcp_port": self.port})
        self._log = log

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> "HttpServer":
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, *SERVE], env=variables(self._settings), stdout=log, stderr=log
            )
        deadline = time.monotonic() + START_SECONDS
        try:
            while not self._answers():
                assert self._process.poll() is None, self._log.read_text()
                assert time.monotonic() < deadline, self._log.read_text()
                time.sleep(0.05)
        except BaseException:
            self._process.kill()
            raise
        return self

    def send_signal(self, number: int) -> None:
        self._process.send_signal(number)

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def terminate(self) -> None:
        self._process.terminate()

    def __exit__(self, *_: object) -> None:
        self.terminate()
        self._process.wait(timeout=START_SECONDS)
