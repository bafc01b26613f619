"""Short memories: stored once, found by meaning, listed newest first, forgotten for good."""

import asyncio

import psycopg
import pytest

from memory_core.assistant import memories
from memory_core.index.generation import CollectionName
from memory_core.runtime import Runtime
from tests.tool_client import Json, ToolClient


async def keep(
    tools: ToolClient, content: str, *, type: str = "fact", confidence: float = 0.9
) -> Json:
    return await tools("memory_store", content=content, type=type, confidence=confidence)


def contents(answer: Json) -> list[str]:
    return [memory["content"] for memory in answer["memories"]]


async def test_a_stored_memory_comes_back_whole(tools: ToolClient) -> None:
    stored = await tools(
        "memory_store",
        content="Prefers answers in français 🇫🇷",
        type="preference",
        confidence=0.75,
        conversation_id="c1",
    )
    [memory] = (await tools("memory_list"))["memories"]

    assert stored == {"memory_id": memory["memory_id"], "status": "created", "indexed": True}
    assert memory["memory_id"].startswith("mem_")
    assert memory["content"] == "Prefers answers in français 🇫🇷"
    assert (memory["type"], memory["confidence"], memory["conversation_id"]) == (
        "preference",
        0.75,
        "c1",
    )


async def test_the_same_again_updates_instead_of_duplicating(tools: ToolClient) -> None:
    first = await keep(tools, "Works at Acme", confidence=0.5)
    again = await keep(tools, "  Works at\n Acme ", confidence=0.8)
    listed = await tools("memory_list")

    assert again == {"memory_id": first["memory_id"], "status": "updated", "indexed": True}
    assert listed["total"] == 1
    assert listed["memories"][0]["confidence"] == 0.8


async def test_the_same_content_of_another_type_is_another_memory(tools: ToolClient) -> None:
    fact = await keep(tools, "Use Postgres", type="fact")
    decision = await keep(tools, "Use Postgres", type="decision")

    assert fact["memory_id"] != decision["memory_id"]
    assert decision["status"] == "created"


async def test_an_update_keeps_the_conversation_it_came_from(tools: ToolClient) -> None:
    await tools(
        "memory_store", content="Likes tea", type="fact", confidence=0.5, conversation_id="c1"
    )
    await keep(tools, "Likes tea")

    assert (await tools("memory_list"))["memories"][0]["conversation_id"] == "c1"


async def test_many_clients_at_once_store_one_memory_once(tools: ToolClient) -> None:
    stored = await asyncio.gather(*(keep(tools, "Lives in Lisbon") for _ in range(8)))

    assert len({answer["memory_id"] for answer in stored}) == 1
    assert sorted(answer["status"] for answer in stored) == ["created"] + ["updated"] * 7
    assert (await tools("memory_list"))["total"] == 1


async def test_search_is_by_meaning_best_first(tools: ToolClient) -> None:
    await keep(tools, "The cat sleeps on the sofa")
    await keep(tools, "Prefers to travel by train instead of by plane", type="preference")
    await keep(tools, "The database runs on port 5432")

    answer = await tools("memory_search", query="railway journeys or flights?")

    assert contents(answer)[0] == "Prefers to travel by train instead of by plane"
    similarities = [memory["similarity"] for memory in answer["memories"]]
    assert similarities == sorted(similarities, reverse=True)


