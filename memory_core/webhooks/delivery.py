"""Delivery: claims due messages from the outbox, sends them, and schedules the next attempt.

One process leads, by the same kind of lock as a projection. A message that was sent but not marked
as sent (the process or Postgres ended in between) is sent again, with the same id.
"""

import asyncio
import logging

from memory_core.kernel.database import Database
from memory_core.kernel.errors import InvalidInput, MemoryFault
from memory_core.kernel.timed_wait import is_set_within
from memory_core.webhooks.messages import OutboxMessage, assemble
from memory_core.webhooks.sender import SEND_SECONDS, Answer, Sender, SendFault

log = logging.getLogger(__name__)

_MINUTE, _HOUR = 60.0, 3600.0
# The waits between attempts: about a day in all.
SCHEDULE = (5.0, 5 * _MINUTE, 30 * _MINUTE, 2 * _HOUR, 5 * _HOUR, 6 * _HOUR, 10 * _HOUR)
DAY_SECONDS = 24 * _HOUR
# How many ended messages per subscription are kept for `webhooks deliveries`.
KEPT_DELIVERIES = 100
KEPT_DAYS = 7
_AT_ONCE = 16
_FOR_EACH = 4
# Longer than any attempt, so an expired lease was abandoned.
_LEASE_SECONDS = SEND_SECONDS * 3
_PAUSE_FIRST_SECONDS = 0.5
_PAUSE_LIMIT_SECONDS = 60.0
_LOOK_SECONDS = 5.0
_SETTLE_SECONDS = 5.0
_POLL_SECONDS = 0.02
_PRUNE_SECONDS = _HOUR
_GONE = 410
_TOO_MANY = 429
_AWAY = 503


class Webhooks:
    """The duty of the worker that delivers webhooks; it runs in addition to the projections."""

    name = "webhooks"

    def __init__(self, database: Database, sender: Sender) -> None:
        self._database = database
        self._sender = sender

    def lead(self, leader: str) -> "Delivery":
        return Delivery(self._database, self._sender, leader)

    async def settle(self) -> None:
        """Give due messages a moment to be sent before the process ends."""
        loop = asyncio.get_running_loop()
        until = loop.time() + _SETTLE_SECONDS
        while loop.time() < until:
            async with self._database.session() as session:
                if not await session.value(bool, "messages_at_work"):
                    return
            await asyncio.sleep(_POLL_SECONDS)


class Delivery:
    """The delivery loop. Only the holder of the lock runs it."""

    def __init__(self, database: Database, sender: Sender, leader: str) -> None:
        self._database = database
        self._sender = sender
        self._leader = leader
        self._wake = asyncio.Event()
        self._busy = 0

    def wake(self) -> None:
        self._wake.set()

    async def run(self) -> None:
        """Run until cancelled, or until Postgres is away."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._prune())
                while True:
                    self._wake.clear()
                    claimed = await self._claim()
                    for waiting in claimed:
                        self._busy += 1
                        tasks.create_task(self._deliver(waiting))
                    if not claimed:
                        await self._rest()
        except BaseExceptionGroup as group:
            raise _first(group) from None
        finally:
            await self._sender.close()

    async def _prune(self) -> None:
        while True:
            async with self._database.session() as session:
                await session.run("prune_deliveries", days=KEPT_DAYS)
            await asyncio.sleep(_PRUNE_SECONDS)

    async def _claim(self) -> list[OutboxMessage]:
        if self._busy >= _AT_ONCE:
            return []
        async with self._database.session() as session:
            return await session.rows(
                OutboxMessage,
                "claim_messages",
                leader=self._leader,
                seconds=_LEASE_SECONDS,
                for_each=_FOR_EACH,
                limit=_AT_ONCE - self._busy,
            )

    async def _rest(self) -> None:
        async with self._database.session() as session:
            seconds = await session.maybe(float, "next_message")
        pause = _LOOK_SECONDS if seconds is None else min(max(seconds, 0.02), _LOOK_SECONDS)
        await is_set_within(self._wake, _LOOK_SECONDS if self._busy else pause)

    async def _deliver(self, waiting: OutboxMessage) -> None:
        try:
            async with self._database.session() as session:
                message = await assemble(session, waiting)
            if message is None:
                await self._end(waiting, "dropped", "what it was about has been deleted")
                return
            try:
                answer = await self._sender.send(
                    waiting.url,
                    message.headers(waiting.secret, waiting.previous_secret),
                    message.body,
                )
            except SendFault as fault:
                await self._failed(waiting, str(fault))
            except InvalidInput as fault:
                await self._failed(waiting, fault.message)
            else:
                await self._answered(waiting, answer)
        finally:
            self._busy -= 1
            self._wake.set()

    async def _answered(self, waiting: OutboxMessage, answer: Answer) -> None:
        if answer.is_success:
            await self._end(waiting, "delivered", None)
        elif answer.status == _GONE:
            await self._disable(waiting, "the receiver answered 410: it wants no more messages")
        elif 300 <= answer.status < 400:
            await self._failed(
                waiting, f"the receiver answered {answer.status}; redirects are not followed"
            )
        else:
            asked = answer.retry_after if answer.status in {_TOO_MANY, _AWAY} else None
            await self._failed(waiting, f"the receiver answered {answer.status}", retry_after=asked)

    async def _failed(
        self, waiting: OutboxMessage, error: str, *, retry_after: float | None = None
    ) -> None:
        """Schedule another attempt. A receiver that says when to come again has not failed, so that
        attempt does not count."""
        counts = retry_after is None
        if waiting.tried_for >= DAY_SECONDS or (counts and waiting.attempts > len(SCHEDULE)):
            await self._give_up(waiting, error)
            return
        delay = SCHEDULE[min(waiting.attempts, len(SCHEDULE)) - 1] if counts else 0.0
        failures = min(waiting.failures, 10)
        pause = min(_PAUSE_FIRST_SECONDS * 2**failures, _PAUSE_LIMIT_SECONDS)
        async with self._database.session() as session:
            await session.run(
                "put_message_off",
                id=waiting.id,
                leader=self._leader,
                seconds=max(delay, retry_after or 0.0),
                pause=retry_after if retry_after is not None else pause,
                counts=counts,
                error=error,
            )

    async def _give_up(self, waiting: OutboxMessage, error: str) -> None:
        async with self._database.session() as session:
            is_lost = await session.maybe(
                bool, "receiver_is_lost", id=waiting.subscription_id, since=waiting.made_at
            )
        if is_lost:
            await self._disable(waiting, f"no message could be delivered for a day: {error}")
        else:
            await self._end(waiting, "failed", error)

    async def _end(self, waiting: OutboxMessage, outcome: str, error: str | None) -> None:
        if outcome == "failed":
            log.warning("a message to subscription %s is given up", waiting.subscription_id)
        async with self._database.session() as session:
            await session.run(
                "end_message",
                id=waiting.id,
                leader=self._leader,
                outcome=outcome,
                error=error,
                keep=KEPT_DELIVERIES,
            )

    async def _disable(self, waiting: OutboxMessage, reason: str) -> None:
        log.warning("subscription %s is disabled: %s", waiting.subscription_id, reason)
        async with self._database.session() as session:
            await session.run(
                "disable_subscription",
                id=waiting.subscription_id,
                reason=reason,
                keep=KEPT_DELIVERIES,
            )


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The exception of a group that says most about why it ended."""
    inner = [
        _first(one) if isinstance(one, BaseExceptionGroup) else one for one in group.exceptions
    ]
    return next((one for one in inner if isinstance(one, MemoryFault)), inner[0])
