"""The supervisor: the one process that owns the stack of a data dir.

It starts each child when its dependencies are ready, restarts a child that dies, gives up on one
that keeps dying, and stops them all in order when asked to.
"""

import asyncio
import contextlib
import os
import resource
import signal
import time
from collections import deque
from dataclasses import replace
from functools import partial
from typing import Protocol

from memory_core.kernel import migrations
from memory_core.kernel.end_tasks import end_tasks
from memory_core.kernel.errors import MemoryFault, StackFault
from memory_core.kernel.file_locks import FileLock, holding
from memory_core.kernel.settings import Settings
from stack import exposure, services, stack_state
from stack.child import Child, ChildDied
from stack.disk_space import require_room
from stack.layout import Layout
from stack.orphans import end_orphans
from stack.rotation import rotate_large
from stack.services import StackPlan
from stack.stack_state import Mode

BACKOFF_FIRST_SECONDS = 0.5
BACKOFF_LIMIT_SECONDS = 10.0
# With more deaths than this within the window, the supervisor gives up.
DEATHS_ALLOWED = 5
DEATHS_ALLOWED_BEFORE_FIRST_READY = 2
DEATHS_WINDOW_SECONDS = 60.0
TAKEOVER_SECONDS = 40.0
TAKEOVER_POLL_SECONDS = 0.05
IDLE_POLL_SECONDS = 0.3
# A migration that takes longer than this is reported.
MIGRATION_NOTICE_SECONDS = 2.0
WAITING_FOR_ANOTHER = "another process is at it"  # or Postgres takes a moment to answer
ROTATION_SECONDS = 5.0


class Reporter(Protocol):
    """Where the supervisor reports what it does, one line each."""

    def step(self, title: str, seconds: float) -> None: ...
    def trouble(self, message: str) -> None: ...
    def ready(self, plan: StackPlan) -> None: ...
    def stopping(self) -> None: ...


