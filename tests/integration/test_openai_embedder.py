"""Embeddings over HTTP: batches at once, patience with what passes, a clear word for the rest."""

import asyncio
import threading
from collections.abc import AsyncIterator
from types import SimpleNamespace

import pytest
from mcp import Client

from mcp_server.server import build_server
from memory_core.embedding.openai import OpenAIEmbedder
from memory_core.kernel import provider as provider_module
from memory_core.kernel.errors import ErrorCode, ProviderFault
from memory_core.kernel.settings import Settings
from tests.integration.asking import until
from tests.scripted_provider import (
    AuthError,
    DropConnection,
    Fault,
    Held,
    RateLimit,
    RawBody,
    ScriptedProvider,
    ServerError,
    Timeout,
    UnknownModel,
    WrongDimension,
    embed,
)
from tests.tool_client import ToolClient

TOO_LATE = Timeout(4.0)
TEXTS = [f"text number {number}" for number in range(10)]
LONG = "\n\n".join(
    f"Paragraph {number} is about subject {number * 3} and nothing else. " * 3
    for number in range(250)
)


@pytest.fixture
async def embedder(
    openai_settings: Settings, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> AsyncIterator[OpenAIEmbedder]:
    """Patient, but with a provider that answers too late."""
    monkeypatch.setattr(provider_module, "BACKOFF_FIRST_SECONDS", 0.01)
    parameters = getattr(getattr(request.node, "callspec", None), "params", {})
    if isinstance(parameters.get("fault"), Timeout):
        openai_settings = openai_settings.model_copy(
            update={"openai_timeout": TOO_LATE.seconds / 2}
        )
    embedder = OpenAIEmbedder(openai_settings)
    yield embedder
    await embedder.close()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long it would have waited between tries."""
    slept: list[float] = []

    async def note(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(provider_module, "asyncio", SimpleNamespace(sleep=note))
    return slept


# --- batches ---------------------------------------------------------------------------------


async def test_texts_go_in_batches_and_vectors_come_back_in_order(
    embedder: OpenAIEmbedder, provider: ScriptedProvider
) -> None:
    vectors = await embedder.embed(TEXTS)

    assert vectors == [pytest.approx(embed(text, 64)) for text in TEXTS]
    assert sorted(len(call.body["input"]) for call in provider.calls) == [2, 4, 4]
    assert {call.body["dimensions"] for call in provider.calls} == {64}
    assert {call.body["encoding_format"] for call in provider.calls} == {"float"}
    assert {call.body["model"] for call in provider.calls} == {"scripted-embedding"}


async def test_batches_run_at_once_but_not_all(
    embedder: OpenAIEmbedder, provider: ScriptedProvider
) -> None:
    gate = threading.Event()
    provider.enqueue(*[Held(gate)] * 10)

    embedding = asyncio.create_task(embedder.embed(TEXTS * 4))
    await until(lambda: provider.in_flight == 4)
    gate.set()
    await embedding

    assert len(provider.calls) == 10
    assert provider.peak_in_flight == 4


async def test_nothing_to_embed_asks_nothing(
    embedder: OpenAIEmbedder, provider: ScriptedProvider
) -> None:
    assert await embedder.embed([]) == []
    assert provider.calls == []


# --- what passes -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [RateLimit(retry_after=0), RateLimit(retry_after=None), ServerError(500), ServerError(503),
     TOO_LATE, DropConnection()],
    ids=lambda fault: type(fault).__name__,
)  # fmt: skip
async def test_a_passing_fault_is_tried_again(
    embedder: OpenAIEmbedder, provider: ScriptedProvider, fault: Fault
) -> None:
    provider.enqueue(fault)

    vectors = await embedder.embed(["hello"])

    assert vectors == [pytest.approx(embed("hello", 64))]
    assert len(provider.calls) == 2


async def test_only_the_failed_batch_is_sent_again(
    embedder: OpenAIEmbedder, provider: ScriptedProvider
) -> None:
    provider.enqueue(ServerError(500, only=lambda body: TEXTS[5] in body["input"]))

    await embedder.embed(TEXTS)

    asked = [text for call in provider.calls for text in call.body["input"]]
    assert sorted(asked) == sorted(TEXTS + TEXTS[4:8])


async def test_it_waits_as_long_as_the_provider_asks(
    embedder: OpenAIEmbedder, provider: ScriptedProvider, waits: list[float]
) -> None:
    provider.enqueue(RateLimit(retry_after=7), RateLimit(retry_after=1.5))

    await embedder.embed(["hello"])

    assert waits == [7.0, 1.5]


async def test_without_a_wish_of_the_provider_it_waits_longer_each_time(
    embedder: OpenAIEmbedder, provider: ScriptedProvider, waits: list[float]
) -> None:
    provider.enqueue(ServerError(500), ServerError(500))

    await embedder.embed(["hello"])

    first, second = waits
    assert first < second


async def test_a_wait_beyond_reason_is_left_to_the_caller(
    embedder: OpenAIEmbedder, provider: ScriptedProvider, waits: list[float]
) -> None:
    provider.enqueue(RateLimit(retry_after=3600))

    with pytest.raises(ProviderFault) as failed:
        await embedder.embed(["hello"])

    assert failed.value.code is ErrorCode.OPENAI_RATE_LIMIT
    assert failed.value.retry_after == 3600
    assert waits == []


# --- what does not ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (RateLimit(retry_after=0), ErrorCode.OPENAI_RATE_LIMIT),
        (ServerError(500), ErrorCode.OPENAI_CONNECTION_ERROR),
        (TOO_LATE, ErrorCode.OPENAI_TIMEOUT),
        (ServerError(504), ErrorCode.OPENAI_TIMEOUT),
        (DropConnection(), ErrorCode.OPENAI_CONNECTION_ERROR),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_it_gives_up_after_the_configured_tries_and_says_why(
    embedder: OpenAIEmbedder, provider: ScriptedProvider, fault: Fault, code: ErrorCode
) -> None:
    provider.enqueue(fault, fault, fault)

    with pytest.raises(ProviderFault) as failed:
        await embedder.embed(["hello"])

    assert failed.value.code is code
    assert len(provider.calls) == 3


@pytest.mark.parametrize(
    ("fault", "code", "words"),
    [
        (AuthError(), ErrorCode.OPENAI_AUTH_ERROR, "OPENAI_API_KEY"),
        (UnknownModel(), ErrorCode.OPENAI_INVALID_MODEL, "scripted-embedding"),
        (WrongDimension(7), ErrorCode.OPENAI_ERROR, "OPENAI_EMBED_DIMS"),
        (RawBody("<html>It works!</html>"), ErrorCode.OPENAI_ERROR, "OPENAI_BASE_URL"),
        (RawBody('{"object": "list", "data": []}'), ErrorCode.OPENAI_ERROR, "0 vectors"),
        (RawBody('{"detail": "no such page"}'), ErrorCode.OPENAI_ERROR, "OPENAI_BASE_URL"),
        (ServerError(400), ErrorCode.OPENAI_ERROR, "400"),
    ],
)
async def test_what_will_not_pass_fails_at_once_and_says_what_to_do(
    embedder: OpenAIEmbedder,
    provider: ScriptedProvider,
    fault: Fault,
    code: ErrorCode,
    words: str,
) -> None:
    provider.enqueue(fault)

    with pytest.raises(ProviderFault, match=words) as failed:
        await embedder.embed(["hello"])

    assert failed.value.code is code
    assert len(provider.calls) == 1


async def test_a_fault_of_one_batch_among_many_comes_bare(
    embedder: OpenAIEmbedder, provider: ScriptedProvider
) -> None:
    provider.enqueue(AuthError())

    with pytest.raises(ProviderFault) as failed:
        await embedder.embed(TEXTS)

    assert failed.value.code is ErrorCode.OPENAI_AUTH_ERROR


async def test_no_server_is_there(openai_settings: Settings, waits: list[float]) -> None:
    with ScriptedProvider() as gone:
        address = gone.base_url
    embedder = OpenAIEmbedder(openai_settings.model_copy(update={"openai_base_url": address}))

    with pytest.raises(ProviderFault) as failed:
        await embedder.embed(["hello"])

    assert failed.value.code is ErrorCode.OPENAI_CONNECTION_ERROR
    await embedder.close()


# --- through the tools -----------------------------------------------------------------------


async def test_a_long_document_is_embedded_in_batches_despite_faults(
    openai_tools: ToolClient, provider: ScriptedProvider
) -> None:
    provider.enqueue(RateLimit(retry_after=0), ServerError(500), DropConnection())

    answer = await openai_tools(
        "artifact_ingest", artifact_type="doc", source_system="s", source_id="1", content=LONG
    )

    assert answer["num_chunks"] > 8
    assert max(len(call.body["input"]) for call in provider.calls) == 4
    assert len(provider.calls) == -(-answer["num_chunks"] // 4) + 3


async def test_searches_and_memories_use_the_same_model(
    openai_tools: ToolClient, provider: ScriptedProvider
) -> None:
    await openai_tools("memory_store", content="Likes green tea", type="fact", confidence=1)

    answer = await openai_tools("memory_search", query="green tea")
    health = await openai_tools("embedding_health")

    assert [memory["content"] for memory in answer["memories"]] == ["Likes green tea"]
    assert (health["provider"], health["model"], health["dimension"]) == (
        "openai",
        "scripted-embedding",
        64,
    )
    assert health["collections"]["memory"] == 1


async def test_a_refused_key_is_reported_without_showing_it(
    openai_tools: ToolClient, provider: ScriptedProvider
) -> None:
    provider.enqueue(*[AuthError()] * 8)

    error = await openai_tools.refusal("embedding_health")

    assert error["error_code"] == "OPENAI_AUTH_ERROR"
    assert "OPENAI_API_KEY" in error["error"]
    assert "sk-scripted" not in str(error)


async def test_with_a_refused_key_searches_go_by_words(
    openai_tools: ToolClient, provider: ScriptedProvider
) -> None:
    await openai_tools("memory_store", content="Likes tea", type="fact", confidence=1)
    provider.enqueue(*[AuthError()] * 8)

    [memory] = (await openai_tools("memory_search", query="tea"))["memories"]
    [hit] = (await openai_tools("hybrid_search", query="tea"))["results"]

    assert memory["content"] == hit["text"] == "Likes tea"


async def test_vectors_of_two_models_are_never_mixed(
    openai_tools: ToolClient, openai_settings: Settings
) -> None:
    """The index was made with one model; a server with another one searches by words, and says
    what to do where it is asked about the index."""
    other = openai_settings.model_copy(update={"openai_embed_dims": 32})
    await openai_tools("memory_store", content="Likes tea", type="fact", confidence=1)
    async with Client(build_server(other)) as client:
        tools = ToolClient(client)
        error = await tools.refusal("embedding_health")
        [memory] = (await tools("memory_search", query="tea"))["memories"]

    assert error["error_code"] == "EMBEDDING_MISMATCH"
    assert "reindex" in error["error"]
    assert error["details"]["found"]["dimension"] == 64
    assert error["details"]["configured"]["dimension"] == 32
    assert memory["content"] == "Likes tea"
