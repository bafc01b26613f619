"""Configuration: names, defaults, one clear line for what is wrong, and no secret anywhere."""

import os
import re
from pathlib import Path

import pytest
from pydantic import SecretStr, TypeAdapter

from memory_core.kernel.dsn import redact_dsn
from memory_core.kernel.env_file import COMPOSE_ONLY, HANDED_OVER, superseded_notice
from memory_core.kernel.errors import ConfigurationFault
from memory_core.kernel.settings import Settings, load_settings, variable_names

PROJECT = Path(__file__).resolve().parents[2]

# The contract: every variable and its default.
DEFAULTS: dict[str, object] = {
    "OPENAI_API_KEY": None,
    "OPENAI_BASE_URL": None,
    "OPENAI_EMBED_MODEL": "text-embedding-3-large",
    "OPENAI_EMBED_DIMS": 3072,
    "OPENAI_EVENT_MODEL": "gpt-4o",
    "OPENAI_TIMEOUT": 30.0,
    "OPENAI_MAX_RETRIES": 3,
    "OPENAI_BATCH_SIZE": 100,
    "EXTRACTOR": "auto",
    "EMBEDDER": "auto",
    "EXTRACT_CONCURRENCY": 16,
    "PROMPTS_DIR": None,
    "MIN_CONFIDENCE": 0.7,
    "EVENTS_DB_DSN": None,
    "CHROMA_HOST": None,
    "CHROMA_PORT": 8000,
    "SINGLE_PIECE_MAX_TOKENS": 1200,
    "CHUNK_TARGET_TOKENS": 900,
    "CHUNK_OVERLAP_TOKENS": 100,
    "RANKING": "scores",
    "RRF_CONSTANT": 60,
    "EVENT_MAX_ATTEMPTS": 5,
    "EVENT_BACKOFF": "exp",
    "STUCK_RUN_MINUTES": 30.0,
    "MCP_HOST": "127.0.0.1",
    "MCP_PORT": 3000,
    "DAGSTER_HOST": "127.0.0.1",
    "DAGSTER_PORT": 3001,
    "AUTH": "none",
    "OAUTH_ISSUER": None,
    "OAUTH_AUDIENCE": None,
    "RATE_CALLS_PER_MINUTE": None,
    "RATE_TENANT_CALLS_PER_MINUTE": None,
    "RATE_CALLS_AT_ONCE": 4,
    "ALLOWED_HOSTS": "",
    "ALLOWED_ORIGINS": "",
    "DATA_DIR": "~/.local/share/mcp-memory",
    "INGEST_ROOTS": "",
    "TOOLSETS": "core,events",
    "MAX_LIVE_PARTITIONS": 50_000,
    "BACKFILL_START": "manual",
    "BACKFILL_EVERY_MINUTES": 1,
    "BACKFILL_REVISIONS_PER_TICK": 200,
    "BACKFILL_TOKENS_PER_DAY": 2_000_000,
    "FRESHNESS_MINUTES": 30,
    "HISTORY_DAYS": 30,
    "INDEX_WAIT_MS": 2000,
    "LOG_MONTHS": 0,
    "AUDIT_DAYS": 90,
    "WEBHOOK_ALLOW_PRIVATE": False,
    "CACHE_DAYS": 90,
    "MODEL_PRICES": "",
    "LOG_LEVEL": "INFO",
    "LOG_FORMAT": "text",
    "OTEL_EXPORTER_OTLP_ENDPOINT": None,
}
SECRET = "s3cr3t-d0-n0t-sh0w"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, which is the home too, and none of our variables set."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / ".local/share"))
    for name in [*variable_names(), *COMPOSE_ONLY]:
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def fault_of(**variables: str) -> str:
    """What `load_settings` says about these variables."""
    with pytest.MonkeyPatch.context() as environment:
        for name, value in variables.items():
            environment.setenv(name, value)
        with pytest.raises(ConfigurationFault) as caught:
            load_settings()
    return caught.value.message


