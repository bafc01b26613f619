"""What a command needs of the stack: it joins a running stack, or starts the services for a while.

    with connected(settings) as resolved:
        ...  # resolved.dsn, resolved.chroma_host and resolved.chroma_port are valid here

Several commands may do so at once: the services end with the last of them.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from pydantic import SecretStr

from memory_core.kernel import file_locks as locks
from memory_core.kernel.errors import StackFault
from memory_core.kernel.file_locks import FileLock
from memory_core.kernel.settings import Settings
from memory_core.projections import make_host
from memory_core.runtime import NamedServices, Runtime
from stack import stack_state
from stack.child import SAFE_PATH, end_of
from stack.dagster_orchestrator import DagsterOrchestrator
from stack.disk_space import require_room
from stack.layout import Layout
from stack.stack_state import StackState
from stack.start_deadline import StartDeadline

# More than the supervisor itself gives a child to become ready. Migrations do not count.
START_SECONDS = 120.0
STOP_SECONDS = 40.0
_POLL_SECONDS = 0.05
_SERVICES_LOG = "services"


def needs_services(settings: Settings) -> bool:
    return settings.events_db_dsn is None or settings.chroma_host is None


def resolved(settings: Settings, stack: StackState) -> Settings:
    """The settings with the running stack's addresses filled in."""
    update: dict[str, object] = {}
    if settings.events_db_dsn is None and stack.postgres_dsn is not None:
        update["events_db_dsn"] = SecretStr(stack.postgres_dsn)
    if settings.chroma_host is None and stack.chroma_socket is not None:
        update["chroma_host"] = f"unix:{stack.chroma_socket}"
    elif settings.chroma_host is None and stack.chroma_port is not None:
        update |= {"chroma_host": "127.0.0.1", "chroma_port": stack.chroma_port}
    return settings.model_copy(update=update)


class Membership:
    """Keeps the services alive while it is held."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._layout = Layout(settings.data_dir)
        self._users = FileLock(self._layout.users_lock)

    def join(self) -> Settings:
        """Find the running stack or start the services. Can be called again after a loss."""
        if not needs_services(self._settings):
            return NamedServices(self._settings).join()
        self._layout.create()
        with FileLock(self._layout.transition_lock) as lock:
            deadline = StartDeadline(self._layout, START_SECONDS)
            while not lock.try_acquire():
                if deadline.passed:
                    raise StackFault(
                        f"Another command has been starting the services of {self._layout.root} "
                        f"for {START_SECONDS:.0f} s. See {self._layout.log_of(_SERVICES_LOG)}."
                    )
                time.sleep(_POLL_SECONDS)
            if not self._users.held:
                self._users.acquire(shared=True, timeout=START_SECONDS)
            return resolved(self._settings, self._ready_stack())

    @property
    def lost(self) -> bool:
        """Whether the joined stack has ended."""
        return self._users.held and not locks.is_held(self._layout.supervisor_lock)

    def leave(self) -> None:
        """Leave; the last process to leave waits until its services have ended."""
        if not self._users.held:
            return
        self._users.release()
        stack = stack_state.last_written(self._layout)
        if stack is not None and stack.mode == "full":
            return
        deadline = time.monotonic() + STOP_SECONDS
        while locks.is_held(self._layout.supervisor_lock) and time.monotonic() < deadline:
            if locks.is_held_shared(self._layout.users_lock):
                return  # others still use them
            time.sleep(_POLL_SECONDS)

    def _spawn(self) -> subprocess.Popen[bytes]:
        with self._layout.log_of(_SERVICES_LOG).open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "mcp_server.cli", "services"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **self._settings.environment(), **SAFE_PATH},
                # It outlives the command, and must not keep the user's folder in use.
                cwd=self._layout.root,
                # It must survive Ctrl-C in this command's terminal: other commands may have joined.
                start_new_session=True,
            )

    def _ready_stack(self) -> StackState:
        """Wait for the process that starts the stack; if there is none, or it failed, start it."""
        deadline = StartDeadline(self._layout, START_SECONDS)
        process: subprocess.Popen[bytes] | None = None
        while not deadline.passed:
            stack = stack_state.running(self._layout)
            if stack is not None and stack.ready:
                return stack
            if stack is None and process is None:
                require_room(self._layout.root)
                process = self._spawn()
            elif stack is None and process is not None and process.poll() is not None:
                break
            time.sleep(_POLL_SECONDS)
        require_room(self._layout.root)  # a full disk explains the failure better than any log
        log = self._layout.log_of(_SERVICES_LOG)
        raise StackFault(f"The services could not be started. {end_of(log)}")


@contextmanager
def connected(settings: Settings) -> Iterator[Settings]:
    membership = Membership(settings)
    try:
        yield membership.join()
    finally:
        membership.leave()


def joined_runtime(
    settings: Settings,
    *,
    worker: Literal["never", "when needed", "always"] = "never",
    system: str | None = None,
    unasked: str | None = None,
) -> Runtime:
    """The memory of these settings: their servers, or else the stack of their data dir."""
    return Runtime(
        settings,
        Membership(settings),
        DagsterOrchestrator(),
        worker=worker,
        make_host=make_host,
        system=system,
        unasked=unasked,
    )
