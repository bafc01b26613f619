"""Tools through a client in memory, over the real stores."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from mcp import Client
from pydantic import SecretStr

from mcp_server.server import build_server
from memory_core.kernel import provider as provider_module
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from stack.connection import joined_runtime
from tests.backfill_client import Deployment, deployments
from tests.conftest import IndexHost
from tests.integration.asking import opened, stores  # noqa: F401
from tests.integration.commands import command  # noqa: F401
from tests.integration.failing_servers import (  # noqa: F401
    chroma,
    chroma_port,
    chroma_server,
    fragile,
    own_runtime,
    own_settings,
)
from tests.integration.job_queue import crowd, queue  # noqa: F401
from tests.integration.many_events import looking, million, plans_dsn  # noqa: F401
from tests.integration.planted_events import Garden
from tests.integration.searched_events import planted, searched  # noqa: F401
from tests.integration.searched_text import corpus  # noqa: F401
from tests.pipeline_client import SMALL_CHUNKS, Pipeline, with_openai
from tests.scripted_provider import ScriptedProvider
from tests.tool_client import ToolClient, in_one_task

API_KEY = "sk-scripted-0123456789"


@pytest.fixture(scope="session")
async def _session_client(services: Settings) -> AsyncIterator[ToolClient]:
    async with in_one_task(Client(build_server(services))) as client:
        yield ToolClient(client)


@pytest.fixture
async def tools(_session_client: ToolClient, runtime: Runtime) -> ToolClient:
    """Every tool, over empty stores."""
    return _session_client


@pytest.fixture
def sql(services: Settings) -> Iterator[psycopg.Connection]:
    """A look behind the tools."""
    with psycopg.connect(services.dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def own_database(services: Settings) -> Iterator[str]:
    """An empty database of its own, on the same server."""
    with psycopg.connect(services.dsn, autocommit=True) as admin:
        admin.execute("CREATE DATABASE own_database")
        yield urlunsplit(urlsplit(services.dsn)._replace(path="/own_database"))
        admin.execute("DROP DATABASE own_database WITH (FORCE)")


@pytest.fixture(scope="session")
def _session_provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider() as provider:
        yield provider


@pytest.fixture
def provider(_session_provider: ScriptedProvider) -> ScriptedProvider:
    _session_provider.reset()
    return _session_provider


@pytest.fixture
def deployment(runtime: Runtime, provider: ScriptedProvider, tmp_path: Path) -> Deployment:
    """Makes deployments over the same stores, each with prompts of its own."""
    return deployments(runtime, provider, tmp_path)


@pytest.fixture
def openai_settings(provider: ScriptedProvider, settings: Settings) -> Settings:
    """Embeddings from the scripted provider, in small batches."""
    return settings.model_copy(
        update={
            "embedder": "openai",
            "openai_api_key": SecretStr(API_KEY),
            "openai_base_url": provider.base_url,
            "openai_embed_model": "scripted-embedding",
            "openai_embed_dims": 64,
            "openai_batch_size": 4,
            "openai_max_retries": 2,
            "openai_timeout": 60.0,
        }
    )


@pytest.fixture
async def openai_tools(
    openai_settings: Settings, index_host: IndexHost, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[ToolClient]:
    """Every tool, with embeddings from the scripted provider, over empty stores."""
    monkeypatch.setattr(provider_module, "BACKOFF_FIRST_SECONDS", 0.01)
    other = joined_runtime(openai_settings, unasked="a test looks at what is stored")
    await other.open()
    await index_host.serve(other)
    async with in_one_task(Client(build_server(openai_settings))) as client:
        yield ToolClient(client)
    await index_host.stop()
    await other.close()


@pytest.fixture
def garden(tools: ToolClient, runtime: Runtime, sql: psycopg.Connection) -> Garden:
    return Garden(tools, runtime, sql)


@pytest.fixture
def openai(runtime: Runtime, provider: ScriptedProvider) -> Pipeline:
    """A deployment whose documents come in small chunks and go to the scripted provider."""
    settings = with_openai(runtime.settings, provider, **SMALL_CHUNKS)
    return Pipeline(runtime, **settings.model_dump())


@pytest.fixture
def patient(openai: Pipeline) -> Pipeline:
    """One that waits for an answer as long as the test does."""
    return Pipeline(openai.runtime, openai_timeout=600.0)
