"""artifact_ingest: documents become immutable revisions, exactly as they came in."""

import asyncio
import hashlib
from collections import Counter
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from mcp import Client

from mcp_server.server import build_server
from memory_core.index.generation import CollectionName
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from tests.tool_client import Json, ToolClient

UID = "uid_" + hashlib.sha256(b"notes:kickoff").hexdigest()[:16]
# Long enough for several chunks, every paragraph different.
LONG = "\n\n".join(
    f"Paragraph {number}. The committee met on day {number} and talked about item {number * 7}. "
    f"Nobody objected to the proposal of group {number % 13}, so it was written down."
    for number in range(120)
)


async def ingest(tools: ToolClient, content: str, **changes: Any) -> Json:
    document = {
        "artifact_type": "note",
        "source_system": "notes",
        "source_id": "kickoff",
        "title": "Kick-off",
        "content": content,
    }
    return await tools("artifact_ingest", **{**document, **changes})


async def revisions(tools: ToolClient, uid: str = UID) -> list[Json]:
    history = await tools("artifact_history", artifact_uid=uid)
    return list(history["revisions"])


def rows(sql: psycopg.Connection, query: str) -> list[tuple[Any, ...]]:
    return sql.execute(query).fetchall()  # type: ignore[arg-type]


# --- ids of sources ---------------------------------------------------------------------------


async def test_the_longest_id_of_a_source_is_stored_and_a_longer_one_is_refused(
    tools: ToolClient,
) -> None:
    """Of letters that cannot be compressed, as far as an index holds them."""
    letters = "".join(chr(0x20000 + hash_ % 0xA000) for hash_ in _numbers(700))
    fits, too_long = letters[:640], letters[:690]

    assert (await ingest(tools, "Long", source_id=fits))["status"] == "created"
    refused = await tools.refusal(
        "artifact_ingest",
        artifact_type="note",
        source_system="notes",
        source_id=too_long,
        content="Longer",
    )

    assert (refused["error_code"], refused["details"]["parameter"]) == (
        "VALIDATION_ERROR",
        "source_id",
    )


def _numbers(count: int) -> list[int]:
    digests = (hashlib.sha256(str(number).encode()).digest() for number in range(count))
    return [int.from_bytes(digest[:4], "big") for digest in digests]


# --- what it answers -------------------------------------------------------------------------


async def test_a_new_document_is_created_with_deterministic_ids(tools: ToolClient) -> None:
    answer = await ingest(tools, "Decision: we launch in May.")

    revision = "rev_" + hashlib.sha256(b"Decision: we launch in May.").hexdigest()[:16]
    artifact = "art_" + hashlib.sha256(f"{UID}:{revision}".encode()).hexdigest()[:16]
    assert answer.pop("job_id")
    assert answer == {
        "artifact_uid": UID,
        "revision_id": revision,
        "artifact_id": artifact,
        "is_chunked": False,
        "num_chunks": 0,
        "stored_ids": [artifact],
        "job_status": "PENDING",
        "status": "created",
        "indexed": True,
    }


async def test_a_participant_that_is_no_name_but_a_text_is_refused(tools: ToolClient) -> None:
    refused = await tools.refusal(
        "artifact_ingest",
        content="Minutes.",
        artifact_type="note",
        source_system="test",
        participants=["Alice Chen", "x" * 1_001],
    )

    assert refused["error_code"] == "VALIDATION_ERROR"
    assert refused["details"]["parameter"] == "participants"


