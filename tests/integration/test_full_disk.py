"""A full disk: one line, no process left, nothing damaged, and work goes on when there is room."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from memory_core.kernel import file_locks as locks
from memory_core.kernel.errors import StackFault
from memory_core.kernel.settings import Settings
from stack import stack_state
from stack.connection import connected
from stack.layout import Layout
from stack.orphans import MARKER
from tests.patience import PATIENCE

MEGABYTE = 1_000_000


class SmallDisk:
    """A disk of 300 MB with a memory on it."""

    def __init__(self, folder: Path) -> None:
        self._filler = folder / "filler"
        self.layout = Layout(folder / "data")
        self.settings = Settings(_env_file=None, data_dir=self.layout.root, embedder="local")

    def fill(self, *, leaving: int = 0) -> None:
        """A server that is just ending may take some of the room meanwhile: then once more."""
        with self._filler.open("ab") as filler:
            for _ in range(100):
                size = shutil.disk_usage(self._filler.parent).free - leaving
                try:
                    os.posix_fallocate(filler.fileno(), 0, size)
                    return
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
        raise AssertionError("the disk could not be filled")

    def clear(self) -> None:
        self._filler.unlink(missing_ok=True)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "mcp_server.cli", *words],
            env={
                **os.environ,
                "DATA_DIR": str(self.layout.root),
                "MCP_PORT": "0",
                "DAGSTER_PORT": "0",
            },
            capture_output=True,
            text=True,
            check=False,
        )

    def processes(self) -> list[int]:
        mounts = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARKER) == str(self.layout.root):
                    mounts.append(process.pid)
            except psutil.Error:
                continue
        return mounts


@pytest.fixture(scope="module")
def small_disk() -> Iterator[SmallDisk]:
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    with tempfile.TemporaryDirectory(prefix="memory-disk-") as folder:
        mount = ["mount", "-t", "tmpfs", "-o", "size=300m", "tmpfs", folder]
        mounted = subprocess.run(mount, capture_output=True, text=True, check=False)
        if mounted.returncode != 0:
            pytest.skip(f"no disk can be mounted here: {mounted.stderr.strip()}")
        try:
            Path(folder).chmod(0o755)
            disk = SmallDisk(Path(folder))
            with connected(disk.settings) as resolved, psycopg.connect(resolved.dsn) as connection:
                connection.execute("CREATE TABLE note AS SELECT 'kept' AS text")
            yield disk
        finally:
            # Lazily: the supervisor's last moments may still be spent in that folder.
            subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture
def disk(small_disk: SmallDisk) -> Iterator[SmallDisk]:
    yield small_disk
    small_disk.clear()
    assert not locks.is_held(small_disk.layout.supervisor_lock)
    assert small_disk.processes() == []
    assert remembered(small_disk) == "kept"


def remembered(disk: SmallDisk) -> str:
    with connected(disk.settings) as resolved, psycopg.connect(resolved.dsn) as connection:
        row = connection.execute("SELECT text FROM note").fetchone()
        assert row is not None
        return str(row[0])


@pytest.mark.parametrize(("command", "left"), [("up", 0), ("up", 30 * MEGABYTE), ("jobs", 0)])
def test_a_command_says_so_in_one_line(disk: SmallDisk, command: str, left: int) -> None:
    disk.fill(leaving=left)
    done = disk.run(command)
    assert done.returncode == 1
    [line] = (done.stdout + done.stderr).splitlines()
    assert line.startswith("The disk is full: ")
    assert "Free some space" in line


def test_doctor_names_it_and_starts_nothing(disk: SmallDisk) -> None:
    disk.fill()
    done = disk.run("doctor")
    assert done.returncode == 1
    assert "✗ Disk: 0.0 GB free" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_a_server_that_dies_on_a_full_disk_ends_the_stack(disk: SmallDisk) -> None:
    with connected(disk.settings):
        running = stack_state.running(disk.layout)
        assert running is not None
        supervisor = psutil.Process(running.pid)
        postmaster = int((disk.layout.postgres / "postmaster.pid").read_text().splitlines()[0])
        disk.fill()
        os.kill(postmaster, signal.SIGKILL)
        supervisor.wait(timeout=PATIENCE)
        with pytest.raises(StackFault, match="The disk is full"), connected(disk.settings):
            pass
    assert disk.processes() == []
