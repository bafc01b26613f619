"""Configuration: environment variables (and `.env`), read once and validated; one line per
error."""

import os
import re
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

import platformdirs
from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from memory_core.kernel.admission import Admission, Authority, is_loopback
from memory_core.kernel.dsn import is_postgres_url, redact_dsn
from memory_core.kernel.env_file import ENV_FILE, HANDED_OVER, refuse_unknown_names
from memory_core.kernel.errors import ConfigurationFault
from memory_core.kernel.prices import Price, parse_prices

Port = Annotated[int, Field(ge=0, le=65535)]
PositiveInt = Annotated[int, Field(ge=1)]

# The sets of MCP tools that can be switched on: TOOLSETS.
TOOLSETS = ("core", "events", "admin")


def default_data_dir() -> Path:
    """The user's data folder, independent of the working directory: ~/.local/share/mcp-memory on
    Linux."""
    return platformdirs.user_data_path("mcp-memory", appauthor=False)


class Settings(BaseSettings):
    """Every setting of the product. Field `openai_api_key` is variable `OPENAI_API_KEY`, and so on.

    A port of 0 means "any free one". Empty strings count as unset.
    """

    model_config = SettingsConfigDict(
        env_file=ENV_FILE,
        env_file_encoding="utf-8",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
    )

    # Model provider
    openai_api_key: SecretStr | None = None
    openai_base_url: str | None = None
    openai_embed_model: str = "text-embedding-3-large"
    openai_embed_dims: Annotated[int, Field(ge=1, le=65536)] = 3072
    openai_event_model: str = "gpt-4o"
    openai_timeout: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 30.0
    openai_max_retries: Annotated[int, Field(ge=0, le=20)] = 3
    openai_batch_size: Annotated[int, Field(ge=1, le=2048)] = 100
    extractor: Literal["auto", "openai", "rules"] = "auto"
    embedder: Literal["auto", "openai", "local", "minilm"] = "auto"
    extract_concurrency: Annotated[int, Field(ge=1, le=1024)] = 16
    prompts_dir: Path | None = None
    min_confidence: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.7

    # Stores
    events_db_dsn: SecretStr | None = None
    chroma_host: str | None = None
    chroma_port: Port = 8000

    # Text
    single_piece_max_tokens: PositiveInt = 1200
    chunk_target_tokens: Annotated[int, Field(ge=36)] = 900
    chunk_overlap_tokens: Annotated[int, Field(ge=0)] = 100
    ranking: Literal["scores", "rrf"] = "scores"
    rrf_constant: PositiveInt = 60

    # Jobs and pipeline
    event_max_attempts: Annotated[int, Field(ge=1, le=100)] = 5
    # The policy of the wait after a failed attempt. docs/jobs.md has the seconds.
    event_backoff: Literal["none", "fixed", "exp"] = "exp"
    # A run whose documents make no progress for this long is ended, even if its heartbeats
    # continue.
    stuck_run_minutes: Annotated[float, Field(gt=0, le=10_080, allow_inf_nan=False)] = 30.0
    max_live_partitions: Annotated[int, Field(ge=1, le=100_000)] = 50_000

    # Backfills after a change of prompt
    backfill_start: Literal["manual", "auto"] = "manual"
    backfill_every_minutes: Annotated[int, Field(ge=1, le=60)] = 1
    backfill_revisions_per_tick: Annotated[int, Field(ge=1, le=10_000)] = 200
    backfill_tokens_per_day: Annotated[int, Field(ge=0)] = 2_000_000

    # Operating
    freshness_minutes: Annotated[int, Field(ge=1)] = 30
    # How long a call that changes the memory waits for the index; 0: not at all.
    index_wait_ms: Annotated[int, Field(ge=0, le=600_000)] = 2000
    history_days: Annotated[int, Field(ge=1, le=36_500)] = 30
    # How many whole months of the log stay in Postgres; 0: all.
    log_months: Annotated[int, Field(ge=0, le=1200)] = 0
    # How long calls stay in the audit, rounded up to whole months; 0: no call is recorded.
    audit_days: Annotated[int, Field(ge=0, le=36_500)] = 90
    # Whether webhooks may be sent to private and local addresses, and over plain http.
    webhook_allow_private: bool = False
    cache_days: Annotated[int, Field(ge=1, le=36_500)] = 90
    model_prices: str = ""

    # Serving
    mcp_host: str = "127.0.0.1"
    mcp_port: Port = 3000
    dagster_host: str = "127.0.0.1"
    dagster_port: Port = 3001
    # How a client of the MCP server authenticates. none: it must be on this machine.
    auth: Literal["none", "keys", "oauth"] = "none"
    # With AUTH=oauth: the issuer of the tokens, and the address of the MCP server that they are
    # for.
    oauth_issuer: str | None = None
    oauth_audience: str | None = None
    # Calls per minute of one user and of one tenant. Unset: with AUTH=keys or oauth 600 and ten
    # times that; otherwise no limit. 0: no limit.
    rate_calls_per_minute: Annotated[int, Field(ge=0)] | None = None
    rate_tenant_calls_per_minute: Annotated[int, Field(ge=0)] | None = None
    # Concurrent calls of one user, with AUTH=keys or oauth.
    rate_calls_at_once: PositiveInt = 4
    # Host names of the servers, and origins of pages that may send requests, separated by commas.
    allowed_hosts: str = ""
    allowed_origins: str = ""
    data_dir: Path = Field(default_factory=default_data_dir, validate_default=True)
    # Folders that artifact_ingest_file may read, separated as in PATH; empty: none.
    ingest_roots: str = ""
    # The tools that the MCP server offers: names of TOOLSETS, separated by commas.
    toolsets: str = "core,events"
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    log_format: Literal["text", "json"] = "text"
    # Where spans are sent (OTLP over HTTP); needs the extra `telemetry`.
    otel_exporter_otlp_endpoint: str | None = None

    @field_validator("data_dir")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        # Orphans and sockets are found by this path, so one directory must have one name.
        return value.expanduser().resolve()

    @field_validator("prompts_dir")
    @classmethod
    def _existing_folder(cls, value: Path | None) -> Path | None:
        if value is None:
            return None
        folder = value.expanduser().resolve()
        if not folder.is_dir():
            raise ValueError("there is no such folder")
        return folder

    @field_validator("ingest_roots")
    @classmethod
    def _absolute_folders(cls, value: str) -> str:
        for part in filter(None, value.split(os.pathsep)):
            if not Path(part).expanduser().is_absolute():
                raise ValueError(f"{part!r} must be an absolute path")
        return value

    @field_validator("allowed_hosts")
    @classmethod
    def _authorities(cls, value: str) -> str:
        for part in comma_separated(value):
            if Authority.parse(part) is None:
                raise ValueError(f"{part!r} must be a name or an address, with or without a port")
        return value

    @field_validator("allowed_origins")
    @classmethod
    def _origins(cls, value: str) -> str:
        for part in comma_separated(value):
            if not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^/?#\s]+/?", part.lower()):
                raise ValueError(f"{part!r} must be of the form https://host or https://host:port")
        return value

    @field_validator("toolsets")
    @classmethod
    def _known_toolsets(cls, value: str) -> str:
        names = comma_separated(value.lower())
        for name in names:
            if name not in TOOLSETS:
                raise ValueError(f"{name!r} must be one of {', '.join(TOOLSETS)}")
        if not names:
            raise ValueError(f"name at least one of {', '.join(TOOLSETS)}")
        return value

    @field_validator("log_format", mode="before")
    @classmethod
    def _lower(cls, value: Any) -> Any:
        return value.lower() if isinstance(value, str) else value

    @field_validator("log_level", mode="before")
    @classmethod
    def _upper(cls, value: Any) -> Any:
        return value.upper() if isinstance(value, str) else value

    @field_validator("model_prices")
    @classmethod
    def _prices(cls, value: str) -> str:
        parse_prices(value)
        return value

    @field_validator("openai_base_url", "otel_exporter_otlp_endpoint")
    @classmethod
    def _http_url(cls, value: str | None) -> str | None:
        if value is not None and urlsplit(value).scheme not in {"http", "https"}:
            raise ValueError("must start with http:// or https://")
        return value

    @field_validator("oauth_issuer", "oauth_audience")
    @classmethod
    def _safe_url(cls, value: str | None) -> str | None:
        if value is None:
            return None
        url = urlsplit(value)
        local = url.scheme == "http" and is_loopback(url.hostname or "")
        if not url.hostname or url.username or url.fragment or not (url.scheme == "https" or local):
            raise ValueError("must be an address that begins with https://")
        return value

    @field_validator("events_db_dsn")
    @classmethod
    def _postgres_url(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not is_postgres_url(value.get_secret_value()):
            # No detail: the driver's message would repeat parts of the password.
            raise ValueError("must be of the form postgresql://user:password@host:port/database")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.chunk_overlap_tokens * 4 > self.chunk_target_tokens:
            raise ValueError(
                f"CHUNK_OVERLAP_TOKENS={self.chunk_overlap_tokens} must be at most a quarter of "
                f"CHUNK_TARGET_TOKENS={self.chunk_target_tokens}"
            )
        if self.chunk_target_tokens > self.single_piece_max_tokens:
            raise ValueError(
                f"CHUNK_TARGET_TOKENS={self.chunk_target_tokens} must not exceed "
                f"SINGLE_PIECE_MAX_TOKENS={self.single_piece_max_tokens}"
            )
        for name in ("extractor", "embedder"):
            if getattr(self, name) == "openai" and self.openai_api_key is None:
                raise ValueError(f"{name.upper()}=openai needs OPENAI_API_KEY to be set")
        if self.auth == "oauth" and not (self.oauth_issuer and self.oauth_audience):
            raise ValueError("AUTH=oauth needs OAUTH_ISSUER and OAUTH_AUDIENCE to be set")
        return self

    @property
    def allowed_roots(self) -> tuple[Path, ...]:
        """INGEST_ROOTS, resolved."""
        parts = filter(None, self.ingest_roots.split(os.pathsep))
        return tuple(Path(part).expanduser().resolve() for part in parts)

    def admission(self, bound_to: str, *, local_pages: bool = False) -> Admission:
        """The admission rule of a server that listens on that address."""
        hosts, origins = comma_separated(self.allowed_hosts), comma_separated(self.allowed_origins)
        return Admission.of(bound_to, hosts, origins, local_pages=local_pages)

    @property
    def calls_per_minute(self) -> int:
        """The limit of one user; 0: no limit."""
        usual = 0 if self.auth == "none" else 600
        return usual if self.rate_calls_per_minute is None else self.rate_calls_per_minute

    @property
    def tenant_calls_per_minute(self) -> int:
        """The limit of all users of one tenant; 0: no limit."""
        chosen = self.rate_tenant_calls_per_minute
        return 10 * self.calls_per_minute if chosen is None else chosen

    @property
    def chosen_toolsets(self) -> frozenset[str]:
        return frozenset(comma_separated(self.toolsets.lower()))

    @property
    def uses_openai_extractor(self) -> bool:
        return self._uses_openai(self.extractor)

    @property
    def uses_openai_embedder(self) -> bool:
        return self._uses_openai(self.embedder)

    @property
    def local_embedder(self) -> Literal["local", "minilm"]:
        """The embedder that serves if none of a provider does."""
        return "minilm" if self.embedder == "minilm" else "local"

    def _uses_openai(self, choice: str) -> bool:
        return choice == "openai" or (choice == "auto" and self.openai_api_key is not None)

    @property
    def prices(self) -> dict[str, Price]:
        """The prices that are set, by model."""
        return parse_prices(self.model_prices)

    @property
    def chroma_address(self) -> str | None:
        """For people: `host:port`, a URL without its password, or `unix:` and a socket's path."""
        host = self.chroma_host
        if host is None or host.startswith("unix:"):
            return host
        return redact_dsn(host) if "://" in host else f"{host}:{self.chroma_port}"

    @property
    def dsn(self) -> str:
        """The Postgres DSN. `stack` fills it in for the embedded server."""
        if self.events_db_dsn is None:
            raise ConfigurationFault(
                "No Postgres to talk to: EVENTS_DB_DSN is empty and no stack is running. "
                "Start one with `mcp-memory up`, or set EVENTS_DB_DSN."
            )
        return self.events_db_dsn.get_secret_value()

    def environment(self) -> dict[str, str]:
        """All settings as environment variables, for a child process. Contains secrets.

        The child needs no `.env`, home directory or working directory to read them, and still knows
        which of them the user chose.
        """
        variables = {HANDED_OVER: ",".join(sorted(self.model_fields_set))}
        for name in type(self).model_fields:
            value = getattr(self, name)
            if isinstance(value, SecretStr):
                value = value.get_secret_value()
            variables[name.upper()] = "" if value is None else str(value)
        return variables


def comma_separated(text: str) -> list[str]:
    """The parts of a list that is written with commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


SECRET_FIELDS = frozenset({"openai_api_key", "events_db_dsn"})


def load_settings(**overrides: Any) -> Settings:
    """Read the environment. Raises ConfigurationFault with one line per fault."""
    chosen = os.environ.get(HANDED_OVER)
    if chosen is not None:
        overrides = {"_env_file": None, **overrides}
    try:
        settings = Settings(**overrides)
    except ValidationError as error:
        raise ConfigurationFault(_one_line_each(error)) from None
    if chosen is not None:
        return _with_chosen(settings, {*chosen.split(","), *overrides})
    refuse_unknown_names(variable_names())
    return settings


def _with_chosen(settings: Settings, names: set[str]) -> Settings:
    """The same values, of which only those names count as set by the user."""
    chosen = names & Settings.model_fields.keys()
    return Settings.model_construct(chosen, **dict(settings))


@cache
def variable_names() -> frozenset[str]:
    return frozenset(name.upper() for name in Settings.model_fields)


def _one_line_each(error: ValidationError) -> str:
    return "\n".join(_describe(fault) for fault in error.errors(include_url=False))


def _describe(fault: Any) -> str:
    if not fault["loc"]:
        return str(fault["msg"]).removeprefix("Value error, ")
    field = str(fault["loc"][0]).lower()
    # An address may contain a password.
    secret = field in SECRET_FIELDS or "@" in str(fault["input"])
    shown = "***" if secret else repr(fault["input"])
    reason = str(fault["msg"]).removeprefix("Value error, ")
    return f"{field.upper()}={shown} is not allowed: {reason[:1].lower()}{reason[1:]}"