async def test_a_long_document_is_stored_in_chunks(
    tools: ToolClient, runtime: Runtime, sql: psycopg.Connection
) -> None:
    answer = await ingest(tools, LONG)
    read = await tools("artifact_get", artifact_uid=UID, expand_chunks=True)

    artifact = answer["artifact_id"]
    assert answer["is_chunked"] is True
    assert answer["num_chunks"] == len(read["chunks"]) > 2
    assert answer["stored_ids"] == [artifact, *(chunk["chunk_id"] for chunk in read["chunks"])]
    for index, chunk in enumerate(read["chunks"]):
        digest = hashlib.sha256(chunk["content"].encode()).hexdigest()
        assert chunk["chunk_index"] == index
        assert chunk["chunk_id"] == f"{artifact}::chunk::{index:03d}::{digest[:8]}"
        assert chunk["content"] == LONG[chunk["start_char"] : chunk["end_char"]]
    assert await runtime.vectors.count(CollectionName.ARTIFACTS) == 1
    assert await runtime.vectors.count(CollectionName.CHUNKS) == answer["num_chunks"]
    assert len(rows(sql, "SELECT 1 FROM revision_chunk")) == answer["num_chunks"]


async def test_the_same_content_again_is_unchanged_and_makes_no_job(
    tools: ToolClient, sql: psycopg.Connection
) -> None:
    first = await ingest(tools, "Same")
    again = await ingest(tools, "Same")

    assert again == {**first, "status": "unchanged", "job_id": None, "job_status": "N/A"}
    assert len(rows(sql, "SELECT 1 FROM event_jobs")) == 1


async def test_other_content_is_a_revision_and_becomes_the_latest(tools: ToolClient) -> None:
    old = await ingest(tools, "First version")
    new = await ingest(tools, "Second version")

    assert new["status"] == "revised"
    assert new["artifact_uid"] == old["artifact_uid"]
    assert new["artifact_id"] != old["artifact_id"]
    assert (await tools("artifact_get", artifact_uid=UID))["content"] == "Second version"
    by_artifact = await tools("artifact_get", artifact_id=old["artifact_id"])
    by_revision = await tools("artifact_get", artifact_uid=UID, revision_id=old["revision_id"])
    assert by_artifact["content"] == by_revision["content"] == "First version"
    assert by_artifact["is_latest"] is False


async def test_the_content_of_an_old_revision_restores_it_without_a_new_job(
    tools: ToolClient, sql: psycopg.Connection
) -> None:
    first = await ingest(tools, LONG)
    await ingest(tools, "Something else")
    restored = await ingest(tools, LONG)

    assert restored == {**first, "status": "restored"}
    assert [(r["revision_id"], r["is_latest"]) for r in await revisions(tools)] == [
        (first["revision_id"], True),
        (rows(sql, "SELECT revision_id FROM artifact_revision WHERE NOT is_latest")[0][0], False),
    ]
    assert len(rows(sql, "SELECT 1 FROM event_jobs")) == 2


async def test_a_restored_revision_is_found_by_meaning_again(
    tools: ToolClient,
) -> None:
    await ingest(tools, "The otters moved into the boathouse.")
    await ingest(tools, "Quarterly tax figures.")
    await ingest(tools, "The otters moved into the boathouse.")

    [hit] = (await tools("hybrid_search", query="otters in the boathouse"))["results"]

    assert "dense_artifacts" in hit["sources"]
    assert hit["text"] == "The otters moved into the boathouse."


async def test_documents_without_a_source_id_are_never_the_same(tools: ToolClient) -> None:
    first = await ingest(tools, "Loose note", source_id=None)
    second = await ingest(tools, "Loose note", source_id=None)

    assert first["artifact_uid"] != second["artifact_uid"]
    assert first["status"] == second["status"] == "created"
    assert first["revision_id"] == second["revision_id"]


async def test_one_source_id_in_two_systems_is_two_documents(tools: ToolClient) -> None:
    first = await ingest(tools, "A", source_system="slack")
    second = await ingest(tools, "A", source_system="gmail")

    assert first["artifact_uid"] != second["artifact_uid"]


