"""The log: appended with the change it tells of, read in order and without gaps."""

import asyncio
import itertools
import random
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.rows import dict_row

from memory_core.kernel.database import Database, Session
from memory_core.kernel.errors import Conflict
from memory_core.kernel.settings import Settings
from memory_core.log import log_reader
from memory_core.log.change import (
    START,
    AggregateType,
    Change,
    ChangeType,
    NewChange,
    Position,
    aggregate_id,
    of_artifact,
)
from memory_core.log.log_writer import append
from memory_core.log.origin import acting
from tests.log_reading import all_changes
from tests.patience import PATIENCE


def revised(uid: str, expected_version: int | None = None) -> NewChange:
    return of_artifact(
        ChangeType.ARTIFACT_REVISED, uid, expected_version=expected_version, revision_id="rev_1"
    )


async def append_alone(database: Database, *changes: NewChange) -> list[Position]:
    async with database.transaction() as session:
        return await append(session, changes)


async def test_a_change_is_read_as_it_was_appended(database: Database) -> None:
    with acting(actor_id="alice", source="artifact_ingest", trace_id="t1", span_id="s1"):
        [position] = await append_alone(database, revised("uid_a"))

    [change] = await all_changes(database)

    assert change.position == position
    assert change.aggregate_id == aggregate_id(AggregateType.ARTIFACT, "uid_a")
    assert change.event_type == "artifact.revised"
    assert change.payload == {"artifact_uid": "uid_a", "revision_id": "rev_1"}
    assert (change.version, change.actor_id, change.trace_id, change.span_id) == (
        *(1, "alice", "t1", "s1"),
    )
    assert change.metadata == {"source": "artifact_ingest"}


async def test_versions_of_an_aggregate_count_up_within_and_between_appends(
    database: Database,
) -> None:
    await append_alone(database, revised("uid_a"), revised("uid_b"), revised("uid_a"))
    await append_alone(database, revised("uid_a"))

    changes = await all_changes(database)

    versions = [(change.payload["artifact_uid"], change.version) for change in changes]
    assert versions == [("uid_a", 1), ("uid_b", 1), ("uid_a", 2), ("uid_a", 3)]


async def test_positions_come_in_the_order_of_the_changes(database: Database) -> None:
    positions = await append_alone(database, *[revised(f"uid_{n}") for n in range(50)])

    assert positions == sorted(positions)
    assert [c.payload["artifact_uid"] for c in await all_changes(database)] == [
        f"uid_{n}" for n in range(50)
    ]


async def test_a_transaction_that_fails_leaves_nothing_in_the_log(database: Database) -> None:
    async def fail_after_appending() -> None:
        async with database.transaction() as session:
            await append(session, [revised("uid_a")])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail_after_appending()

    assert await all_changes(database) == []


async def test_of_two_appends_with_the_same_expected_version_exactly_one_wins(
    database: Database,
) -> None:
    await append_alone(database, revised("uid_a", expected_version=0))

    outcomes = await asyncio.gather(
        *[append_alone(database, revised("uid_a", expected_version=1)) for _ in range(8)],
        return_exceptions=True,
    )

    assert sum(isinstance(outcome, list) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 7
    assert [change.version for change in await all_changes(database)] == [1, 2]


async def test_the_first_version_is_given_once_however_many_create_it(database: Database) -> None:
    outcomes = await asyncio.gather(
        *[append_alone(database, revised("uid_new", expected_version=0)) for _ in range(8)],
        return_exceptions=True,
    )

    assert sum(isinstance(outcome, list) for outcome in outcomes) == 1
    assert [change.version for change in await all_changes(database)] == [1]


async def test_a_wrong_expectation_takes_the_whole_transaction_back(database: Database) -> None:
    with pytest.raises(Conflict):
        await append_alone(database, revised("uid_a"), revised("uid_b", expected_version=7))

    assert await all_changes(database) == []


async def test_changes_cannot_be_altered_or_removed(database: Database, settings: Settings) -> None:
    await append_alone(database, revised("uid_a"))

    with psycopg.connect(settings.dsn, autocommit=True) as connection:
        for statement in (
            "UPDATE log.events SET payload = '{}'",
            "DELETE FROM log.events",
            "TRUNCATE log.events",
        ):
            with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="append-only"):
                connection.execute(statement)

    assert len(await all_changes(database)) == 1


