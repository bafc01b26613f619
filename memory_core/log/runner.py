"""Running one projection: batches in order, each with its checkpoint.

Each batch is recorded before it is tried. A batch that fails, or during which the process died, is
tried again at half its size. A change that keeps failing alone is set aside as a dead letter. A
dependency that is away is waited for, and the attempt does not count.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from memory_core.kernel.database import Database, Session
from memory_core.kernel.end_tasks import end_tasks
from memory_core.kernel.errors import OUTAGES, MemoryFault, PostgresUnavailable
from memory_core.kernel.timed_wait import is_set_within
from memory_core.log import checkpoint, deadletters
from memory_core.log.change import Change
from memory_core.log.checkpoint import Checkpoint
from memory_core.log.log_reader import read, until_readable
from memory_core.log.projection import Commit, Projection

log = logging.getLogger(__name__)

ATTEMPTS = 5
BEAT_SECONDS = 5.0
_BACKOFF_FIRST_SECONDS = 0.1
_BACKOFF_LIMIT_SECONDS = 5.0
# The longest wait that a provider can request.
_RETRY_AFTER_LIMIT_SECONDS = 60.0


class LeadershipLost(Exception):
    """Another process leads the projection now; the current work is discarded."""


class Runner:
    """Only the holder of the projection's lock runs it."""

    def __init__(self, database: Database, projection: Projection, leader: str) -> None:
        self._database = database
        self._projection = projection
        self._leader = leader
        self._wake = asyncio.Event()
        self._limit = projection.batch
        self._rebuilding: asyncio.Task[None] | None = None
        self._faults = 0  # consecutive

    @property
    def name(self) -> str:
        return self._projection.name

    def wake(self) -> None:
        self._wake.set()

    async def run(self) -> None:
        """Run until cancelled, or until the leadership is lost."""
        async with self._database.session() as session:
            await checkpoint.lead(session, self.name, self._leader)
        beating = asyncio.create_task(self._beat())
        working = asyncio.create_task(self._work())
        try:
            await asyncio.wait({beating, working}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            tasks = [task for task in (beating, working, self._rebuilding) if task is not None]
            outcomes = await end_tasks(*tasks)
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            async with self._database.session() as session:
                if await checkpoint.beat(session, self.name, self._leader) is None:
                    raise LeadershipLost

    async def _work(self) -> None:
        while True:
            self._wake.clear()
            point = await self._point()
            self._start_or_stop_rebuild(point)
            try:
                progressed = point.status != "paused" and (
                    await self._step(point) or await self._retry_letter()
                )
            except MemoryFault as fault:
                if fault.code not in OUTAGES or isinstance(fault, PostgresUnavailable):
                    raise
                await self._wait_out(fault)
                continue
            if progressed:
                self._faults = 0
            else:
                await self._rest(point)

    async def _point(self) -> Checkpoint:
        async with self._database.session() as session:
            point = await checkpoint.load(session, self.name)
        if point is None or point.leader != self._leader:
            raise LeadershipLost
        return point

    async def _step(self, point: Checkpoint) -> bool:
        """One batch. False: there was nothing to do."""
        if point.batch_size is not None:
            self._limit = max(point.batch_size // 2, 1)
        async with self._database.session() as session:
            changes = await read(session, point.position, self._limit)
        if not changes:
            return False
        if len(changes) == 1 and point.attempts >= ATTEMPTS:
            await self._set_aside(changes[0], _died(point.attempts))
            return True
        wanted = [change for change in changes if self._wants(change)]
        if not wanted:
            async with self._database.transaction() as session:
                await self._advance(session, changes)
            return True
        await self._try(changes, wanted)
        return True

    def _wants(self, change: Change) -> bool:
        types = self._projection.types
        return types is None or change.event_type in types

    async def _try(self, changes: Sequence[Change], wanted: Sequence[Change]) -> None:
        async with self._database.session() as session:
            begun = await checkpoint.begin(session, self.name, self._leader, len(changes))
        if begun is None:
            raise LeadershipLost
        commit = _Commit(self._database, lambda session: self._advance(session, changes))
        try:
            await self._apply(wanted, commit)
            await commit.finish()
            self._limit = min(self._limit * 2, self._projection.batch)
        except _Failed as failure:
            if commit.is_done:
                raise failure.error from None
            if len(changes) == 1 and begun.attempts >= ATTEMPTS:
                await self._set_aside(changes[0], failure.error)
                return
            log.warning(
                "%s: %d changes from %s on failed and will be tried in smaller batches: %r",
                *(self.name, len(changes), changes[0].position, failure.error),
            )
            if len(changes) == 1:
                await asyncio.sleep(_BACKOFF_FIRST_SECONDS * 2 ** (begun.attempts - 1))

    async def _apply(self, changes: Sequence[Change], commit: Commit) -> None:
        """Outages and lost leadership pass through; any other exception is blamed on the
        changes."""
        try:
            await self._projection.apply(changes, commit)
        except LeadershipLost:
            raise
        except MemoryFault as fault:
            if fault.code in OUTAGES:
                raise
            raise _Failed(fault) from fault
        except Exception as error:
            raise _Failed(error) from error

    async def _advance(self, session: Session, changes: Sequence[Change]) -> None:
        if not await checkpoint.advance(
            session, self.name, self._leader, changes[-1], len(changes)
        ):
            raise LeadershipLost

    async def _set_aside(self, change: Change, error: Exception) -> None:
        log.error("%s: %s is set aside as a dead letter: %r", self.name, change.event_id, error)
        async with self._database.transaction() as session:
            await deadletters.put(session, self.name, change, error, ATTEMPTS)
            await self._advance(session, [change])
        self._limit = self._projection.batch

    async def _retry_letter(self) -> bool:
        """Retry one dead letter that a person has asked for."""
        async with self._database.session() as session:
            letter = await deadletters.take(session, self.name)
        if letter is None:
            return False
        commit = _Commit(self._database, lambda session: deadletters.close(session, letter.id))
        try:
            await self._apply([letter.change], commit)
            await commit.finish()
        except _Failed as failure:
            async with self._database.session() as session:
                await deadletters.fail(session, letter.id, failure.error)
        except MemoryFault:
            async with self._database.session() as session:
                await deadletters.give_back(session, letter.id)
            raise
        return True

    async def _wait_out(self, fault: MemoryFault) -> None:
        if not self._faults:
            log.warning("%s waits: %s", self.name, fault.message)
        self._faults += 1
        async with self._database.session() as session:
            await checkpoint.wait_for(session, self.name, self._leader, fault)
        wished = getattr(fault, "retry_after", None) or 0.0
        backoff = min(_BACKOFF_FIRST_SECONDS * 2 ** min(self._faults, 10), _BACKOFF_LIMIT_SECONDS)
        await asyncio.sleep(max(backoff, min(wished, _RETRY_AFTER_LIMIT_SECONDS)))

    async def _rest(self, point: Checkpoint) -> None:
        """Wait until there may be something to do."""
        if point.status != "paused" and await until_readable(
            self._database, point.position, unless=self._wake.is_set
        ):
            return
        await is_set_within(self._wake, BEAT_SECONDS)

    def _start_or_stop_rebuild(self, point: Checkpoint) -> None:
        at_work = self._rebuilding is not None and not self._rebuilding.done()
        if point.status == "rebuilding" and not at_work:
            self._rebuilding = asyncio.create_task(self._rebuild())
        elif point.status == "paused" and at_work:
            assert self._rebuilding is not None
            self._rebuilding.cancel()

    async def _rebuild(self) -> None:
        faults = 0
        while True:
            try:
                await self._projection.rebuild()
                break
            except Exception as error:
                faults += 1
                away = isinstance(error, MemoryFault) and error.code in OUTAGES
                if not away:
                    log.exception("%s: its rebuilding failed and will be tried again", self.name)
                await self._note(error)
            await asyncio.sleep(min(_BACKOFF_FIRST_SECONDS * 2**faults, _BACKOFF_LIMIT_SECONDS))
        async with self._database.session() as session:
            await session.run("projection_is_rebuilt", name=self.name, leader=self._leader)

    async def _note(self, error: Exception) -> None:
        fault = error if isinstance(error, MemoryFault) else MemoryFault(repr(error))
        with contextlib.suppress(PostgresUnavailable):
            async with self._database.session() as session:
                await session.run(
                    "note_projection_fault",
                    name=self.name,
                    leader=self._leader,
                    fault=fault.message,
                    code=fault.code.value,
                )


class _Commit:
    """The transaction that a projection writes in; it also moves the checkpoint."""

    def __init__(self, database: Database, last: Callable[[Session], Awaitable[None]]) -> None:
        self._database = database
        self._last = last
        self.is_done = False

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[Session]:
        async with self._database.transaction() as session:
            yield session
            await self._last(session)
        self.is_done = True

    async def finish(self) -> None:
        """For a projection that wrote nothing to Postgres."""
        if not self.is_done:
            async with self():
                pass


class _Failed(Exception):
    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def _died(attempts: int) -> Exception:
    return RuntimeError(
        f"The process ended {attempts} times while it worked on this change; its log may say why."
    )
