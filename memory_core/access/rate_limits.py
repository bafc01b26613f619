"""Rate limits: the calls of a user, and of a tenant, in the last 60 seconds over all servers.

Each server counts its own calls in slots of six seconds. Once a second it adds its counts to
Postgres and reads those of the others, so a call costs no statement. Several servers may therefore
admit, within that second, more calls than the limit; a single server never does.
"""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from memory_core.access.credential import RateLimited
from memory_core.kernel.database import Database
from memory_core.kernel.end_tasks import end_tasks
from memory_core.kernel.errors import MemoryFault
from memory_core.kernel.principal import Principal

log = logging.getLogger(__name__)

WINDOW_SECONDS = 60
SLOT_SECONDS = 6
_SLOTS = WINDOW_SECONDS // SLOT_SECONDS
TELL_SECONDS = 1.0
_FORGET_SECONDS = 60.0

# A tenant and one of its users. An empty user means the whole tenant.
Subject = tuple[UUID, str]


@dataclass(frozen=True, slots=True)
class CallCount:
    """The calls of one slot, over all servers."""

    tenant_id: UUID
    user_id: str
    slot: int
    calls: int


@dataclass(slots=True)
class CallWindow:
    """The calls of one subject, per slot."""

    own: dict[int, int] = field(default_factory=dict)
    sent: dict[int, int] = field(default_factory=dict)  # the part of `own` that Postgres has
    others: dict[int, int] = field(default_factory=dict)

    def calls(self, now: float) -> int:
        """Calls in the last 60 seconds, rounded up to whole slots."""
        last = int(now // SLOT_SECONDS)
        return sum(
            self.own.get(slot, 0) + self.others.get(slot, 0)
            for slot in range(last - _SLOTS, last + 1)
        )

    def seconds_until(self, limit: int, now: float) -> int:
        """Seconds until another call is within the limit."""
        excess = self.calls(now) + 1 - limit
        last = int(now // SLOT_SECONDS)
        for slot in range(last - _SLOTS, last + 1):
            excess -= self.own.get(slot, 0) + self.others.get(slot, 0)
            if excess <= 0:  # when this slot leaves the window
                return max(1, math.ceil((slot + _SLOTS + 1) * SLOT_SECONDS - now))
        return WINDOW_SECONDS

    def count(self, now: float) -> None:
        slot = int(now // SLOT_SECONDS)
        self.own[slot] = self.own.get(slot, 0) + 1

    def unsent(self) -> dict[int, int]:
        return {
            slot: calls - self.sent.get(slot, 0)
            for slot, calls in self.own.items()
            if calls > self.sent.get(slot, 0)
        }

    def forget(self, before: int) -> None:
        for counts in (self.own, self.sent, self.others):
            for slot in [slot for slot in counts if slot < before]:
                del counts[slot]

    @property
    def is_empty(self) -> bool:
        return not self.own and not self.others


class RateLimiter:
    def __init__(
        self,
        database: Callable[[], Awaitable[Database]],
        *,
        of_user: int,
        of_tenant: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Limits in calls per minute; 0: no limit. `clock`: seconds, corrected by the clock of
        Postgres."""
        self._database = database
        self._of_user, self._of_tenant = of_user, of_tenant
        self._clock = clock
        self._ahead = 0.0  # how far Postgres' clock is ahead of ours
        self._windows: dict[Subject, CallWindow] = {}
        self._forgot_at = -math.inf
        self._exchanging = asyncio.Lock()
        self._telling: asyncio.Task[None] | None = None

    async def admit(self, principal: Principal) -> None:
        """Count a call, or raise RateLimited."""
        limits = self._limits(principal)
        if not limits:
            return
        new = [subject for subject, _, _ in limits if subject not in self._windows]
        if new:
            await self.exchange(new)  # other servers may have admitted calls of this user
        now = self._clock() + self._ahead
        for subject, limit, whose in limits:
            window = self._windows.setdefault(subject, CallWindow())
            if window.calls(now) + 1 > limit:
                raise RateLimited(
                    f"{whose} {limit} calls a minute are used up. Try again later.",
                    window.seconds_until(limit, now),
                )
        for subject, _, _ in limits:
            self._windows[subject].count(now)
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(self._exchange_soon())

    async def close(self) -> None:
        if self._telling is not None:
            await end_tasks(self._telling)

    async def exchange(self, subjects: Sequence[Subject] | None = None) -> None:
        """Add our counts to Postgres, and read those of the other servers; by default for all
        subjects."""
        try:
            database = await self._database()
            async with self._exchanging:
                await self._exchange(
                    database, list(self._windows if subjects is None else subjects)
                )
        except MemoryFault as fault:
            # Until Postgres is back, each server applies the limits to its own calls.
            log.warning("calls are counted by this server alone: %s", fault.code)

    def _limits(self, principal: Principal) -> list[tuple[Subject, int, str]]:
        limits = [
            ((principal.tenant_id, principal.user), self._of_user, "Your"),
            ((principal.tenant_id, ""), self._of_tenant, "Your tenant's"),
        ]
        return [entry for entry in limits if entry[1]]

    async def _exchange_soon(self) -> None:
        await asyncio.sleep(TELL_SECONDS)
        await self.exchange()

    async def _exchange(self, database: Database, subjects: list[Subject]) -> None:
        for subject in subjects:
            self._windows.setdefault(subject, CallWindow())
        unsent = [
            (*subject, slot, calls)
            for subject in subjects
            for slot, calls in self._windows[subject].unsent().items()
        ]
        async with database.session() as session:
            seconds = await session.value(float, "database_seconds")
            self._ahead = seconds - self._clock()
            since = int(seconds // SLOT_SECONDS) - _SLOTS
            if unsent:
                tenants, users, slots, calls = map(list, zip(*unsent, strict=True))
                await session.run(
                    "add_calls", tenants=tenants, users=users, slots=slots, calls=calls
                )
            self._note_sent(unsent)
            counts = await session.rows(
                CallCount,
                "calls_of_all_servers",
                tenants=[tenant for tenant, _ in subjects],
                users=[user for _, user in subjects],
                since=since,
            )
            if self._clock() - self._forgot_at > _FORGET_SECONDS:
                self._forgot_at = self._clock()
                await session.run("forget_calls", before=since - _SLOTS)
        self._take_counts(subjects, counts, since)

    def _note_sent(self, unsent: list[tuple[UUID, str, int, int]]) -> None:
        for tenant, user, slot, calls in unsent:
            window = self._windows.get((tenant, user))
            if window is not None:
                window.sent[slot] = window.sent.get(slot, 0) + calls

    def _take_counts(self, subjects: list[Subject], counts: list[CallCount], since: int) -> None:
        for subject in subjects:
            window = self._windows[subject]
            window.others = {}
            window.forget(since)
        for row in counts:
            window = self._windows[row.tenant_id, row.user_id]
            window.others[row.slot] = max(row.calls - window.sent.get(row.slot, 0), 0)
        # Drop users without recent calls. The next exchange is then about the others only.
        for subject in [name for name, window in self._windows.items() if window.is_empty]:
            del self._windows[subject]
