"""The contract of the settings, and what is said of those that break it."""

import pytest

from memory_core.kernel.errors import ConfigurationFault
from memory_core.kernel.settings import load_settings

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


def fault_of(**variables: str) -> str:
    """What `load_settings` says about these variables."""
    with pytest.MonkeyPatch.context() as environment:
        for name, value in variables.items():
            environment.setenv(name, value)
        with pytest.raises(ConfigurationFault) as caught:
            load_settings()
    return caught.value.message
