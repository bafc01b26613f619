"""A place where no setting comes from outside."""

from pathlib import Path

import pytest

from memory_core.kernel.env_file import COMPOSE_ONLY
from memory_core.kernel.settings import variable_names


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, which is the home too, and none of our variables set."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / ".local/share"))
    for name in [*variable_names(), *COMPOSE_ONLY]:
        monkeypatch.delenv(name, raising=False)
    return tmp_path
