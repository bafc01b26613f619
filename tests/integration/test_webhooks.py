"""Webhooks: a change becomes signed messages, delivered at least once to each subscriber."""

import asyncio
import contextlib
import itertools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

from memory_core.kernel.database import Database
from memory_core.kernel.errors import InvalidInput
from memory_core.log.change import ChangeType, NewChange, of_artifact, of_conversation, of_memory
from memory_core.log.lag import Lag, read_lags
from memory_core.log.log_writer import append
from memory_core.log.worker import Worker
from memory_core.runtime import Runtime
from memory_core.webhooks import subscriptions
from memory_core.webhooks.delivery import KEPT_DELIVERIES, SCHEDULE, Webhooks
from memory_core.webhooks.sender import Sender
from memory_core.webhooks.subscriptions import Subscription
from tests.patience import PATIENCE
from tests.pipeline_client import Pipeline
from tests.webhook_outbox import ended, make_due, put_off, waiting
from tests.webhook_receiver import Answer, Received, Receiver

STORED = ["memory.stored"]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@asynccontextmanager
async def delivering(database: Database, **options: Any) -> AsyncIterator[None]:
    sender = Sender(**{"allow_private": True, **options})
    task = asyncio.create_task(Worker(database, [], [Webhooks(database, sender)]).run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def subscribe(
    database: Database, url: str, types: list[str] = STORED, **options: Any
) -> Subscription:
    async with database.transaction() as session:
        return await subscriptions.add(session, url, types, allow_private=True, **options)


async def change(database: Database, *changes: NewChange) -> None:
    async with database.transaction() as session:
        await append(session, changes)


def stored(name: str) -> NewChange:
    return of_memory(ChangeType.MEMORY_STORED, name)


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            met = condition()
            if isinstance(met, Awaitable):
                met = await met
            if met:
                return
            await asyncio.sleep(0.01)


class TestDelivery:
    async def test_a_change_is_sent_signed_so_that_the_published_verifier_accepts_it(
        self, database: Database, receiver: Receiver, sql: psycopg.Connection
    ) -> None:
        to = await subscribe(database, receiver.url)
        async with delivering(database):
            await change(database, stored("mem_1"))
            await until(lambda: ended(sql))

        [got] = receiver.received
        body = got.verified(to.secret)
        assert (body["type"], body["data"]["memory_id"]) == ("memory.stored", "mem_1")
        assert got.headers["content-type"] == "application/json"
        assert waiting(sql) == 0
        assert ended(sql) == [("delivered", 1, None)]

    async def test_only_subscribed_types_get_into_the_outbox(
        self, database: Database, receiver: Receiver, sql: psycopg.Connection
    ) -> None:
        await change(database, stored("mem_before"))
        await subscribe(database, receiver.url)
        await change(database, stored("mem_1"), of_artifact(ChangeType.ARTIFACT_CREATED, "uid_1"))

        rows = sql.execute("SELECT event_type, event_data -> 'payload' FROM log.event_outbox")
        assert rows.fetchall() == [("memory.stored", {"memory_id": "mem_1"})]

    async def test_a_change_that_is_not_committed_has_no_message(
        self, database: Database, receiver: Receiver, sql: psycopg.Connection
    ) -> None:
        await subscribe(database, receiver.url)
        with contextlib.suppress(RuntimeError):
            async with database.transaction() as session:
                await append(session, [stored("mem_1")])
                raise RuntimeError("the transaction ends here")

        assert waiting(sql) == 0

    async def test_each_subscriber_gets_its_own_message(
        self, database: Database, receiver: Receiver
    ) -> None:
        first = await subscribe(database, receiver.url + "/1")
        second = await subscribe(database, receiver.url + "/2")
        async with delivering(database):
            await change(database, stored("mem_1"))
            await until(lambda: len(receiver.received) == 2)

        by_path = {got.path: got for got in receiver.received}
        assert by_path["/hook/1"].verified(first.secret)
        assert by_path["/hook/2"].verified(second.secret)
        with pytest.raises(WebhookVerificationError):
            by_path["/hook/1"].verified(second.secret)
        assert len(receiver.ids) == 2

    async def test_for_a_day_both_secrets_sign_after_a_rotation(
        self, database: Database, receiver: Receiver, sql: psycopg.Connection
    ) -> None:
        old = await subscribe(database, receiver.url)
        async with database.transaction() as session:
            new = await subscriptions.rotate(session, old)
        async with delivering(database):
            await change(database, stored("mem_1"))
            await until(lambda: len(receiver.received) == 1)
            sql.execute("UPDATE log.webhook_subscriptions SET previous_until = now()")
            await change(database, stored("mem_2"))
            await until(lambda: len(receiver.received) == 2)

        first, second = receiver.received
        assert first.verified(old.secret) == first.verified(new.secret)
        assert second.verified(new.secret)
        with pytest.raises(WebhookVerificationError):
            second.verified(old.secret)


class TestWhatIsDeletedMeanwhile:
    @pytest.mark.parametrize(
        ("made", "deleted"),
        [
            (stored("mem_1"), of_memory(ChangeType.MEMORY_DELETED, "mem_1")),
            (
                of_artifact(ChangeType.ARTIFACT_CREATED, "uid_1", revision_id="rev_1"),
                of_artifact(ChangeType.ARTIFACT_DELETED, "uid_1"),
            ),
            (
                of_conversation(ChangeType.HISTORY_APPENDED, "talk", turn_index=0),
                of_conversation(ChangeType.HISTORY_DELETED, "talk"),
            ),
        ],
        ids=["memory", "document", "conversation"],
    )
    async def test_is_not_sent_but_its_deletion_is(
        self,
        database: Database,
        receiver: Receiver,
        sql: psycopg.Connection,
        made: NewChange,
        deleted: NewChange,
    ) -> None:
        await subscribe(database, receiver.url, [made.event_type, deleted.event_type])
        await change(database, made)
        await change(database, deleted)
        async with delivering(database):
            await until(lambda: len(ended(sql)) == 2)

        assert {outcome for outcome, _, _ in ended(sql)} == {"dropped", "delivered"}
        [got] = receiver.received
        assert deleted.event_type.value in got.body.decode()


class TestReceiversThatFail:
    @pytest.mark.parametrize(
        ("answer", "said"),
        [
            (Answer(status=500), "answered 500"),
            (Answer(status=404), "answered 404"),
            (Answer(status=302, headers=(("location", "http://127.0.0.1:1/"),)), "redirects"),
            (Answer(drop=True), "does not speak HTTP"),
            (Answer(hang=True), "did not answer within"),
        ],
        ids=["500", "404", "redirect", "drop", "hang"],
    )
    async def test_a_failed_message_comes_again_with_the_same_id(
        self,
        database: Database,
        receiver: Receiver,
        sql: psycopg.Connection,
        answer: Answer,
        said: str,
    ) -> None:
        await subscribe(database, receiver.url)
        receiver.answers.append(answer)
        # Long enough for a busy machine to answer in.
        async with delivering(database, seconds=3):
            await change(database, stored("mem_1"))
            await until(lambda: put_off(sql)[0] == 1)
            _, seconds, error = put_off(sql)
            assert said in error
            assert 0 < seconds <= SCHEDULE[0]
            make_due(sql)
            await until(lambda: ended(sql))

        assert list(receiver.ids.values()) == [2]
        assert ended(sql) == [("delivered", 2, None)]

    async def test_the_pauses_grow_to_a_day_and_then_the_subscription_is_disabled(
        self, database: Database, receiver: Receiver, sql: psycopg.Connection
    ) -> None:
        to = await subscribe(database, receiver.url)
        receiver.decide = lambda _: Answer(status=500)
        async with delivering(database):
            await change(database, stored("mem_1"))
            for attempt, pause in enumerate(SCHEDULE, 1):
                await until(lambda attempt=attempt: put_off(sql)[0] == attempt)
                assert pause - PATIENCE < put_off(sql)[1] <= pause
                make_due(sql)
            await until(lambda: ended(sql))

        assert 23 * 3600 < sum(SCHEDULE) <= 24 * 3600
        assert len(receiver.received) == len(SCHEDULE) + 1
        [(outcome, attempts, error)] = ended(sql)
        assert (outcome, attempts) == ("failed", len(SCHEDULE) + 1)
        assert error is not None
        assert "for a day" in error
        async with database.session() as session:
            assert (await subscriptions.find(session, str(to.id))).status == "disabled"
        await change(database, stored("mem_2"))
        assert waiting(sql) == 0

    async def test_a_message_is_given_up_alone_when_others_get_through(
        self, database: Database, receiver: Receiver, sql: psycopg.Connection
    ) -> None:
        to = await subscribe(database, receiver.url)
        receiver.decide = lambda got: Answer(status=500 if b"mem_bad" in got.body else 200)
        async with delivering(database):
            await change(database, stored("mem_bad"))
            await until(lambda: put_off(sql)[0] == 1)
            await change(database, stored("mem_good"))
            make_due(sql)
            await until(lambda: ended(sql))
            sql.execute("UPDATE log.event_outbox SET first_attempt_at = now() - interval '1 day'")
            make_due(sql)
            await until(lambda: len(ended(sql)) == 2)

        assert [outcome for outcome, _, _ in ended(sql)] == ["delivered", "failed"]
        async with database.session() as session:
            assert (await subscriptions.find(session, str(to.id))).status == "active"

    async def test_410_ends_the_subscription(
        self, database: Database, receiver: Receiver, sql: psycopg.Connection
    ) -> None:
        to = await subscribe(database, receiver.url)
        receiver.decide = lambda _: Answer(status=410)
        async with delivering(database):
            await change(database, stored("mem_1"))
            await until(lambda: ended(sql))
        await change(database, stored("mem_2"))

        assert waiting(sql) == 0
        async with database.session() as session:
            subscription = await subscriptions.find(session, str(to.id)[:8])
        assert subscription.status == "disabled"
        assert subscription.disabled_reason is not None
        assert "410" in subscription.disabled_reason

    @pytest.mark.parametrize("status", [429, 503])
    async def test_retry_after_is_respected_for_all_messages_and_counts_as_no_attempt(
        self, database: Database, receiver: Receiver, sql: psycopg.Connection, status: int
    ) -> None:
        await subscribe(database, receiver.url)
        receiver.answers.append(Answer(status=status, headers=(("retry-after", "7200"),)))
        async with delivering(database):
            await change(database, stored("mem_1"))
            await until(lambda: put_off(sql)[2])
            attempts, seconds, _ = put_off(sql)
            assert attempts == 0
            assert 7000 < seconds <= 7200
            await change(database, stored("mem_2"))
            [not_before] = sql.execute(
                "SELECT extract(epoch FROM not_before - now())::float8 "
                "FROM log.webhook_subscriptions"
            ).fetchone() or [0]
            assert 7000 < not_before <= 7200
            make_due(sql)
            await until(lambda: len(ended(sql)) == 2)

        assert sorted(receiver.ids.values()) == [1, 2]

    async def test_a_receiver_that_hangs_holds_up_no_other(
        self, database: Database, receiver: Receiver, sql: psycopg.Connection
    ) -> None:
        with Receiver() as hanging:
            hanging.decide = lambda _: Answer(hang=True)
            await subscribe(database, hanging.url)
            await subscribe(database, receiver.url)
            async with delivering(database):
                await change(database, *(stored(f"mem_{n}") for n in range(30)))
                await until(lambda: len(receiver.ids) == 30)

    async def test_an_endless_answer_is_not_read(
        self, database: Database, receiver: Receiver, sql: psycopg.Connection
    ) -> None:
        await subscribe(database, receiver.url)
        receiver.answers.append(Answer(body=b"x" * 5_000_000))
        async with delivering(database):
            await change(database, stored("mem_1"))
            await until(lambda: ended(sql))

        assert ended(sql) == [("delivered", 1, None)]

    async def test_what_is_remembered_of_deliveries_is_bounded(
        self, database: Database, receiver: Receiver, sql: psycopg.Connection
    ) -> None:
        await subscribe(database, receiver.url)
        async with delivering(database):
            names = [f"mem_{n}" for n in range(KEPT_DELIVERIES + 50)]
            await change(database, *map(stored, names))
            await until(lambda: waiting(sql) == 0)

        assert len(receiver.ids) == len(names)
        # Four at once may each leave one more, until the next one ends.
        assert len(ended(sql)) <= KEPT_DELIVERIES + 4


class TestSecrets:
    async def test_a_secret_is_in_no_outbox_row_no_history_no_log_line_and_no_repr(
        self,
        database: Database,
        receiver: Receiver,
        sql: psycopg.Connection,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        caplog.set_level(logging.DEBUG)
        to = await subscribe(database, receiver.url)
        receiver.answers += [Answer(status=500, body=to.secret.encode()), Answer(status=410)]
        async with delivering(database):
            await change(database, stored("mem_1"))
            await until(lambda: put_off(sql)[0] == 1)
            outbox = sql.execute("SELECT o::text FROM log.event_outbox o").fetchall()
            make_due(sql)
            await until(lambda: ended(sql))

        history = sql.execute("SELECT d::text FROM log.webhook_deliveries d").fetchall()
        log = sql.execute("SELECT e::text FROM log.events e").fetchall()
        key = to.secret.removeprefix("whsec_")
        for text in (outbox, history, log, caplog.text, repr(to), to.as_json(), receiver.received):
            assert key not in str(text)


class TestSubscriptions:
    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"category": "Commitment"}, "events.replaced alone"),
            ({"actor": "Alice"}, "events.replaced alone"),
            ({"category": "Promise"}, "is no category"),
            ({"actor": "  "}, "An actor is a name"),
        ],
    )
    async def test_what_makes_no_sense_is_refused(
        self, database: Database, options: dict[str, str], said: str
    ) -> None:
        with pytest.raises(InvalidInput, match=said):
            await subscribe(database, "https://hooks.example/", **options)

    def test_a_secret_has_the_form_that_libraries_expect(self) -> None:
        assert Webhook("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")