async def test_a_transaction_held_open_while_a_thousand_commit_is_not_passed_over(
    database: Database, settings: Settings
) -> None:
    async with await psycopg.AsyncConnection.connect(settings.dsn) as held:
        # It has its transaction id, and its change, before all others.
        pid = held.pgconn.backend_pid
        await held.execute(
            "INSERT INTO log.events (aggregate_type, aggregate_id, event_type, version, payload) "
            "VALUES ('artifact', %s, 'artifact.created', 1, '{}')",
            [uuid4()],
        )
        for _ in range(10):
            await asyncio.gather(
                *[append_alone(database, revised(f"uid_{n % 20}")) for n in range(100)]
            )
        async with database.session() as session:
            before = await log_reader.read(session, START, 10)
            holder = await log_reader.holder(session)
        await held.commit()
    after = await all_changes(database)

    assert before == []
    assert holder is not None
    assert holder.pid == pid
    assert len(after) == 1001
    assert after[0].event_type == "artifact.created"


@pytest.mark.parametrize("seed", range(6))
async def test_readers_miss_nothing_however_transactions_overlap(
    database: Database, settings: Settings, seed: int
) -> None:
    """Random transactions on real connections, some rolled back; a reader pages meanwhile."""
    chance = random.Random(seed)
    done = asyncio.Event()

    reader = asyncio.create_task(follow(database, chance, done))
    written = await asyncio.gather(
        *[write(settings.dsn, transactions(chance, 12)) for _ in range(6)]
    )
    done.set()
    seen = await reader
    every = sorted(itertools.chain(*written))
    # A transaction of another process may hold the readers back for a moment.
    async with asyncio.timeout(PATIENCE):
        while len(seen) < len(every):
            async with database.session() as session:
                seen += await log_reader.read(session, seen[-1].position if seen else START, 7)

    assert [change.position for change in seen] == every
    versions: dict[UUID, list[int]] = {}
    for change in seen:
        versions.setdefault(change.aggregate_id, []).append(change.version)
    for of_one in versions.values():
        assert of_one == list(range(1, len(of_one) + 1))


# The aggregates it changes, how often it lets others go first after each, whether it commits.
Transaction = tuple[list[str], int, bool]


def transactions(chance: random.Random, number: int) -> list[Transaction]:
    return [
        (
            chance.sample([f"uid_{n}" for n in range(6)], chance.randint(1, 3)),
            chance.randint(0, 20),
            chance.random() < 0.8,
        )
        for _ in range(number)
    ]


async def write(dsn: str, plan: list[Transaction]) -> list[Position]:
    """The positions that were committed."""
    committed: list[Position] = []
    async with await psycopg.AsyncConnection.connect(dsn, row_factory=dict_row) as connection:
        session = Session(connection)
        for uids, turns, keeps in plan:
            positions = []
            # Each appends alone: a transaction gets its id long before its last lock.
            for uid in sorted(uids):
                positions += await append(session, [revised(uid)])
                for _ in range(turns):
                    await asyncio.sleep(0)
            if keeps:
                await connection.commit()
                committed += positions
            else:
                await connection.rollback()
    return committed


async def follow(database: Database, chance: random.Random, done: asyncio.Event) -> list[Change]:
    """Everything that a reader sees, in pages of any size, until writers are done."""
    seen: list[Change] = []
    position = START
    while True:
        finished = done.is_set()
        async with database.session() as session:
            page = await log_reader.read(session, position, chance.randint(1, 7))
        seen.extend(page)
        if page:
            position = page[-1].position
        elif finished:
            return seen
        await asyncio.sleep(0)
