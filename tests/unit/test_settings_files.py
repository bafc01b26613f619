"""Configuration from files and for child processes: `.env`, names of before, `.env.example`."""

import os
import re
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from memory_core.kernel.env_file import COMPOSE_ONLY, HANDED_OVER, superseded_notice
from memory_core.kernel.settings import Settings, load_settings, variable_names
from tests.settings_contract import DEFAULTS, SECRET, fault_of

PROJECT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.usefixtures("folder")


class TestDotEnv:
    def test_it_is_read_from_the_working_directory(self, folder: Path) -> None:
        (folder / ".env").write_text("# ours\nMCP_PORT=4000\nCHROMA_HOST='chroma'\n")
        settings = load_settings()
        assert (settings.mcp_port, settings.chroma_host) == (4000, "chroma")

    def test_the_environment_wins_over_it(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (folder / ".env").write_text("MCP_PORT=4000\n")
        monkeypatch.setenv("MCP_PORT", "5000")
        assert load_settings().mcp_port == 5000

    def test_a_bad_value_in_it_is_refused_as_anywhere(self, folder: Path) -> None:
        (folder / ".env").write_text("MCP_PORT=many\n")
        assert fault_of().startswith("MCP_PORT='many' is not allowed: ")

    @pytest.mark.parametrize(
        ("written", "meant"),
        [
            ("OPENAI_APIKEY", "OPENAI_API_KEY"),
            ("EVENT_DB_DSN", "EVENTS_DB_DSN"),
            ("mcp_prot", "MCP_PORT"),
            ("CHUNK_TARGET_TOKEN", "CHUNK_TARGET_TOKENS"),
        ],
    )
    def test_a_misspelt_name_is_refused_with_the_one_that_was_meant(
        self, folder: Path, written: str, meant: str
    ) -> None:
        (folder / ".env").write_text(f"{written}=1\n")
        assert fault_of() == f"{written} in .env is not a known variable: did you mean {meant}?"

    def test_a_name_like_none_of_ours_points_at_the_list(self, folder: Path) -> None:
        (folder / ".env").write_text("WHATEVER_THIS_IS=1\n")
        assert "see .env.example" in fault_of()

    @pytest.mark.parametrize("name", sorted(COMPOSE_ONLY))
    def test_names_that_only_compose_reads_are_fine(self, folder: Path, name: str) -> None:
        (folder / ".env").write_text(f"{name}=1\n")
        load_settings()

    def test_the_value_of_an_unknown_name_is_not_shown(self, folder: Path) -> None:
        (folder / ".env").write_text(f"OPENAI_KEY={SECRET}\n")
        assert SECRET not in fault_of()


class TestSupersededNames:
    """A `.env` written for the design with workers of its own still starts the product."""

    FILE = "WORKER_ID=event-worker-1\nPOLL_INTERVAL_MS=1000\nEVENT_MAX_ATTEMPTS=3\n"

    def test_they_are_accepted(self, folder: Path) -> None:
        (folder / ".env").write_text(self.FILE)
        assert load_settings().event_max_attempts == 3

    def test_one_line_says_what_replaced_them(self, folder: Path) -> None:
        (folder / ".env").write_text(self.FILE)
        notice = superseded_notice()
        assert notice is not None
        assert "\n" not in notice
        for word in ("WORKER_ID", "POLL_INTERVAL_MS", "Dagster run", "sensor"):
            assert word in notice

    def test_without_them_nothing_is_said(self, folder: Path) -> None:
        (folder / ".env").write_text("EVENT_MAX_ATTEMPTS=3\n")
        assert superseded_notice() is None


class TestExampleFile:
    LINE = re.compile(r"^#?(?P<name>[A-Z_]+)=(?P<value>\S*)(?:\s+#.*)?$")

    @pytest.fixture
    def listed(self) -> dict[str, str]:
        lines = (PROJECT / ".env.example").read_text().splitlines()
        matches = [match for line in lines if (match := self.LINE.match(line))]
        names = [match["name"] for match in matches]
        assert len(names) == len(set(names)), "a name is listed twice"
        return {match["name"]: match["value"] for match in matches}

    def test_it_lists_exactly_the_known_names(self, listed: dict[str, str]) -> None:
        assert listed.keys() - COMPOSE_ONLY == variable_names()

    def test_what_only_compose_reads_is_known_as_such(self, listed: dict[str, str]) -> None:
        assert listed.keys() - variable_names() <= COMPOSE_ONLY

    @pytest.mark.parametrize("name", sorted(DEFAULTS))
    def test_it_shows_the_default(self, listed: dict[str, str], name: str) -> None:
        default = DEFAULTS[name]
        kind = type(default)
        shown = TypeAdapter(kind).validate_python(listed[name] or (None if default is None else ""))
        assert shown == default

    def test_no_password_is_suggested(self, listed: dict[str, str]) -> None:
        assert listed["POSTGRES_PASSWORD"] == ""

    def test_copied_as_it_is_it_changes_nothing(self, folder: Path) -> None:
        (folder / ".env").write_text((PROJECT / ".env.example").read_text())
        assert load_settings() == Settings(_env_file=None)

    def test_with_every_line_uncommented_it_changes_nothing(self, folder: Path) -> None:
        text = re.sub(r"(?m)^#([A-Z_]+=)", r"\1", (PROJECT / ".env.example").read_text())
        (folder / ".env").write_text(text)
        assert load_settings() == Settings(_env_file=None)


class TestEnvironmentForChildren:
    def test_a_child_reads_the_same_settings_back(self, monkeypatch: pytest.MonkeyPatch) -> None:
        settings = load_settings(
            openai_api_key="sk-1", events_db_dsn="postgresql://u:p@h/d", mcp_port=4000
        )
        for name, value in settings.environment().items():
            monkeypatch.setenv(name, value)
        assert load_settings() == settings

    def test_it_names_every_variable(self) -> None:
        assert load_settings().environment().keys() == DEFAULTS.keys() | {HANDED_OVER}

    def test_a_child_in_another_folder_and_home_reads_the_same_settings(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings = load_settings()
        other = folder / "other"
        other.mkdir()
        (other / ".env").write_text("MCP_PORT=9\nOPENAI_API_KEY=sk-of-another\nNO_SUCH_NAME=1\n")
        for name, value in settings.environment().items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("HOME", str(other))
        monkeypatch.chdir(other)
        assert load_settings() == settings

    def test_a_child_knows_what_the_user_chose(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CHROMA_PORT", "8000")
        settings = load_settings()
        for name, value in settings.environment().items():
            monkeypatch.setenv(name, value)
        child = load_settings(log_level="ERROR")
        assert child.model_fields_set == {"chroma_port", "log_level"}

    def test_reading_settings_changes_no_variable(self) -> None:
        before = dict(os.environ)
        load_settings()
        assert dict(os.environ) == before
