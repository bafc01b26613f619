"""`stack.json`: the process that runs the stack of a data dir, and its addresses."""

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
    """Endpoints of the processes that the supervisor runs; None for services elsewhere."""

    pid: int
    mode: Mode
    ready: bool = False
    stopping: bool = False
    # The current migration of a start, if it takes longer than a moment.
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
    """A new supervisor calls this first, before it knows its own addresses.

    The state of a killed supervisor must not be taken for ours; only the Chroma port is kept.
    """
    last = last_written(layout)
    port = last.chroma_port if last is not None else None
    write(layout, StackState(pid=os.getpid(), mode=mode, chroma_port=port))


def last_written(layout: Layout) -> StackState | None:
    """The state as last written, whether or not its supervisor is alive."""
    try:
        return StackState(**json.loads(layout.state.read_text()))
    except (FileNotFoundError, PermissionError, ValueError, TypeError):
        return None


def running(layout: Layout) -> StackState | None:
    """The state of the live supervisor, unless it is about to end; None if there is none."""
    if not locks.is_held(layout.supervisor_lock):
        return None
    state = last_written(layout)
    if state is None or state.stopping or not _is_alive(state.pid):
        return None
    return state


def mark_stopping(layout: Layout) -> None:
    """A stopping supervisor calls this: no process may join it any more.

    The rest stays in the file: the next supervisor uses the same Chroma port again if it can.
    """
    state = last_written(layout)
    if state is not None and state.pid == os.getpid():
        # A full disk must not prevent it from stopping.
        with contextlib.suppress(OSError):
            write(layout, replace(state, ready=False, stopping=True))


def _is_alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
