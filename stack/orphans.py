"""Processes that a killed supervisor left behind."""

import contextlib
import os
from pathlib import Path

import psutil

# Every child, and every process that a child starts, has this in its environment.
MARKER = "MCP_MEMORY_STACK"
_PATIENCE_SECONDS = 5.0


def end_orphans(data_dir: Path) -> int:
    """End every marked process of this data dir. Returns how many there were.

    Only the holder of the supervisor lock may call it: then every marked process belongs to a
    supervisor that is gone.
    """
    orphans = _marked(data_dir)
    for process in orphans:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.terminate()
    _, alive = psutil.wait_procs(orphans, timeout=_PATIENCE_SECONDS)
    for process in alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(alive, timeout=_PATIENCE_SECONDS)
    return len(orphans)


def _marked(data_dir: Path) -> list[psutil.Process]:
    mine = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    processes = []
    for process in psutil.process_iter():
        if process.pid in mine:
            continue
        try:
            if process.environ().get(MARKER) == str(data_dir):
                processes.append(process)
        except psutil.Error:
            continue  # it has ended, or belongs to another user
    return processes
