"""Page checksums: a new memory has them, an older one gets them from `doctor --repair`."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from memory_core.kernel.errors import StackFault
from memory_core.kernel.file_locks import holding
from memory_core.kernel.settings import Settings
from stack import stack_state
from stack.checksums import enable_checksums, has_checksums
from stack.connection import connected
from stack.layout import Layout
from stack.orphans import MARKER
from stack.postgres import EmbeddedPostgres
from tests.conftest import offline_settings
from tests.patience import PATIENCE

CONTENT = "SELECT count(*), sum(length(text)) FROM note"


@pytest.fixture(scope="module")
def memory() -> Iterator[Settings]:
    """Made by this version, with a table in it."""
    with tempfile.TemporaryDirectory(prefix="memory-checksums-") as folder:
        settings = offline_settings(Path(folder))
        with connected(settings) as resolved, psycopg.connect(resolved.dsn) as connection:
            connection.execute(
                "CREATE TABLE note AS SELECT repeat('x', 500) AS text FROM generate_series(1, 5000)"
            )
        yield settings


@pytest.fixture
def layout(memory: Settings) -> Layout:
    return Layout(memory.data_dir)


@pytest.fixture
def older(memory: Settings, layout: Layout) -> Settings:
    """As a version without checksums made it."""
    # Its Postgres ends a moment after its last user.
    with holding(layout.supervisor_lock, timeout=PATIENCE) as ended:
        assert ended
        if has_checksums(layout):
            server = EmbeddedPostgres(layout.postgres)
            done = server.run_tool("pg_checksums", "--disable", "-D", str(layout.postgres))
            assert done.returncode == 0, done.stderr
    return memory


def doctor(settings: Settings, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mcp_server.cli", "doctor", *options],
        env={**os.environ, **settings.environment()},
        capture_output=True,
        text=True,
        check=False,
    )


def marked(layout: Layout) -> list[psutil.Process]:
    """The servers of this memory."""
    sums = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARKER) == str(layout.root):
                sums.append(process)
        except psutil.Error:
            continue
    return sums


def content(settings: Settings) -> tuple[object, ...]:
    with connected(settings) as resolved, psycopg.connect(resolved.dsn) as connection:
        row = connection.execute(CONTENT).fetchone()
        assert row is not None
        return row


def test_a_new_memory_has_them(memory: Settings, layout: Layout) -> None:
    assert has_checksums(layout)


def test_a_folder_without_a_memory_has_nothing_to_say(tmp_path: Path) -> None:
    assert has_checksums(Layout(tmp_path)) is None


def test_doctor_says_that_an_older_one_has_none_and_adds_them(
    older: Settings, layout: Layout
) -> None:
    report = doctor(older)
    assert "✗ Postgres keeps no checksums" in report.stdout, report.stdout + report.stderr
    assert "doctor --repair" in report.stdout
    assert has_checksums(layout) is False

    repaired = doctor(older, "--repair")
    assert "✓ Postgres keeps a checksum of every page: added now." in repaired.stdout
    assert has_checksums(layout)
    assert content(older) == (5000, 2_500_000)


def test_while_a_stack_runs_nothing_is_changed(older: Settings, layout: Layout) -> None:
    with connected(older), pytest.raises(StackFault, match="stop the stack"):
        enable_checksums(layout)
    assert has_checksums(layout) is False


def test_a_server_that_was_killed_is_left_alone_until_it_has_recovered(
    older: Settings, layout: Layout
) -> None:
    with connected(older):
        running = stack_state.running(layout)
        assert running is not None
        os.kill(running.pid, signal.SIGKILL)
        for process in marked(layout):
            process.kill()
        psutil.wait_procs(marked(layout), timeout=PATIENCE)
    with pytest.raises(StackFault, match="Nothing that is stored has changed"):
        enable_checksums(layout)
    assert content(older) == (5000, 2_500_000)  # recovers, and stops in order
    enable_checksums(layout)
    assert has_checksums(layout)
