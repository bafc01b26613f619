"""The first hour: no variable set, an empty home, an empty folder."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from memory_core.kernel import file_locks as locks
from stack.layout import Layout

COMMAND = str(Path(sys.executable).with_name("mcp-memory"))


class Newcomer:
    """Runs commands as written, from an empty folder, with PATH and HOME alone."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home / "somewhere"
        self.folder.mkdir()
        self.variables = {"PATH": os.environ["PATH"], "HOME": str(home)}
        self.layout = Layout(home / ".local" / "share" / "mcp-memory")

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [COMMAND, *words],
            env=self.variables,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def newcomer() -> Iterator[Newcomer]:
    # Not in pytest's own folder, as in tests/conftest.py.
    with tempfile.TemporaryDirectory(prefix="memory-home-") as home:
        newcomer = Newcomer(Path(home))
        yield newcomer
        # Each command waits for the services that it started, so that nothing is left.
        assert not locks.is_held(newcomer.layout.supervisor_lock)


def test_a_file_is_imported_and_its_job_is_seen(newcomer: Newcomer) -> None:
    (newcomer.folder / "note.md").write_text("# Launch\n\nWe decided to launch in May.\n")
    imported = newcomer.run("ingest", "note.md", "--json")
    assert imported.returncode == 0, imported.stderr
    (newcomer.folder / "note.md").unlink()

    jobs = newcomer.run("jobs", "--json")
    assert jobs.returncode == 0, jobs.stderr
    [job] = json.loads(jobs.stdout)["jobs"]
    assert job["status"] == "PENDING"


async def test_every_tool_call_of_the_stdio_configuration_works(newcomer: Newcomer) -> None:
    server = StdioServerParameters(
        command=COMMAND, args=["serve", "--stdio"], env=newcomer.variables, cwd=newcomer.folder
    )
    async with Client(server) as client:
        fact = {"content": "The key is under the mat.", "type": "fact", "confidence": 1}
        stored = await client.call_tool("memory_store", fact)
        assert not stored.is_error, stored.content
        answer = await client.call_tool("memory_search", {"query": "where is the key"})
        assert "under the mat" in str(answer.structured_content)


def test_nothing_is_written_into_the_working_directory(newcomer: Newcomer) -> None:
    newcomer.run("jobs")
    assert list(newcomer.folder.iterdir()) == []
    assert newcomer.layout.postgres.is_dir()