async def test_nothing_is_lost_over_many_changes_while_workers_come_and_go(
    database: Database, receiver: Receiver, sql: psycopg.Connection
) -> None:
    """Each worker is stopped in the middle of what it does, and receivers fail now and then."""
    await subscribe(database, receiver.url)
    failing: set[str] = set()

    def decide(got: Received) -> Answer:
        first = got.id not in failing
        failing.add(got.id)
        return Answer(drop=True) if first and hash(got.id) % 7 == 0 else Answer()

    receiver.decide = decide
    names = {f"mem_{n}" for n in range(300)}
    left = sorted(names)
    while left or waiting(sql):
        before = len(receiver.received)
        async with delivering(database):
            for name in left[:60]:
                await change(database, stored(name))
            left = left[60:]

            looks = itertools.count()

            def far_enough(before: int = before, looks: Iterator[int] = looks) -> bool:
                # What failed in a row is put off by minutes.
                if next(looks) % 50 == 0:
                    make_due(sql)
                return len(receiver.received) >= before + 40 or not waiting(sql)

            await until(far_enough)

    # A worker that is stopped while it sends leaves half a message behind.
    whole = [got for got in receiver.received if got.body.endswith(b"}")]
    bodies = {got.id: got.body for got in whole}
    assert len(bodies) == len(names)
    assert {
        name for name in names if any(f'"{name}"'.encode() in body for body in bodies.values())
    } == names
    assert all(got.body == bodies[got.id] for got in whole), "again means the same"