async def test_metadata_comes_back_as_given(tools: ToolClient) -> None:
    given_fields = {
        "artifact_type": "email",
        "source_system": "gmail",
        "source_id": "msg-1",
        "source_url": "https://mail.example.com/1",
        "title": "Re: 価格 💶",
        "author": "Zoë Ångström",
        "participants": ["Zoë Ångström", "李雷"],
        "sensitivity": "highly_sensitive",
        "visibility_scope": "custom",
        "retention_policy": "until_resolved",
    }
    answer = await tools(
        "artifact_ingest", content="Hi", ts="2026-03-15T14:30:00+02:00", **given_fields
    )

    read = await tools("artifact_get", artifact_uid=answer["artifact_uid"])

    assert {name: read[name] for name in given_fields} == given_fields
    assert read["source_ts"] == "2026-03-15T12:30:00Z"
    assert read["content_hash"] == hashlib.sha256(b"Hi").hexdigest()


async def test_content_can_be_left_out(tools: ToolClient) -> None:
    await ingest(tools, "Body")

    read = await tools("artifact_get", artifact_uid=UID, include_content=False)

    assert read["content"] is None
    assert read["title"] == "Kick-off"
    assert [chunk["content"] for chunk in read["chunks"]] == [None]


async def test_the_job_waits_for_the_pipeline(tools: ToolClient, sql: psycopg.Connection) -> None:
    answer = await ingest(tools, "Decision: go.")

    [(job_id, uid, revision, status, attempts, by)] = rows(
        sql,
        "SELECT job_id::text, artifact_uid, revision_id, status, attempts, origin "
        "FROM event_jobs WHERE job_type = 'extract_events'",
    )
    assert (job_id, uid, revision) == (answer["job_id"], UID, answer["revision_id"])
    assert (status, attempts, by) == ("PENDING", 0, "ingest")


async def test_partition_keys_are_readable_and_unique(
    tools: ToolClient, sql: psycopg.Connection
) -> None:
    await ingest(tools, "One")
    await ingest(tools, "Two", title=None)
    await ingest(tools, "Three", title="x" * 500)

    keys = [key for (key,) in rows(sql, "SELECT partition_key FROM artifact_revision ORDER BY 1")]

    assert [key.rpartition(":")[0].rstrip("x") for key in keys] == ["kick-off", "kickoff", ""]
    assert len(set(keys)) == 3
    assert max(map(len, keys)) <= 38, "the Dagster UI cuts longer ones"


async def test_history_lists_revisions_oldest_first(tools: ToolClient) -> None:
    await ingest(tools, "One", ts="2026-01-01")
    long = await ingest(tools, LONG, ts="2026-02-01")
    last = await ingest(tools, "Three")

    listed = await revisions(tools)

    assert [revision["is_latest"] for revision in listed] == [False, False, True]
    assert [revision["source_ts"] for revision in listed] == [
        "2026-01-01T00:00:00Z",
        "2026-02-01T00:00:00Z",
        None,
    ]
    assert [revision["chunk_count"] for revision in listed] == [0, long["num_chunks"], 0]
    assert {revision["job_status"] for revision in listed} == {"PENDING"}
    assert {revision["event_count"] for revision in listed} == {0}
    assert listed[-1]["artifact_id"] == last["artifact_id"]
    assert all(revision["token_count"] > 0 for revision in listed)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("artifact_get", {"artifact_uid": "uid_nothing"}),
        ("artifact_get", {"artifact_id": "art_nothing"}),
        ("artifact_history", {"artifact_uid": "uid_nothing"}),
        ("artifact_get", {"artifact_uid": UID, "revision_id": "rev_nothing"}),
    ],
)
async def test_what_is_not_there_is_not_found(
    tools: ToolClient, tool: str, arguments: dict[str, str]
) -> None:
    await ingest(tools, "There")

    error = await tools.refusal(tool, **arguments)

    assert error["error_code"] == "NOT_FOUND"


