"""One supervised process: how to start it, check that it is ready, and stop it."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memory_core.kernel.child_environment import minimal_environment
from memory_core.kernel.errors import StackFault

_POLL_SECONDS = 0.1
_LAST_LINES = 15

# A module in the user's folder must not replace one of ours: `python -m` would look there.
SAFE_PATH = {"PYTHONSAFEPATH": "1"}

# Called with the time (epoch) of the child's start. Returns when the child answers properly; raises
# any exception while it does not yet.
Probe = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ChildSpec:
    name: str
    title: str
    command: list[str]
    log: Path
    probe: Probe
    environment: Mapping[str, str] = field(default_factory=dict)
    # Whether it also inherits our own environment, with the keys in it.
    inherits: bool = True
    depends_on: tuple[str, ...] = ()
    # Arguments of `subprocess` that make it run as another user.
    identity: Mapping[str, Any] = field(default_factory=dict)
    stop_signal: signal.Signals = signal.SIGTERM
    ready_timeout: float = 90.0
    stop_timeout: float = 4.0
    # Runs before every start, for example to remove the remains of a dead one.
    prepare: Callable[[], None] | None = None
    # One line about this start for a person; called after `prepare`.
    notice: Callable[[], str | None] = lambda: None


class ChildDied(StackFault):
    """A child ended before it was ready."""


class Child:
    def __init__(self, spec: ChildSpec) -> None:
        self.spec = spec
        self._process: asyncio.subprocess.Process | None = None
        self._started_at = 0.0

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        if self.spec.prepare is not None:
            await asyncio.to_thread(self.spec.prepare)
        self._started_at = time.time()
        with self.spec.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self.spec.command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**self._inherited(), **self.spec.environment},
                # In its own session: Ctrl-C in the terminal reaches only the supervisor, which then
                # stops the children in order; and the whole group can be ended at once.
                start_new_session=True,
                # No child depends on the user's working directory.
                cwd="/",
                **self.spec.identity,
            )

    def _inherited(self) -> Mapping[str, str]:
        return os.environ if self.spec.inherits else minimal_environment()

    async def wait_ready(self) -> float:
        """Seconds until the probe succeeded."""
        begun = time.monotonic()
        failure: BaseException | None = None
        while time.monotonic() - begun < self.spec.ready_timeout:
            if not self.alive:
                raise ChildDied(self.death_report())
            try:
                await asyncio.wait_for(self.spec.probe(self._started_at), timeout=10)
                return time.monotonic() - begun
            except asyncio.CancelledError:
                raise
            except Exception as error:
                failure = error
            await asyncio.sleep(_POLL_SECONDS)
        raise StackFault(
            f"{self.spec.title} was started but did not become ready within "
            f"{self.spec.ready_timeout:.0f} s ({type(failure).__name__}: {failure}). "
            f"Its log: {self.spec.log}"
        )

    async def wait_dead(self) -> int:
        assert self._process is not None
        return await self._process.wait()

    async def stop(self) -> None:
        if self._process is None:
            return
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(self.spec.stop_signal)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), self.spec.stop_timeout)
        self._end_group()
        await self._process.wait()

    def death(self) -> str:
        code = self._process.returncode if self._process else None
        how = f"exit code {code}" if code is None or code >= 0 else signal.Signals(-code).name
        return f"{self.spec.title} ended ({how})."

    def death_report(self) -> str:
        return f"{self.death()} {end_of(self.spec.log)}"

    def _end_group(self) -> None:
        """End the processes that the child had started and left behind."""
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)


def end_of(log: Path) -> str:
    return "\n".join([f"Last lines of {log}:", *(f"  {line}" for line in last_lines(log))])


def last_lines(log: Path, count: int = _LAST_LINES) -> list[str]:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 20_000))
            return file.read().decode(errors="replace").splitlines()[-count:]
    except FileNotFoundError:
        return []