@pytest.mark.parametrize("ranking", ["scores", "rrf"])
async def test_a_word_finds_what_the_meaning_does_not(
    tools: ToolClient, runtime: Runtime, ranking: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names and numbers mean nothing to an embedder: the memory that has them comes first."""
    ranked_so = runtime.settings.model_copy(update={"ranking": ranking})
    monkeypatch.setattr(runtime, "settings", ranked_so)
    for number in range(30):
        await keep(tools, f"The printer on floor {number} needs a new ticket system")
    await keep(tools, "Zxqv-8841 belongs to Ann")

    results = await memories.search(
        runtime, "ticket zxqv-8841", limit=3, min_confidence=0, memory_type=None
    )

    row, similarity = results[0]
    assert row.content == "Zxqv-8841 belongs to Ann"
    assert -1 <= similarity <= 1


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("coffee -milk", {"Drinks black coffee"}),
        ("-coffee", {"Works at Acme"}),
        ('"black coffee"', {"Drinks black coffee"}),
        ("milk OR Acme", {"Coffee with oat milk", "Works at Acme"}),
        ('"coffee black"', {"Drinks black coffee", "Coffee with oat milk"}),  # nobody has it
    ],
)
async def test_search_obeys_operators(tools: ToolClient, query: str, expected: set[str]) -> None:
    for content in ("Coffee with oat milk", "Drinks black coffee", "Works at Acme"):
        await keep(tools, content)

    assert set(contents(await tools("memory_search", query=query))) == expected


async def test_search_filters_before_it_limits(tools: ToolClient) -> None:
    for index in range(12):
        await keep(tools, f"Tea number {index} is good", confidence=0.2)
    await keep(tools, "Coffee with milk in the morning", type="preference", confidence=1)

    sure = await tools("memory_search", query="tea", min_confidence=1.0, limit=1)
    preferred = await tools("memory_search", query="tea", type="preference", limit=1)
    both = await tools("memory_search", query="tea", type="fact", min_confidence=0.3)

    assert contents(sure) == contents(preferred) == ["Coffee with milk in the morning"]
    assert contents(both) == []


async def test_a_filter_does_not_lose_what_has_the_word_among_many_that_fail_it(
    tools: ToolClient, sql: psycopg.Connection
) -> None:
    """More memories of another type have the word than are ranked; others are nearer in meaning."""
    sql.execute(
        "INSERT INTO memory (memory_id, type, content, content_hash, confidence)"
        " SELECT 'mem_' || n, 'fact', 'Zxqv', md5(n::text), 0.9 FROM generate_series(1, 150) n"
    )
    for number in range(20):
        await keep(tools, f"Travels by train number {number}", type="preference")
    wanted = "Prefers Zxqv to everything that was ever said about engines, boats and bread"
    await keep(tools, wanted, type="preference")

    found = await tools("memory_search", query="zxqv railway journeys", type="preference")

    assert wanted in contents(found)


async def test_search_in_an_empty_memory_finds_nothing(tools: ToolClient) -> None:
    assert await tools("memory_search", query="anything") == {"memories": []}


async def test_list_is_newest_first_and_filters_before_it_limits(tools: ToolClient) -> None:
    await keep(tools, "An old decision", type="decision")
    for index in range(5):
        await keep(tools, f"Fact {index}")

    newest = await tools("memory_list", limit=2)
    further = await tools("memory_list", limit=2, offset=2)
    decisions = await tools("memory_list", type="decision", limit=1)

    assert contents(newest) == ["Fact 4", "Fact 3"]
    assert contents(further) == ["Fact 2", "Fact 1"]
    assert contents(decisions) == ["An old decision"]
    assert (newest["total"], decisions["total"]) == (6, 1)


async def test_an_updated_memory_is_the_newest(tools: ToolClient) -> None:
    await keep(tools, "First")
    await keep(tools, "Second")
    await keep(tools, "First")

    assert contents(await tools("memory_list")) == ["First", "Second"]


async def test_a_deleted_memory_is_gone_everywhere(
    tools: ToolClient, runtime: Runtime, sql: psycopg.Connection
) -> None:
    stored = await keep(tools, "Keeps the spare key under the mat")

    deleted = await tools("memory_delete", memory_id=stored["memory_id"])

    assert deleted == {"memory_id": stored["memory_id"], "deleted": True, "indexed": True}
    assert contents(await tools("memory_search", query="spare key")) == []
    assert (await tools("memory_list"))["total"] == 0
    assert (await tools("hybrid_search", query="spare key"))["results"] == []
    assert await runtime.vectors.count(CollectionName.MEMORY) == 0
    assert (await tools.refusal("memory_delete", memory_id=stored["memory_id"]))[
        "error_code"
    ] == "NOT_FOUND"


async def test_a_vector_that_postgres_does_not_know_is_not_found(
    tools: ToolClient, sql: psycopg.Connection
) -> None:
    await keep(tools, "Allergic to peanuts")
    sql.execute("DELETE FROM memory")

    assert contents(await tools("memory_search", query="allergic to peanuts")) == []


async def test_white_space_alone_is_no_memory(tools: ToolClient) -> None:
    error = await tools.refusal("memory_store", content=" \n\t", type="fact", confidence=1)

    assert error["error_code"] == "VALIDATION_ERROR"
    assert error["details"]["parameter"] == "content"
