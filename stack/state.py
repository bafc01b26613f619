"""`stack.json`: who runs the stack of a data dir, and where it listens."""

import contextlib
import json
import os
from dataclasses import asdict, dataclass, replace
from typing import Literal

import psutil

from memory_core.kernel import file_locks as locks
from stack.layout import Layout

Mode = Literal["full", "services"]


@dataclass(frozen=True, slots=True)
class StackState:
    """Endpoints of what the supervisor itself runs; None for what lives elsewhere."""

    pid: int
    mode: Mode
    ready: bool = False
    stopping: bool = False
    # The migration that a start is at, when it takes longer than a moment.
    migrating: str | None = None
    postgres_dsn: str | None = None
    chroma_port: int | None = None
    chroma_socket: str | None = None
    mcp_url: str | None = None
    dagster_url: str | None = None


def write(layout: Layout, state: StackState) -> None:
    draft = layout.state.with_suffix(".tmp")
    draft.write_text(json.dumps(asdict(state), indent=2))
    draft.chmod(0o600)
    draft.replace(layout.state)


def announce(layout: Layout, mode: Mode) -> None:
    """Called by a new supervisor first of all, before it knows its own addresses.

    What a killed one had written must not be taken for ours; only the Chroma port is kept.
    """
    last = last_written(layout)
    port = last.chroma_port if last is not None else None
    write(layout, StackState(pid=os.getpid(), mode=mode, chroma_port=port))


def last_written(layout: Layout) -> StackState | None:
    """The state as last written, whether or not its supervisor still lives."""
    try:
        return StackState(**json.loads(layout.state.read_text()))
    except (FileNotFoundError, PermissionError, ValueError, TypeError):
        return None


def running(layout: Layout) -> StackState | None:
    """The state of the supervisor that lives now and is not about to end, if there is one."""
    if not locks.is_held(layout.supervisor_lock):
        return None
    state = last_written(layout)
    if state is None or state.stopping or not _lives(state.pid):
        return None
    return state


def mark_stopping(layout: Layout) -> None:
    """Called by a supervisor that stops: no process may join it any more.

    The rest stays written: the next supervisor takes the same Chroma port again if it can.
    """
    state = last_written(layout)
    if state is not None and state.pid == os.getpid():
        # A full disk must not keep it from stopping.
        with contextlib.suppress(OSError):
            write(layout, replace(state, ready=False, stopping=True))


def _lives(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