class TestTellMeWhenAlicePromisesSomething:
    TEXT = "Alice Chen will send the draft by Friday. Bob Stone will fix the login by Monday."

    async def test_each_new_event_that_fits_is_one_message_with_its_quote(
        self, runtime: Runtime, receiver: Receiver, sql: psycopg.Connection
    ) -> None:
        database, pipeline = runtime.database, Pipeline(runtime)
        to = await subscribe(
            database,
            receiver.url,
            ["events.replaced"],
            category="Commitment",
            actor="Alice",
            include_content=True,
        )
        await pipeline.remember(self.TEXT)
        await pipeline.extract()
        assert waiting(sql) == 1
        async with delivering(database):
            await until(lambda: ended(sql))

        [got] = receiver.received
        data = got.verified(to.secret)["data"]
        assert data["category"] == "Commitment"
        [proof] = data["evidence"]
        assert self.TEXT[proof["start_char"] : proof["end_char"]] == proof["quote"]
        assert "draft" in data["narrative"]


class TestLag:
    async def lag(self, database: Database) -> Lag:
        [lag] = [lag for lag in await read_lags(database) if lag.point.name == "webhooks"]
        return lag

    async def test_counts_what_is_due_and_says_why_it_waits(
        self, database: Database, receiver: Receiver, sql: psycopg.Connection
    ) -> None:
        await subscribe(database, receiver.url)
        await change(database, stored("mem_1"), stored("mem_2"))
        waits = await self.lag(database)
        assert (waits.changes, waits.is_led) == (2, False)
        assert waits.reason is not None
        assert "no worker runs" in waits.reason

        receiver.decide = lambda _: Answer(status=500)
        async with delivering(database):
            await until(lambda: put_off(sql)[0] == 1)
            failing = await self.lag(database)
        assert failing.is_led
        assert failing.note is not None
        assert "wait for receivers that failed" in failing.note
