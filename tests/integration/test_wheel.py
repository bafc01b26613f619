"""The product without a checkout: the built wheel, installed elsewhere, used from any folder."""

import json
import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from mcp import Client, StdioServerParameters

from memory_core.kernel import file_locks as locks
from memory_core.kernel import tls
from stack import stack_state
from stack.layout import Layout
from tests.patience import PATIENCE

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = "from hatchling.build import build_wheel; import sys; print(build_wheel(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", build, str(folder)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    return folder / done.stdout.splitlines()[-1]


class Installed:
    """The wheel in an environment of its own, whose dependencies are those of this one."""

    def __init__(self, wheel: Path, folder: Path) -> None:
        self.environment = folder / "environment"
        venv.create(self.environment, symlinks=True)
        python = self.environment / "bin" / "python"
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "--python", str(python), "install"),
                *("-q", "--no-deps", "--no-index", "--disable-pip-version-check", str(wheel)),
            ],
            check=True,
        )
        [own] = self.environment.glob("lib/python*/site-packages")
        # A plain path: this environment's own .pth files, which lead to the checkout, do not count.
        dependencies = Path(httpx.__file__).parents[1]
        (own / "dependencies.pth").write_text(f"{dependencies}\n")
        (self.environment / "bin" / "chroma").symlink_to(Path(sys.executable).with_name("chroma"))
        self.home = folder / "home"
        # A folder whose names would win over ours if it were searched for modules.
        self.folder = folder / "somewhere"
        for name in ("memory_core", "mcp_server", "dagster"):
            (self.folder / name).mkdir(parents=True)
            (self.folder / name / "__init__.py").write_text("raise SystemExit('a stranger')\n")
        self.home.mkdir()
        self.command = str(self.environment / "bin" / "mcp-memory")
        self.variables = {
            "PATH": os.defpath,
            "HOME": str(self.home),
            "MCP_PORT": "0",
            "DAGSTER_PORT": "0",
        }
        self.layout = Layout(self.home / ".local" / "share" / "mcp-memory")

    def run(self, *words: str) -> str:
        done = subprocess.run(
            [self.command, *words],
            env=self.variables,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def python(self, code: str) -> str:
        done = subprocess.run(
            [str(self.environment / "bin" / "python"), "-P", "-c", code],
            env=self.variables,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Iterator[Installed]:
    # Not in pytest's own folder, as in tests/conftest.py.
    with tempfile.TemporaryDirectory(prefix="memory-elsewhere-") as folder:
        installed = Installed(wheel, Path(folder))
        yield installed
        assert not locks.is_held(installed.layout.supervisor_lock)


def tracked(*places: str) -> set[str]:
    listed = subprocess.run(
        ["git", "ls-files", *places], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    return set(listed.stdout.splitlines())


def test_the_wheel_carries_every_file_of_the_program(wheel: Path) -> None:
    if not (PROJECT / ".git").exists():
        pytest.skip("the list of files comes from git")
    carried = set(zipfile.ZipFile(wheel).namelist())
    packages = tracked("memory_core", "memory_assets", "mcp_server", "sql")
    shared = tracked("demo", "dagster.yaml", "workspace.yaml")
    assert carried >= {*packages, *(f"memory_core/share/{name}" for name in shared)}


def test_it_is_the_installed_program_that_runs(installed: Installed) -> None:
    where = installed.python("import memory_core; print(memory_core.__file__)")
    assert Path(where).is_relative_to(installed.environment)


def test_it_tells_its_version(installed: Installed, wheel: Path) -> None:
    assert installed.run("--version").split() == ["mcp-memory", wheel.name.split("-")[1]]


def test_a_file_is_imported_from_any_folder(installed: Installed) -> None:
    (installed.folder / "note.md").write_text("# Launch\n\nWe decided to launch in May.\n")
    report = json.loads(installed.run("ingest", "note.md", "--json"))
    assert "note.md" in json.dumps(report)
    [job] = json.loads(installed.run("jobs", "--json"))["jobs"]
    assert job["status"] == "PENDING"


async def test_an_mcp_client_starts_it_over_stdio(installed: Installed) -> None:
    server = StdioServerParameters(
        command=installed.command,
        args=["serve", "--stdio"],
        env=installed.variables,
        cwd=installed.folder,
    )
    async with Client(server) as client:
        answer = await client.call_tool("hybrid_search", {"query": "launch in May"})
        assert not answer.is_error, answer.content


@pytest.mark.slow
def test_the_demo_runs(installed: Installed) -> None:
    shown = installed.run("demo")
    assert "0 failed" in shown
    assert "Who was involved in the authentication redesign?" in shown


def test_the_stack_runs_until_it_is_stopped(installed: Installed) -> None:
    process = subprocess.Popen(
        [installed.command, "up"],
        env=installed.variables,
        cwd=installed.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        shown = []
        for line in process.stdout:
            shown.append(line)
            if "Ctrl-C" in line:
                break
        running = stack_state.running(installed.layout)
        assert running is not None, "".join(shown)
        assert running.mcp_url is not None
        url = running.mcp_url.removesuffix("/mcp") + "/health"
        health = httpx.get(url, timeout=PATIENCE, trust_env=False, verify=tls.verify(url))
        assert health.json()["status"] == "ok"
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
