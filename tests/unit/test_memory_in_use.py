"""Which memory a command uses, and why that one."""

from pathlib import Path

import pytest

from memory_core.kernel.env_file import HANDED_OVER
from memory_core.kernel.settings import load_settings, variable_names
from stack.memory_in_use import memory_in_use, older_memory_notice


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new user in an empty folder."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    for name in [*variable_names(), HANDED_OVER]:
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_by_default_it_is_a_folder_of_the_user_whatever_the_working_directory(home: Path) -> None:
    memory = memory_in_use(load_settings())
    assert memory.path == home / "share" / "mcp-memory"
    assert str(memory) == f"{memory.path} (the default); no stack is running"


def test_a_relative_data_dir_is_shown_in_full(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATA_DIR", "notes")
    assert str(memory_in_use(load_settings())).startswith(
        f"{home / 'work' / 'notes'} (set by DATA_DIR)"
    )


def test_a_data_dir_of_the_env_file_is_told_as_such(home: Path) -> None:
    (home / "work" / ".env").write_text("DATA_DIR=mine\n")
    memory = memory_in_use(load_settings())
    assert (memory.path, memory.chosen_by) == (home / "work" / "mine", ".env")


def test_a_database_of_ones_own_is_named_without_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EVENTS_DB_DSN", "postgresql://me:hidden@db/events")
    warning = str(memory_in_use(load_settings()))
    assert "postgresql://me:***@db/events (EVENTS_DB_DSN)" in warning
    assert "hidden" not in warning


class TestAMemoryAtTheFormerDefault:
    @pytest.fixture(autouse=True)
    def older(self, home: Path) -> Path:
        older = home / "work" / ".data"
        (older / "postgres").mkdir(parents=True)
        return older

    def test_one_line_names_it_and_how_to_use_it(self, older: Path) -> None:
        notice = older_memory_notice(load_settings())
        assert notice is not None
        assert "\n" not in notice
        assert f"DATA_DIR={older}" in notice

    def test_nothing_is_said_once_the_default_holds_a_memory(self, home: Path) -> None:
        (home / "share" / "mcp-memory" / "postgres").mkdir(parents=True)
        assert older_memory_notice(load_settings()) is None

    def test_nothing_is_said_when_the_user_chose_a_memory(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DATA_DIR", ".data")
        assert older_memory_notice(load_settings()) is None
