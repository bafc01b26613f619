"""Start-up: CPU until the version is printed, and until an MCP client is greeted over stdio.

    python -m benchmarks.bench_startup

It measures CPU (user and system) of the process, not wall-clock time, so other load matters little.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import psutil
from rich.console import Console
from rich.table import Table

ROUNDS = 7
VERSION_BAR_SECONDS = 0.6
GREETING_BAR_SECONDS = 0.8
_COMMAND = (sys.executable, "-m", "mcp_server.cli")
_HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "benchmark", "version": "1"},
    },
}


def until_first_line(*words: str, said: str = "") -> float:
    """CPU seconds of the command up to its first line of output."""
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [*_COMMAND, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=Path(folder),
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(said)
        process.stdin.flush()
        assert process.stdout.readline()
        used = psutil.Process(process.pid).cpu_times()
        process.kill()
        process.communicate()
    return float(used.user + used.system)


def main() -> None:
    table = Table("start-up, CPU", "median", "most", "bar", box=None, header_style="bold")
    for title, words, said, bar in (
        ("mcp-memory --version", ("--version",), "", VERSION_BAR_SECONDS),
        (
            "mcp-memory serve --stdio, to the handshake",
            ("serve", "--stdio"),
            json.dumps(_HELLO) + "\n",
            GREETING_BAR_SECONDS,
        ),
    ):
        used = [until_first_line(*words, said=said) for _ in range(ROUNDS)]
        table.add_row(title, f"{median(used):.2f} s", f"{max(used):.2f} s", f"{bar:g} s")
    Console().print(table)


if __name__ == "__main__":
    main()