class Supervisor:
    def __init__(self, settings: Settings, mode: Mode, reporter: Reporter) -> None:
        self._settings = settings
        self._mode = mode
        self._report = reporter
        self._layout = Layout(settings.data_dir)
        self._children: dict[str, Child] = {}
        self._ready: dict[str, asyncio.Event] = {}
        self._stop = asyncio.Event()
        self._fault: MemoryFault | None = None

    async def run(self) -> None:
        """Returns when asked to stop; raises the fault if it had to give up."""
        opened = exposure.check(self._settings) if self._mode == "full" else None
        require_room(self._layout.root)
        self._layout.create()
        with FileLock(self._layout.supervisor_lock) as lock:
            await self._take(lock)
            self._listen_to_signals()
            _raise_file_limit()
            stack_state.announce(self._layout, self._mode)
            keepers: list[asyncio.Task[None]] = []
            try:
                await asyncio.to_thread(end_orphans, self._layout.root)
                plan = services.plan(self._settings, self._layout, self._mode)
                stack_state.write(self._layout, plan.state)
                await self._serve(plan, keepers, opened)
            finally:
                if keepers:
                    self._report.stopping()
                stack_state.mark_stopping(self._layout)
                await end_tasks(*keepers)
                await self._stop_children()
                await asyncio.to_thread(end_orphans, self._layout.root)
        if self._fault is not None:
            raise self._fault

    async def _serve(
        self, plan: StackPlan, keepers: list[asyncio.Task[None]], opened: str | None
    ) -> None:
        if opened is not None:
            self._report.trouble(opened)
        if not any(spec.name == "postgres" for spec in plan.children):
            await self._migrate(plan)
        for spec in plan.children:
            self._children[spec.name] = Child(spec)
            self._ready[spec.name] = asyncio.Event()
        keepers.append(asyncio.create_task(self._keep_logs_small()))
        keepers += [
            asyncio.create_task(self._keep(child, plan)) for child in self._children.values()
        ]
        all_ready = asyncio.create_task(self._all_ready())
        stopped = asyncio.create_task(self._stop.wait())
        await asyncio.wait({all_ready, stopped}, return_when=asyncio.FIRST_COMPLETED)
        all_ready.cancel()
        if self._stop.is_set():
            return
        stack_state.write(self._layout, replace(plan.state, ready=True))
        self._report.ready(plan)
        if self._mode == "services":
            keepers.append(asyncio.create_task(self._stop_when_unused()))
        await stopped

    async def _keep_logs_small(self) -> None:
        while True:
            await asyncio.to_thread(rotate_large, self._layout.logs)
            await asyncio.sleep(ROTATION_SECONDS)

    async def _all_ready(self) -> None:
        for event in self._ready.values():
            await event.wait()

    async def _keep(self, child: Child, plan: StackPlan) -> None:
        """Keep one child running until asked to stop."""
        deaths: deque[float] = deque()
        was_ready = False
        while True:
            for name in child.spec.depends_on:
                await self._ready[name].wait()
            try:
                await child.start()
                if not was_ready and (notice := child.spec.notice()):
                    self._report.trouble(notice)
                seconds = await child.wait_ready()
                if child.spec.name == "postgres" and not was_ready:
                    await self._migrate(plan)
                self._report.step(child.spec.title, seconds)
                was_ready = True
                self._ready[child.spec.name].set()
                await child.wait_dead()
                self._ready[child.spec.name].clear()
            except ChildDied:
                pass
            except MemoryFault as fault:
                return self._give_up(self._cause(fault))
            except Exception as error:
                what = StackFault(f"{child.spec.title} cannot be started: {error!r}")
                return self._give_up(self._cause(what))
            full = self._full_disk()
            if full is not None:
                # The child would die again and again, each time in the middle of a write.
                return self._give_up(full)
            now = time.monotonic()
            deaths.append(now)
            while now - deaths[0] > DEATHS_WINDOW_SECONDS:
                deaths.popleft()
            allowed = DEATHS_ALLOWED if was_ready else DEATHS_ALLOWED_BEFORE_FIRST_READY
            if len(deaths) > allowed:
                story = f"Gave up after {len(deaths)} deaths. {child.death_report()}"
                return self._give_up(StackFault(story))
            pause = min(BACKOFF_FIRST_SECONDS * 2 ** (len(deaths) - 1), BACKOFF_LIMIT_SECONDS)
            self._report.trouble(f"{child.death()} Starting it again in {pause:g} s.")
            await asyncio.sleep(pause)

    async def _migrate(self, plan: StackPlan) -> None:
        """Wait for migrations, however long they take. Waiting processes read the current one in
        the state file."""
        begun = time.monotonic()
        names: list[str] = []
        apply = partial(migrations.apply, plan.settings.dsn, begins=names.append)
        work = asyncio.create_task(asyncio.to_thread(apply))
        announced: str | None = None
        try:
            while not (await asyncio.wait({work}, timeout=MIGRATION_NOTICE_SECONDS))[0]:
                name = names[-1] if names else WAITING_FOR_ANOTHER
                if name != announced:
                    announced = name
                    stack_state.write(self._layout, replace(plan.state, migrating=announced))
                    self._report.trouble(migrations.notice(announced))
            applied = work.result()
        finally:
            work.cancel()
        if announced is not None:
            stack_state.write(self._layout, plan.state)
        if applied:
            self._report.step(f"Schema ({len(applied)} migrations)", time.monotonic() - begun)

    def _full_disk(self) -> StackFault | None:
        try:
            require_room(self._layout.root)
        except StackFault as fault:
            return fault
        return None

    def _cause(self, fault: MemoryFault) -> MemoryFault:
        """A full disk explains every other failure, and in fewer words."""
        return self._full_disk() or fault

    def _give_up(self, fault: MemoryFault) -> None:
        self._fault = self._fault or fault
        self._stop.set()

    async def _stop_when_unused(self) -> None:
        """Services that were started for commands end with the last of them."""
        while True:
            await asyncio.sleep(IDLE_POLL_SECONDS)
            with holding(self._layout.transition_lock, timeout=0) as alone:
                if not alone:
                    continue  # a process is just joining
                with FileLock(self._layout.users_lock) as users:
                    if users.try_acquire():
                        stack_state.mark_stopping(self._layout)
                        self._stop.set()
                        return

    async def _stop_children(self) -> None:
        """Stop the children level by level: first those that no live child depends on."""
        left = dict(self._children)
        while left:
            needed = {name for child in left.values() for name in child.spec.depends_on}
            level = [name for name in left if name not in needed]
            await asyncio.gather(*(left.pop(name).stop() for name in level))

    async def _take(self, lock: FileLock) -> None:
        """Become the supervisor of this data dir, or report which process is."""
        deadline = time.monotonic() + TAKEOVER_SECONDS
        asked: int | None = None
        while not lock.try_acquire():
            other = stack_state.running(self._layout)
            if other is not None and other.mode == "full":
                raise already_running(other.pid, self._layout)
            if time.monotonic() > deadline:
                raise already_running(other.pid if other else None, self._layout)
            if other is not None and self._mode == "full" and other.pid != asked:
                # It was started only for a command; its users will find the same addresses again.
                with contextlib.suppress(ProcessLookupError):
                    os.kill(other.pid, signal.SIGTERM)
                asked = other.pid
            await asyncio.sleep(TAKEOVER_POLL_SECONDS)

    def _listen_to_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # A shell that starts us in the background ignores SIGINT: install a handler again.
            loop.add_signal_handler(number, self._stop.set)


def _raise_file_limit() -> None:
    """Chroma keeps files open per collection; the usual soft limit of 1024 is soon reached."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def already_running(pid: int | None, layout: Layout) -> StackFault:
    who = f"pid {pid}" if pid else "its pid is not known yet"
    return StackFault(
        f"A stack already runs on {layout.root} ({who}). Use it, stop it with "
        f"`kill {pid or 'PID'}` or Ctrl-C in its terminal, or set DATA_DIR to another directory.",
        details={"pid": pid},
    )
