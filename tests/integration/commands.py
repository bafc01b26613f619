"""The command line over the stores of the test session."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mcp_server.cli import app
from memory_core.kernel.settings import Settings
from tests.conftest import IndexHost
from tests.tool_client import Json

Command = Callable[..., str]


@pytest.fixture
async def command(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, index_host: IndexHost
) -> Command:
    """A command that must succeed, and what it prints. It is a worker itself where it has to be:
    ours would not get on while the test waits for it."""
    await index_host.stop()
    for name, value in settings.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("COLUMNS", "220")
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> str:
        done = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        assert "\x1b" not in done.stdout, "a document speaks to the terminal"
        return done.stdout

    return run


def answer(command: Command, *arguments: str) -> Json:
    """Exactly one object on stdout."""
    return dict(json.loads(command(*arguments, "--json")))


def words(text: str) -> str:
    """As read over the borders of a table."""
    return " ".join(text.replace("│", " ").split())
