"""Configuration: names, defaults, and one clear line for what is wrong."""

from pathlib import Path

import pytest

from memory_core.kernel.errors import ConfigurationFault
from memory_core.kernel.settings import load_settings, variable_names
from tests.settings_contract import DEFAULTS, fault_of

PROJECT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize("missing", ["OAUTH_ISSUER", "OAUTH_AUDIENCE"])
def test_oauth_needs_an_issuer_and_an_audience(missing: str) -> None:
    oauth = {"OAUTH_ISSUER": "https://login.example", "OAUTH_AUDIENCE": "https://m.example/mcp"}
    said = fault_of(AUTH="oauth", **{name: url for name, url in oauth.items() if name != missing})
    assert "OAUTH_ISSUER and OAUTH_AUDIENCE" in said


@pytest.mark.parametrize("url", ["http://login.example", "login.example", "https://a:b@x.example"])
def test_an_issuer_has_an_address_with_tls(url: str) -> None:
    assert "https://" in fault_of(OAUTH_ISSUER=url)


class TestNamesAndDefaults:
    @pytest.mark.parametrize("name", sorted(DEFAULTS))
    def test_every_variable_has_its_documented_default(self, name: str, folder: Path) -> None:
        expected = folder / ".local/share/mcp-memory" if name == "DATA_DIR" else DEFAULTS[name]
        assert getattr(load_settings(), name.lower()) == expected

    def test_there_is_no_other_variable(self) -> None:
        assert variable_names() == DEFAULTS.keys()

    def test_the_environment_wins_over_the_default(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MCP_PORT", "4321")
        assert load_settings().mcp_port == 4321

    def test_an_argument_wins_over_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MCP_PORT", "4321")
        assert load_settings(mcp_port=1234).mcp_port == 1234

    @pytest.mark.parametrize("name", sorted(DEFAULTS))
    def test_an_empty_value_counts_as_unset(
        self, name: str, monkeypatch: pytest.MonkeyPatch, folder: Path
    ) -> None:
        monkeypatch.setenv(name, "")
        expected = folder / ".local/share/mcp-memory" if name == "DATA_DIR" else DEFAULTS[name]
        assert getattr(load_settings(), name.lower()) == expected

    def test_the_log_level_may_be_written_in_lower_case(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("LOG_LEVEL", "debug")
        assert load_settings().log_level == "DEBUG"

    def test_the_data_dir_is_the_same_under_every_name_it_has(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = folder / "real"
        real.mkdir()
        (folder / "alias").symlink_to(real)
        monkeypatch.setenv("DATA_DIR", "alias/../alias/data")
        assert load_settings().data_dir == real / "data"

    def test_the_data_dir_may_be_in_the_home(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HOME", str(folder))
        monkeypatch.setenv("DATA_DIR", "~/memory")
        assert load_settings().data_dir == folder / "memory"

    def test_settings_cannot_be_changed_once_read(self) -> None:
        with pytest.raises(ValueError, match="frozen"):
            load_settings().mcp_port = 1


class TestChoiceOfModels:
    @pytest.mark.parametrize(
        ("choice", "key", "uses_openai"),
        [
            ("auto", None, False),  # the embedded default
            ("auto", "sk-1", True),  # a key is enough
            ("openai", "sk-1", True),
        ],
    )
    def test_auto_takes_openai_when_there_is_a_key(
        self, choice: str, key: str | None, uses_openai: bool
    ) -> None:
        settings = load_settings(extractor=choice, embedder=choice, openai_api_key=key)
        assert settings.uses_openai_extractor is uses_openai
        assert settings.uses_openai_embedder is uses_openai

    def test_local_models_are_kept_although_there_is_a_key(self) -> None:
        settings = load_settings(extractor="rules", embedder="local", openai_api_key="sk-1")
        assert not settings.uses_openai_extractor
        assert not settings.uses_openai_embedder

    @pytest.mark.parametrize("name", ["EXTRACTOR", "EMBEDDER"])
    def test_openai_without_a_key_is_refused(self, name: str) -> None:
        assert fault_of(**{name: "openai"}) == f"{name}=openai needs OPENAI_API_KEY to be set"


class TestBadValues:
    @pytest.mark.parametrize(
        ("name", "value", "allowed"),
        [
            ("OPENAI_BASE_URL", "localhost:11434", "http:// or https://"),
            ("OPENAI_EMBED_DIMS", "0", "greater than or equal to 1"),
            ("OPENAI_EMBED_DIMS", "large", "valid integer"),
            ("OPENAI_TIMEOUT", "0", "greater than 0"),
            ("OPENAI_TIMEOUT", "-1", "greater than 0"),
            ("OPENAI_TIMEOUT", "soon", "valid number"),
            ("OPENAI_TIMEOUT", "nan", "finite number"),  # would wait for ever
            ("OPENAI_TIMEOUT", "inf", "finite number"),
            ("OPENAI_MAX_RETRIES", "-1", "greater than or equal to 0"),
            ("OPENAI_MAX_RETRIES", "21", "less than or equal to 20"),
            ("OPENAI_BATCH_SIZE", "0", "greater than or equal to 1"),
            ("OPENAI_BATCH_SIZE", "2049", "less than or equal to 2048"),
            ("EXTRACTOR", "gpt", "'auto', 'openai' or 'rules'"),
            ("EMBEDDER", "rules", "'auto', 'openai', 'local' or 'minilm'"),
            ("EXTRACT_CONCURRENCY", "0", "greater than or equal to 1"),
            ("CHROMA_PORT", "65536", "less than or equal to 65535"),
            ("CHROMA_PORT", "-1", "greater than or equal to 0"),
            ("SINGLE_PIECE_MAX_TOKENS", "0", "greater than or equal to 1"),
            ("CHUNK_TARGET_TOKENS", "900.5", "valid integer"),
            ("CHUNK_OVERLAP_TOKENS", "-1", "greater than or equal to 0"),
            ("RRF_CONSTANT", "0", "greater than or equal to 1"),
            ("EVENT_MAX_ATTEMPTS", "0", "greater than or equal to 1"),
            ("EVENT_MAX_ATTEMPTS", "101", "less than or equal to 100"),
            ("MAX_LIVE_PARTITIONS", "100001", "less than or equal to 100000"),
            ("HISTORY_DAYS", "0", "greater than or equal to 1"),
            ("CACHE_DAYS", "never", "valid integer"),
            ("FRESHNESS_MINUTES", "0", "greater than or equal to 1"),
            ("MODEL_PRICES", "gpt-4o", "must be of the form model=in/out"),
            ("MODEL_PRICES", "gpt-4o=2.5", "must be of the form model=in/out"),
            ("MODEL_PRICES", "gpt-4o=2.5/nan", "must be of the form model=in/out"),
            ("MODEL_PRICES", "gpt-4o=-1/2", "must be of the form model=in/out"),
            ("MODEL_PRICES", "=1/2", "must be of the form model=in/out"),
            ("MCP_PORT", "http", "valid integer"),
            ("DAGSTER_PORT", "99999", "less than or equal to 65535"),
            ("LOG_LEVEL", "LOUD", "'DEBUG', 'INFO', 'WARNING' or 'ERROR'"),
        ],
    )
    def test_one_line_names_the_variable_the_value_and_what_is_allowed(
        self, name: str, value: str, allowed: str
    ) -> None:
        message = fault_of(**{name: value})
        assert message.startswith(f"{name}={value!r} is not allowed: ")
        assert allowed in message
        assert "\n" not in message

    def test_two_bad_values_are_two_lines(self) -> None:
        lines = fault_of(MCP_PORT="x", LOG_LEVEL="y").splitlines()
        assert sorted(line.partition("=")[0] for line in lines) == ["LOG_LEVEL", "MCP_PORT"]

    @pytest.mark.parametrize(
        ("variables", "words"),
        [
            # Too much overlap would repeat the text over and over.
            (
                {"CHUNK_OVERLAP_TOKENS": "451"},
                ["CHUNK_OVERLAP_TOKENS=451", "at most", "CHUNK_TARGET_TOKENS=900"],
            ),
            # A chunk larger than a single piece would make chunking pointless.
            (
                {"CHUNK_TARGET_TOKENS": "1201"},
                ["CHUNK_TARGET_TOKENS=1201", "not exceed", "SINGLE_PIECE_MAX_TOKENS=1200"],
            ),
        ],
    )
    def test_values_that_contradict_each_other_are_both_named(
        self, variables: dict[str, str], words: list[str]
    ) -> None:
        message = fault_of(**variables)
        assert [word for word in words if word not in message] == []
        assert "\n" not in message

    def test_without_any_postgres_the_message_says_how_to_get_one(self) -> None:
        with pytest.raises(ConfigurationFault, match=r"mcp-memory up.*EVENTS_DB_DSN"):
            _ = load_settings().dsn
