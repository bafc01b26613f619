"""Migrations: in order, once each, whole or not at all, by any process, however often."""

import hashlib
import multiprocessing
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import count
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from memory_core.kernel import migrations
from memory_core.kernel.errors import ConfigurationFault, PostgresUnavailable
from memory_core.kernel.migrations import Migration
from memory_core.kernel.settings import Settings
from tests.patience import PATIENCE

AT_ONCE = 8
SHIPPED = [migration.name for migration in migrations.shipped()]
_numbers = count(1)


@pytest.fixture
def dsn(services: Settings) -> Iterator[str]:
    """An empty database of its own."""
    name = f"migrations_{next(_numbers)}"
    with psycopg.connect(services.dsn, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}".encode())
        yield urlunsplit(urlsplit(services.dsn)._replace(path=f"/{name}"))
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def ask(dsn: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn) as connection:
        return connection.execute(query.encode()).fetchall()


def recorded(dsn: str) -> list[str]:
    return [name for (name,) in ask(dsn, "SELECT name FROM schema_migration ORDER BY number")]


def tables(dsn: str) -> set[str]:
    return {
        name for (name,) in ask(dsn, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    }


_SLEEPERS = (
    "SELECT pid FROM pg_stat_activity "
    "WHERE wait_event = 'PgSleep' AND datname = current_database() AND pid <> pg_backend_pid()"
)
FIRST = Migration(1, "001_first.sql", "CREATE TABLE first (a int);")
SECOND = Migration(2, "002_second.sql", "CREATE TABLE second AS SELECT a FROM first;")


class TestShippedFiles:
    def test_they_are_numbered_from_one_without_a_gap(self) -> None:
        numbers = [migration.number for migration in migrations.shipped()]
        assert numbers == list(range(1, len(numbers) + 1))

    def test_a_gap_is_refused(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
        (tmp_path / "migrations").mkdir()
        for name in ("001_a.sql", "003_c.sql"):
            (tmp_path / "migrations" / name).write_text("SELECT 1;")
        monkeypatch.setattr(migrations.resources, "files", lambda _: tmp_path)
        with pytest.raises(ConfigurationFault, match=r"1, 2, 3 …; found \[1, 3\]"):
            migrations.shipped()

    def test_each_says_at_its_top_what_it_is_for(self) -> None:
        assert [m.name for m in migrations.shipped() if not m.statements.startswith("-- ")] == []


class TestOnAnEmptyDatabase:
    def test_all_are_pending(self, dsn: str) -> None:
        assert migrations.pending(dsn) == SHIPPED

    def test_asking_what_is_pending_changes_nothing(self, dsn: str) -> None:
        migrations.pending(dsn)
        assert tables(dsn) == set()

    def test_all_are_applied_in_order(self, dsn: str) -> None:
        assert migrations.apply(dsn) == SHIPPED
        assert recorded(dsn) == SHIPPED
        assert migrations.pending(dsn) == []

    def test_later_ones_may_build_on_earlier_ones_however_they_are_listed(self, dsn: str) -> None:
        assert migrations.apply(dsn, [FIRST, SECOND]) == [FIRST.name, SECOND.name]
        assert {"first", "second"} <= tables(dsn)

    def test_each_is_recorded_with_its_checksum(self, dsn: str) -> None:
        migrations.apply(dsn, [FIRST])
        assert ask(dsn, "SELECT number, name, checksum FROM schema_migration") == [
            (1, FIRST.name, hashlib.sha256(FIRST.statements.encode()).hexdigest())
        ]


class TestOnAMigratedDatabase:
    def test_a_second_time_does_nothing(self, dsn: str) -> None:
        migrations.apply(dsn)
        before = ask(dsn, "SELECT * FROM schema_migration ORDER BY number")
        assert migrations.apply(dsn) == []
        assert ask(dsn, "SELECT * FROM schema_migration ORDER BY number") == before

    def test_only_new_ones_are_applied(self, dsn: str) -> None:
        migrations.apply(dsn, [FIRST])
        assert migrations.apply(dsn, [FIRST, SECOND]) == [SECOND.name]

    def test_rows_survive(self, dsn: str) -> None:
        migrations.apply(dsn, [FIRST])
        with psycopg.connect(dsn) as connection:
            connection.execute("INSERT INTO first VALUES (7)")
        migrations.apply(dsn, [FIRST, SECOND])
        assert ask(dsn, "SELECT a FROM second") == [(7,)]

    @pytest.mark.parametrize("edit", ["CREATE TABLE first (a int, b int);", FIRST.statements + " "])
    def test_an_edited_file_is_refused_with_what_to_do(self, dsn: str, edit: str) -> None:
        migrations.apply(dsn, [FIRST])
        with pytest.raises(ConfigurationFault) as caught:
            migrations.apply(dsn, [Migration(1, FIRST.name, edit), SECOND])
        assert f"sql/migrations/{FIRST.name} was edited" in caught.value.message
        assert "new, higher-numbered file" in caught.value.message
        assert "second" not in tables(dsn)

    def test_a_database_newer_than_the_program_is_refused(self, dsn: str) -> None:
        migrations.apply(dsn, [FIRST, SECOND])
        with pytest.raises(ConfigurationFault) as caught:
            migrations.apply(dsn, [FIRST])
        assert SECOND.name in caught.value.message
        assert "newer version" in caught.value.message

    def test_both_are_noticed_without_applying_too(self, dsn: str) -> None:
        future = Migration(len(SHIPPED) + 1, "999_future.sql", "SELECT 1;")
        migrations.apply(dsn, [*migrations.shipped(), future])
        with pytest.raises(ConfigurationFault, match="999_future"):
            migrations.pending(dsn)


class TestFailure:
    BROKEN = Migration(
        2, "002_broken.sql", "CREATE TABLE half (a int); INSERT INTO half VALUES (1); SELECT nope;"
    )

    def test_a_failing_file_is_rolled_back_whole_and_earlier_ones_stay(self, dsn: str) -> None:
        with pytest.raises(ConfigurationFault) as caught:
            migrations.apply(dsn, [FIRST, self.BROKEN])
        assert "002_broken.sql failed" in caught.value.message
        assert 'column "nope" does not exist' in caught.value.message
        assert recorded(dsn) == [FIRST.name]
        assert "half" not in tables(dsn)

    def test_nothing_after_it_is_applied(self, dsn: str) -> None:
        third = Migration(3, "003_third.sql", "CREATE TABLE third (a int);")
        with pytest.raises(ConfigurationFault):
            migrations.apply(dsn, [FIRST, self.BROKEN, third])
        assert "third" not in tables(dsn)

    def test_corrected_it_goes_on_from_there(self, dsn: str) -> None:
        with pytest.raises(ConfigurationFault):
            migrations.apply(dsn, [FIRST, self.BROKEN])
        assert migrations.apply(dsn, [FIRST, SECOND]) == [SECOND.name]

    def test_it_does_not_keep_the_lock(self, dsn: str) -> None:
        with pytest.raises(ConfigurationFault):
            migrations.apply(dsn, [self.BROKEN])
        held = ask(
            dsn,
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = "
            "(SELECT oid FROM pg_database WHERE datname = current_database())",
        )
        assert held == [(0,)]

    def test_a_server_that_is_away_is_our_own_fault_without_the_password(self) -> None:
        with pytest.raises(PostgresUnavailable) as caught:
            migrations.apply("postgresql://u:s3cr3t@127.0.0.1:1/db")
        assert "EVENTS_DB_DSN" in caught.value.message
        assert "s3cr3t" not in str(caught.value)


class TestManyAtOnce:
    @pytest.mark.parametrize(
        "pool",
        [
            lambda: ThreadPoolExecutor(AT_ONCE),
            lambda: ProcessPoolExecutor(AT_ONCE, multiprocessing.get_context("spawn")),
        ],
        ids=["threads", "processes"],
    )
    def test_each_file_is_applied_exactly_once(
        self, dsn: str, pool: Callable[[], ThreadPoolExecutor | ProcessPoolExecutor]
    ) -> None:
        with pool() as workers:
            results = list(workers.map(migrations.apply, [dsn] * AT_ONCE))
        assert sorted(name for applied in results for name in applied) == SHIPPED
        assert recorded(dsn) == SHIPPED

    def test_one_killed_half_way_leaves_the_rest_to_the_next(self, dsn: str) -> None:
        code = f"""
import os
from memory_core.kernel import migrations
from memory_core.kernel.migrations import Migration
first = Migration(1, {FIRST.name!r}, {FIRST.statements!r})
slow = Migration(2, {SECOND.name!r}, "CREATE TABLE half (a int); SELECT pg_sleep(600);")
migrations.apply({dsn!r}, [first, slow])
"""
        victim = subprocess.Popen([sys.executable, "-c", code])
        try:
            _wait_for_sleeper(dsn)
        finally:
            victim.kill()
            victim.wait()
        _end_sleepers(dsn)  # as the server itself does once it notices that its client is gone
        assert migrations.apply(dsn, [FIRST, SECOND]) == [SECOND.name]
        assert "half" not in tables(dsn)


def test_the_command_says_what_it_did(dsn: str, services: Settings, tmp_path: Any) -> None:
    command = [sys.executable, "-m", "mcp_server.cli", "migrate"]
    environment = {
        "PATH": "/usr/bin:/bin",
        "DATA_DIR": str(tmp_path / "data"),
        "EVENTS_DB_DSN": dsn,
        "CHROMA_HOST": "127.0.0.1",
        "CHROMA_PORT": str(services.chroma_port),
    }
    first, second = (
        subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
        for _ in range(2)
    )
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert [name for name in SHIPPED if name not in first.stdout] == []
    assert second.stdout.strip() == "The schema is up to date."


def _wait_for_sleeper(dsn: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not ask(dsn, _SLEEPERS):
        assert time.monotonic() < deadline, "the slow migration never began"
        time.sleep(0.05)


def _end_sleepers(dsn: str) -> None:
    ask(dsn, _SLEEPERS.replace("SELECT pid", "SELECT pg_terminate_backend(pid, 10000)"))