@pytest.mark.parametrize(
    "name", ["OPENAI_BASE_URL", "OTEL_EXPORTER_OTLP_ENDPOINT", "OAUTH_ISSUER", "OAUTH_AUDIENCE"]
)
def test_a_password_in_an_address_is_not_repeated(name: str) -> None:
    said = fault_of(**{name: f"ftp://me:{SECRET}@host.example"})
    assert said.startswith(f"{name}=*** is not allowed")
    assert SECRET not in said


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


class TestChromaAddress:
    @pytest.mark.parametrize(
        ("host", "shown"),
        [
            (None, None),
            ("chroma", "chroma:8000"),
            ("unix:/run/chroma.sock", "unix:/run/chroma.sock"),
            ("https://me:s3cr3t@chroma.example", "https://me:***@chroma.example"),
        ],
    )
    def test_it_is_shown_without_a_password(self, host: str | None, shown: str | None) -> None:
        assert Settings(_env_file=None, chroma_host=host).chroma_address == shown


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


class TestSecrets:
    DSN = f"postgresql://events:{SECRET}@db.example:5432/events"

    def test_they_are_not_in_what_settings_print(self) -> None:
        settings = load_settings(openai_api_key=SECRET, events_db_dsn=self.DSN)
        for shown in (repr(settings), str(settings), settings.model_dump_json(), f"{settings}"):
            assert SECRET not in shown

    def test_the_program_itself_can_read_them(self) -> None:
        settings = load_settings(openai_api_key=SECRET, events_db_dsn=self.DSN)
        assert isinstance(settings.openai_api_key, SecretStr)
        assert settings.openai_api_key.get_secret_value() == SECRET
        assert settings.dsn == self.DSN

    @pytest.mark.parametrize(
        "dsn",
        [
            f"mysql://events:{SECRET}@db.example/events",  # another database
            f"events:{SECRET}@db.example/events",  # no scheme
            f"postgresql://events:{SECRET}@db.example:port/events",  # no number
            f"postgresql://events:{SECRET}%zz@db.example/events",  # bad escape: libpq quotes it
            f"postgresql://events:{SECRET}@[::1/events",  # bracket left open
            f"postgresql://events:{SECRET}@db.example/events?passwrod={SECRET}",  # unknown option
        ],
    )
    def test_a_bad_dsn_is_refused_without_its_password(self, dsn: str) -> None:
        message = fault_of(EVENTS_DB_DSN=dsn)
        assert message.startswith("EVENTS_DB_DSN=*** is not allowed: ")
        assert "postgresql://" in message
        assert SECRET not in message
        assert "\n" not in message

    def test_they_are_not_in_the_message_about_another_variable(self) -> None:
        message = fault_of(OPENAI_API_KEY=SECRET, EVENTS_DB_DSN=self.DSN, MCP_PORT="x")
        assert message.startswith("MCP_PORT=")
        assert SECRET not in message

    def test_they_are_not_in_the_message_about_a_contradiction(self) -> None:
        assert SECRET not in fault_of(
            OPENAI_API_KEY=SECRET, EVENTS_DB_DSN=self.DSN, CHUNK_OVERLAP_TOKENS="800"
        )

    def test_the_traceback_does_not_carry_them(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("EVENTS_DB_DSN", f"mysql://u:{SECRET}@h/d")
        with pytest.raises(ConfigurationFault) as caught:
            load_settings()
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__

    @pytest.mark.parametrize(
        ("dsn", "shown"),
        [
            (DSN, "postgresql://events:***@db.example:5432/events"),
            ("postgresql://events@db/events", "postgresql://events@db/events"),
            ("postgresql://postgres@/x?host=/run/pg", "postgresql://postgres@/x?host=/run/pg"),
            (f"postgresql://u:{SECRET}@/x?host=/run/pg", "postgresql://u:***@/x?host=/run/pg"),
            (f"postgresql://u:a@{SECRET}@h/x", "postgresql://u:***@h/x"),  # an @ in it
            (f"postgresql://u@h/x?password={SECRET}", "postgresql://u@h/x?password=***"),
            (
                f"postgresql://u@h/x?sslpassword={SECRET}&sslmode=require",
                "postgresql://u@h/x?sslpassword=***&sslmode=require",
            ),
        ],
    )
    def test_a_dsn_is_shown_without_its_password(self, dsn: str, shown: str) -> None:
        assert redact_dsn(dsn) == shown


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