async def test_documents_are_resources_too(tools: ToolClient) -> None:
    old = await ingest(tools, "Old\x00\r\n")
    await ingest(tools, "New")

    latest = await tools.client.read_resource(f"memory://artifact/{UID}")
    first = await tools.client.read_resource(f"memory://artifact/{UID}/{old['revision_id']}")

    assert latest.contents[0].text == "New"  # type: ignore[union-attr]
    assert first.contents[0].text == "Old\x00\r\n"  # type: ignore[union-attr]


async def test_the_prompt_carries_the_pasted_text(tools: ToolClient) -> None:
    prompt = await tools.client.get_prompt("remember_document", {"pasted": "Dear Ada, …"})

    text = prompt.messages[0].content.text  # type: ignore[union-attr]
    assert "Dear Ada, …" in text
    assert "artifact_ingest" in text


# --- content is kept as it is ----------------------------------------------------------------

AWKWARD = [
    "line\r\nline\rline\n\ttab",
    "nul \x00 in the middle",
    "\x00",
    "␀ is not \x00",  # the stand-in itself occurs in the text
    "👩‍👩‍👧‍👦 🏳️‍🌈 🇫🇷",
    "‏שלום‎ עולם مرحبا",
    "e\u0301 ≠ é, o\u0308\u0323",
    "\ufeffBOM \u2028 line separator \u00ad soft hyphen",
    "<|endoftext|> is text",
    "  leading and trailing  ",
    "\U0010ffff \ue000 \ufffe",
]
TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200).filter(
    lambda text: bool(text.strip())
)


@pytest.mark.parametrize("content", AWKWARD)
async def test_awkward_text_comes_back_exactly(tools: ToolClient, content: str) -> None:
    answer = await ingest(tools, content)

    read = await tools("artifact_get", artifact_uid=UID)

    assert read["content"] == content
    assert answer["revision_id"] == "rev_" + hashlib.sha256(content.encode()).hexdigest()[:16]


@pytest.mark.parametrize("filler", ["\x00", "é", "🦊", "ש", "a\u0301", "\r\n"])
async def test_offsets_stay_exact_in_long_awkward_text(tools: ToolClient, filler: str) -> None:
    content = "".join(f"Line {number} {filler} end.{filler}" for number in range(600))
    await ingest(tools, content)

    read = await tools("artifact_get", artifact_uid=UID, expand_chunks=True)

    assert read["content"] == content
    assert len(read["chunks"]) > 1
    assert_chunks_tile(content, read["chunks"])


@example("\x00␀\x00", 1)
@example("a\r\n", 900)
@given(TEXT, st.integers(1, 60))
@hypothesis_settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
async def test_any_text_comes_back_exactly_in_chunks_that_tile_it(
    tools: ToolClient, content: str, repeat: int
) -> None:
    document = content * repeat
    await ingest(tools, document)

    read = await tools("artifact_get", artifact_uid=UID, expand_chunks=True)

    assert read["content"] == document
    assert_chunks_tile(document, read["chunks"])


def assert_chunks_tile(text: str, chunks: list[Json]) -> None:
    reached = 0
    for chunk in chunks:
        assert chunk["content"] == text[chunk["start_char"] : chunk["end_char"]]
        assert chunk["start_char"] <= reached < chunk["end_char"], "no gap, and some progress"
        reached = chunk["end_char"]
    assert reached == len(text)


@pytest.mark.parametrize("content", ["half an emoji \ud83d", "\udc00", "a\ud800\ud800b"])
async def test_lone_surrogates_get_a_clear_error(
    tools: ToolClient, sql: psycopg.Connection, content: str
) -> None:
    error = await tools.refusal(
        "artifact_ingest", artifact_type="note", source_system="notes", content=content
    )

    assert error["error_code"] == "VALIDATION_ERROR"
    assert "surrogate" in error["error"]
    assert error["details"]["parameter"] == "content"
    assert content[error["details"]["position"]] in "\ud83d\udc00\ud800"
    assert rows(sql, "SELECT 1 FROM artifact_revision") == []


