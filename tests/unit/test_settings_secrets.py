"""Configuration shows no secret anywhere."""

import pytest
from pydantic import SecretStr

from memory_core.kernel.dsn import redact_dsn
from memory_core.kernel.errors import ConfigurationFault
from memory_core.kernel.settings import Settings, load_settings
from tests.settings_contract import SECRET, fault_of

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize(
    "name", ["OPENAI_BASE_URL", "OTEL_EXPORTER_OTLP_ENDPOINT", "OAUTH_ISSUER", "OAUTH_AUDIENCE"]
)
def test_a_password_in_an_address_is_not_repeated(name: str) -> None:
    said = fault_of(**{name: f"ftp://me:{SECRET}@host.example"})
    assert said.startswith(f"{name}=*** is not allowed")
    assert SECRET not in said


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
