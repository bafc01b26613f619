"""One supervised process, and the supervisor's way of ending its own tasks."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from memory_core.kernel.errors import StackFault
from stack.child import Child, ChildDied, ChildSpec, last_lines
from stack.orphans import MARKER, end_orphans
from tests.patience import PATIENCE


async def ready(_: float) -> None:
    """A probe of something that needs no time."""


async def not_yet(_: float) -> None:
    raise ConnectionError("no one answers")


def spec(folder: Path, code: str, **changes: object) -> ChildSpec:
    values: dict[str, object] = {
        "name": "it",
        "title": "The child",
        "command": [sys.executable, "-c", code],
        "log": folder / "it.log",
        "probe": ready,
        **changes,
    }
    return ChildSpec(**values)  # type: ignore[arg-type]


SLEEP = "import time; time.sleep(600)"


async def appears(path: Path) -> None:
    async with asyncio.timeout(PATIENCE):
        while not path.exists():
            await asyncio.sleep(0.02)


class TestChild:
    async def test_it_runs_until_it_is_stopped(self, tmp_path: Path) -> None:
        child = Child(spec(tmp_path, SLEEP))
        await child.start()
        await child.wait_ready()
        assert child.alive
        await child.stop()
        assert not child.alive

    @pytest.mark.parametrize("inherits", [True, False])
    async def test_one_that_needs_no_secrets_gets_none(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inherits: bool
    ) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary")
        code = "import json, os; print(json.dumps(dict(os.environ)))"
        given = {"OWN": "its own"}
        child = Child(spec(tmp_path, code, inherits=inherits, environment=given))
        await child.start()
        await child.wait_dead()
        environment = json.loads(child.spec.log.read_text())
        assert environment["OWN"] == "its own"
        assert environment["PATH"] == os.environ["PATH"]
        assert ("canary" in str(environment)) is inherits

    async def test_one_that_ends_before_it_is_ready_has_died(self, tmp_path: Path) -> None:
        child = Child(spec(tmp_path, "print('the reason'); exit(3)", probe=not_yet))
        await child.start()
        with pytest.raises(ChildDied) as caught:
            await child.wait_ready()
        assert "The child ended (exit code 3)." in caught.value.message
        assert "the reason" in caught.value.message

    async def test_one_that_never_gets_ready_is_told_apart(self, tmp_path: Path) -> None:
        child = Child(spec(tmp_path, SLEEP, probe=not_yet, ready_timeout=0.3))
        await child.start()
        with pytest.raises(StackFault, match=r"did not become ready.*no one answers"):
            await child.wait_ready()
        await child.stop()

    async def test_a_death_by_signal_names_the_signal(self, tmp_path: Path) -> None:
        child = Child(spec(tmp_path, SLEEP))
        await child.start()
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        await child.wait_dead()
        assert child.death() == "The child ended (SIGKILL)."

    async def test_one_that_does_not_listen_is_killed(self, tmp_path: Path) -> None:
        deaf = f"""
import pathlib, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path({str(tmp_path / "deaf")!r}).touch()
time.sleep(600)"""
        child = Child(spec(tmp_path, deaf, stop_timeout=0.2))
        await child.start()
        await appears(tmp_path / "deaf")
        await child.stop()
        assert child.death() == "The child ended (SIGKILL)."

    async def test_what_it_started_itself_goes_with_it(self, tmp_path: Path) -> None:
        parent = f"""
import pathlib, subprocess, time
child = subprocess.Popen(["sleep", "600"])
path = pathlib.Path({str(tmp_path / "pid")!r})
path.with_suffix(".new").write_text(str(child.pid))
path.with_suffix(".new").rename(path)
time.sleep(600)"""
        child = Child(spec(tmp_path, parent))
        await child.start()
        await appears(tmp_path / "pid")
        grandchild = psutil.Process(int((tmp_path / "pid").read_text()))
        await child.stop()
        psutil.wait_procs([grandchild], timeout=PATIENCE)
        assert not grandchild.is_running() or grandchild.status() == psutil.STATUS_ZOMBIE


class TestLastLines:
    def test_they_are_the_last(self, tmp_path: Path) -> None:
        (tmp_path / "log").write_text("\n".join(map(str, range(100))))
        assert last_lines(tmp_path / "log", 3) == ["97", "98", "99"]

    def test_of_no_log_there_are_none(self, tmp_path: Path) -> None:
        assert last_lines(tmp_path / "log") == []

    def test_bytes_that_are_no_text_do_no_harm(self, tmp_path: Path) -> None:
        (tmp_path / "log").write_bytes(b"\xff\xfe\nend")
        assert last_lines(tmp_path / "log")[-1] == "end"


class TestOrphans:
    def test_marked_processes_of_the_data_dir_are_ended_and_no_others(self, tmp_path: Path) -> None:
        mine, other = (
            subprocess.Popen(["sleep", "600"], env={**os.environ, MARKER: str(tmp_path / name)})
            for name in ("mine", "other")
        )
        try:
            _wait_until_marked(mine.pid)
            assert end_orphans(tmp_path / "mine") == 1
            assert not psutil.pid_exists(mine.pid)
            assert other.poll() is None
        finally:
            for process in (mine, other):
                process.kill()
                process.wait()

    def test_none_is_no_error(self, tmp_path: Path) -> None:
        assert end_orphans(tmp_path) == 0


def _wait_until_marked(pid: int) -> None:
    """Between fork and exec a process still shows the environment of its parent."""
    deadline = time.monotonic() + PATIENCE
    while MARKER not in psutil.Process(pid).environ():
        assert time.monotonic() < deadline
        time.sleep(0.02)
