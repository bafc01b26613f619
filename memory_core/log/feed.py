"""The end of the log in memory, read once for all readers of this process.

A reader has only a position. Near the end it reads from memory, further back from Postgres, where
only a few readers are served at a time. Nothing is buffered for a slow reader.
"""

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

import orjson

from memory_core.kernel import principal
from memory_core.kernel.database import Database
from memory_core.kernel.errors import InvalidInput
from memory_core.kernel.principal import DEFAULT_TENANT
from memory_core.kernel.timed_wait import is_set_within
from memory_core.kernel.times import utc_text
from memory_core.log.change import Change, Position
from memory_core.log.follower import Follower
from memory_core.log.log_reader import end, read

_TAIL_BYTES = 8_000_000
_PAGE = 200
_PAGE_BYTES = 256_000
# The tools need most of the connections to Postgres.
_BEHIND_AT_ONCE = 2
_WHY = "the log is read once for all readers, and each gets only what it may see"


@dataclass(frozen=True, slots=True)
class FeedEntry:
    position: Position
    type: str
    tenant_id: UUID
    audience_id: int  # the audience that may see it
    data: bytes  # the change as JSON, in the form of a webhook's message

    @classmethod
    def of(cls, change: Change) -> "FeedEntry":
        data = {
            "type": change.event_type,
            "timestamp": utc_text(change.timestamp),
            "data": {"change_id": str(change.event_id), **change.payload},
        }
        tenant = change.tenant_id or DEFAULT_TENANT
        seen_by = change.audience_id
        return cls(change.position, change.event_type, tenant, seen_by, orjson.dumps(data))


@dataclass(frozen=True, slots=True)
class Page:
    entries: list[FeedEntry]
    reached: Position  # there is no other change up to here


class Feed:
    def __init__(self, name: str, opened: Callable[[], Awaitable[Database]]) -> None:
        self._opened = opened
        self._follower = Follower(name, opened, self._take)
        self._behind = asyncio.Semaphore(_BEHIND_AT_ONCE)
        self._news = asyncio.Event()
        # The last changes, up to the follower's position.
        self._tail: deque[FeedEntry] = deque()
        self._tail_bytes = 0
        self._dropped = self._follower.begun  # the last change that was dropped from the tail

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """Follow the log for as long as there is a reader."""
        try:
            async with self._follower.used():
                yield
        finally:
            if not self.readers:
                self._tail.clear()
                self._tail_bytes = 0

    @property
    def readers(self) -> int:
        return self._follower.users

    @property
    def _start(self) -> Position:
        """Every change after this position is in the tail."""
        return max(self._dropped, self._follower.begun)

    @property
    def reached(self) -> Position:
        return self._follower.reached

    @property
    def fault(self) -> str | None:
        return self._follower.fault

    async def refuse_unknown(self, after: Position) -> None:
        """Refuse a position that no reader can have received: it belongs to another log, or to this
        one before a dump was restored."""
        database = await self._opened()
        async with database.session() as session:
            last = await end(session)
        if after > last:
            raise InvalidInput(
                f"{after} is no position of this log: nothing has one after {last}. Read what you "
                "need again, and follow from the end (without a position)."
            )

    async def page(self, after: Position, types: Collection[str] | None = None) -> Page:
        """The changes after a position, without waiting for more."""
        if after < self._start:
            return await self._page_behind(after, types)
        at = bisect_right(self._tail, after, key=lambda entry: entry.position)
        entries = _bounded([self._tail[n] for n in range(at, min(at + _PAGE, len(self._tail)))])
        reached = entries[-1].position if entries else max(after, self.reached)
        return Page([one for one in entries if types is None or one.type in types], reached)

    async def visible(self, page: Page) -> list[FeedEntry]:
        """The entries of a page that the current principal may see now."""
        if not page.entries:
            return []
        database = await self._opened()
        async with database.session() as session:
            seen = set(await session.values(int, "visible_audiences"))
        return [entry for entry in page.entries if entry.audience_id in seen]

    async def wait(self, after: Position, seconds: float) -> None:
        """Wait until there may be a change after a position."""
        if self.reached <= after:
            await is_set_within(self._news, seconds)

    async def _page_behind(self, after: Position, types: Collection[str] | None) -> Page:
        start = self._start
        async with self._behind:
            database = await self._opened()
            with principal.system(_WHY):
                async with database.session() as session:
                    changes = await read(session, after, _PAGE, types)
        entries = _bounded([FeedEntry.of(change) for change in changes])
        # The page reaches at least to where the tail began.
        return Page(entries, entries[-1].position if entries else start)

    async def _take(self, changes: Sequence[Change]) -> None:
        for change in changes:
            entry = FeedEntry.of(change)
            self._tail.append(entry)
            self._tail_bytes += len(entry.data)
        while self._tail_bytes > _TAIL_BYTES:
            oldest = self._tail.popleft()
            self._tail_bytes -= len(oldest.data)
            self._dropped = oldest.position
        self._follower.reached = changes[-1].position
        news, self._news = self._news, asyncio.Event()
        news.set()


def _bounded(entries: list[FeedEntry]) -> list[FeedEntry]:
    """The first entry, and as many more as fit into a page."""
    room = _PAGE_BYTES
    for count, entry in enumerate(entries):
        room -= len(entry.data)
        if room < 0:
            return entries[: max(count, 1)]
    return entries