@pytest.mark.parametrize("content", [" ", "\n\r\t", "\u00a0\u2003\u3000", " " * 10_000])
async def test_white_space_alone_is_refused(
    tools: ToolClient, sql: psycopg.Connection, content: str
) -> None:
    error = await tools.refusal(
        "artifact_ingest", artifact_type="note", source_system="notes", content=content
    )

    assert error["error_code"] == "VALIDATION_ERROR"
    assert error["details"]["parameter"] == "content"
    assert rows(sql, "SELECT 1 FROM artifact_revision") == []


# --- many at once ----------------------------------------------------------------------------


async def test_many_clients_with_the_same_content_make_one_revision_and_one_job(
    tools: ToolClient, settings: Settings, sql: psycopg.Connection
) -> None:
    async with Client(build_server(settings)) as other:
        answers = await asyncio.gather(
            *(ingest(client, LONG) for client in [tools, ToolClient(other)] * 6)
        )

    assert Counter(answer["status"] for answer in answers) == {"created": 1, "unchanged": 11}
    assert len({answer["artifact_id"] for answer in answers}) == 1
    assert rows(sql, "SELECT is_latest FROM artifact_revision") == [(True,)]
    assert len(rows(sql, "SELECT 1 FROM event_jobs")) == 1


async def test_many_clients_with_different_contents_lose_no_revision(
    tools: ToolClient, settings: Settings, sql: psycopg.Connection
) -> None:
    contents = [f"Version {number}" for number in range(12)]
    async with Client(build_server(settings)) as other:
        clients = [tools, ToolClient(other)] * 6
        answers = await asyncio.gather(
            *(ingest(client, content) for client, content in zip(clients, contents, strict=True))
        )

    assert Counter(answer["status"] for answer in answers) == {"created": 1, "revised": 11}
    assert len({answer["job_id"] for answer in answers}) == 12
    listed = await revisions(tools)
    assert [revision["is_latest"] for revision in listed] == [False] * 11 + [True]
    stored = {
        (await tools("artifact_get", artifact_id=revision["artifact_id"]))["content"]
        for revision in listed
    }
    assert stored == set(contents)


async def test_two_contents_that_replace_each_other_stay_consistent_everywhere(
    tools: ToolClient, settings: Settings, sql: psycopg.Connection
) -> None:
    """A→B→A→… from two servers: the last text alone is found, by words and meaning."""
    texts = {"otters": "Otters moved into the boathouse.", "taxes": "Quarterly tax figures."}
    async with Client(build_server(settings)) as other:
        clients = [tools, ToolClient(other)]
        await asyncio.gather(
            *(ingest(clients[i % 2], list(texts.values())[i // 2 % 2]) for i in range(16))
        )

    assert len(rows(sql, "SELECT 1 FROM artifact_revision")) == 2
    assert len(rows(sql, "SELECT 1 FROM event_jobs")) == 2
    [(latest,)] = rows(sql, "SELECT revision_id FROM artifact_revision WHERE is_latest")
    for query in texts:
        hits = (await tools("hybrid_search", query=query))["results"]
        assert [hit["revision_id"] for hit in hits] == [latest]
        assert "dense_artifacts" in hits[0]["sources"], "the latest is not hidden from meaning"


# --- progress --------------------------------------------------------------------------------


async def test_long_documents_report_progress(tools: ToolClient) -> None:
    reported: list[tuple[float, float | None, str | None]] = []

    async def note(done: float, total: float | None, message: str | None) -> None:
        reported.append((done, total, message))

    document = {"artifact_type": "doc", "source_system": "notes", "source_id": "long"}
    answer = await tools.client.call_tool(
        "artifact_ingest", {**document, "content": LONG}, progress_callback=note
    )

    assert not answer.is_error
    assert answer.structured_content is not None
    chunks = answer.structured_content["num_chunks"]
    assert reported == [(0, 1, "cutting into chunks"), (chunks, chunks, "storing")]
