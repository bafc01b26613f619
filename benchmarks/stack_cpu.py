"""CPU seconds of a running stack, by child, including processes that have ended."""

from collections import Counter
from pathlib import Path

import psutil

from stack.orphans import MARKER

RUNS = "Dagster code server and runs"
# A child is identified by a word of its command line; the first match counts.
_WORDS = {
    "postgres": "Postgres",
    "chroma": "Chroma",
    "code_server": RUNS,
    "forkserver": RUNS,
    "dagster_internals.daemon": "Dagster daemon",
    "webserver": "Dagster UI",
    "web_server": "Dagster UI",
    "serve": "MCP server",
}


def cpu_seconds(data_dir: Path, supervisor: int) -> Counter[str]:
    """The CPU seconds so far, by child. Postgres' processes have no mark: they are children of its
    first one."""
    used: Counter[str] = Counter()
    for process in _processes(data_dir, supervisor):
        try:
            times, line = process.cpu_times(), process.cmdline()
        except psutil.Error:
            continue
        name = _name(line)
        used[name] += (
            times.user + times.system + times.children_user + times.children_system
            if name != "supervisor"
            else times.user + times.system
        )
    return used


def _processes(data_dir: Path, supervisor: int) -> list[psutil.Process]:
    root = psutil.Process(supervisor)
    processes = {root.pid: root} | {child.pid: child for child in root.children(recursive=True)}
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARKER) == str(data_dir):
                processes[process.pid] = process
        except psutil.Error:
            continue
    return list(processes.values())


def _name(command: list[str]) -> str:
    line = " ".join(command)
    for word, name in _WORDS.items():
        if word in line:
            return name
    return "supervisor"
