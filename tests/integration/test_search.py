"""artifact_search and hybrid_search: the right passage, at its exact place, of what is latest."""

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest

from memory_core.artifacts.entries import entry_metadata
from memory_core.passages import meaning, words
from memory_core.runtime import Runtime
from memory_core.times import parse_time
from memory_core.vectors import CollectionName, Entry, VectorStore
from tests.tool_client import Json, ToolClient

DEMO = Path(__file__).resolve().parents[2] / "demo"
MANIFEST: list[Json] = json.loads((DEMO / "manifest.json").read_text(encoding="utf-8"))
DOCUMENTS = len({document["source_id"] for document in MANIFEST})
REVIEW = "rec-20260210-lantern-review"  # the one that is long enough for chunks
SOURCES = {"full_text", "dense_chunks", "dense_artifacts", "memory_full_text", "dense_memory"}


@pytest.fixture
async def corpus(
    _session_client: ToolClient,
    _session_runtime: Runtime,
    sql: psycopg.Connection,
) -> ToolClient:
    """Every tool, over the shipped sample. Tests that use it only read."""
    tools = _session_client
    held = sql.execute("SELECT count(DISTINCT artifact_uid) FROM artifact_revision").fetchone()
    if held != (DOCUMENTS,):
        sql.execute("TRUNCATE artifact_revision, event_jobs, memory CASCADE")
        for name in CollectionName:
            await _session_runtime.vectors.recreate(name)
        for document in MANIFEST:
            content = (DEMO / document["file"]).read_bytes().decode()
            fields = {name: value for name, value in document.items() if name != "file"}
            await tools("artifact_ingest", content=content, **fields)
    return tools


async def source_ids(tools: ToolClient, tool: str, query: str, **filters: Any) -> list[str]:
    """The documents found, best first."""
    found = []
    for hit in (await tools(tool, query=query, **filters))["results"]:
        if hit["artifact_uid"] is not None:
            document = await tools("artifact_get", artifact_uid=hit["artifact_uid"])
            found.append(document["source_id"])
    return found


# --- relevance -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("parking badge", "note-parking"),
        ("data processing agreement with Keyhaven", "msg-20260122-1105-ps"),
        ("who does what in Project Lantern", "doc-lantern-roles"),
        ("kickoff minutes", "doc-lantern-kickoff"),
        ("beta release notes", "doc-release-notes-4b1"),
        ("Brightwater Cycles beta check-in", "rec-20260327-brightwater"),
        ("scope of the beta: what is in and what is out", "doc-beta-scope"),
        ("王 小明", "note-beta-voices-w1"),
        ("liability cap and sub-processor notice", "msg-20260122-1105-ps"),
    ],
)
@pytest.mark.parametrize("tool", ["artifact_search", "hybrid_search"])
async def test_a_known_document_is_found_near_the_top(
    corpus: ToolClient, tool: str, query: str, expected: str
) -> None:
    assert expected in (await source_ids(corpus, tool, query))[:3]


@pytest.mark.parametrize(
    "question",
    [
        question
        for question in json.loads((DEMO / "questions.json").read_text(encoding="utf-8"))
        # This one asks for superseded text, which a text search does not look at.
        if "between revision" not in question["question"]
    ],
    ids=lambda question: question["question"],
)
async def test_a_question_finds_documents_that_answer_it(
    corpus: ToolClient, question: Json
) -> None:
    source_of = {document["file"]: document["source_id"] for document in MANIFEST}
    answering = {source_of[expected["file"]] for expected in question["expects"]}

    found = await source_ids(corpus, "artifact_search", question["question"])

    assert len(answering & set(found[:5])) >= 2


async def test_a_document_is_found_by_words_that_only_its_title_has(tools: ToolClient) -> None:
    titled = await note(tools, "We met and talked.", title="Boathouse committee")
    await note(tools, "Another text altogether.", source_id="other", title="Budget")

    [first, *_] = (await tools("artifact_search", query="boathouse"))["results"]

    assert first["artifact_uid"] == titled["artifact_uid"]
    assert "full_text" in first["sources"]
    assert first["passage"] == "We met and talked."


async def test_hits_are_best_first_and_say_who_found_them(corpus: ToolClient) -> None:
    hits = (await corpus("hybrid_search", query="passkey sign-in"))["results"]

    assert len(hits) == 10
    assert [hit["score"] for hit in hits] == sorted((h["score"] for h in hits), reverse=True)
    assert all(hit["sources"] and set(hit["sources"]) <= SOURCES for hit in hits)
    assert {"full_text", "dense_artifacts"} <= {name for hit in hits for name in hit["sources"]}


async def test_artifact_search_gives_each_document_once(corpus: ToolClient) -> None:
    hits = (await corpus("artifact_search", query="Alice Marcus beta", limit=50))["results"]

    uids = [hit["artifact_uid"] for hit in hits]
    assert len(uids) == len(set(uids)) > 10
    assert all(hit["title"] for hit in hits)


@pytest.mark.parametrize("tool", ["artifact_search", "hybrid_search"])
@pytest.mark.parametrize("limit", [1, 3, 50])
async def test_never_more_than_the_limit(corpus: ToolClient, tool: str, limit: int) -> None:
    assert 1 <= len((await corpus(tool, query="beta", limit=limit))["results"]) <= limit


# --- exactness -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "text"), [("artifact_search", "passage"), ("hybrid_search", "text")]
)
async def test_every_hit_stands_at_its_offsets(corpus: ToolClient, tool: str, text: str) -> None:
    hits = (await corpus(tool, query="decided pricing passkey 新しい", limit=50))["results"]

    assert any(hit["chunk_id"] for hit in hits)
    for hit in hits:
        document = await corpus("artifact_get", artifact_uid=hit["artifact_uid"])
        assert hit["revision_id"] == document["revision_id"], "the latest"
        assert document["content"][hit["start_char"] : hit["end_char"]] == hit[text]


async def test_search_inside_one_document(corpus: ToolClient, sql: psycopg.Connection) -> None:
    uid = uid_of(sql, REVIEW)

    hits = (await corpus("hybrid_search", query="free plan", artifact_uid=uid, limit=50))["results"]

    assert {hit["artifact_uid"] for hit in hits} == {uid}
    assert len(hits) > 2
    assert len({hit["chunk_id"] for hit in hits}) == len(hits), "no passage twice"
    assert "free plan" in hits[0]["text"]


async def test_neighbours_are_the_chunks_before_and_after(
    corpus: ToolClient, sql: psycopg.Connection
) -> None:
    uid = uid_of(sql, REVIEW)
    document = await corpus("artifact_get", artifact_uid=uid, expand_chunks=True)
    chunks = document["chunks"]

    hits = (
        await corpus(
            "hybrid_search", query="free plan", artifact_uid=uid, expand_neighbors=True, limit=50
        )
    )["results"]

    for hit in hits:
        index = next(c["chunk_index"] for c in chunks if c["chunk_id"] == hit["chunk_id"])
        beside = [c for c in chunks if abs(c["chunk_index"] - index) == 1]
        assert [n["chunk_id"] for n in hit["neighbors"]] == [c["chunk_id"] for c in beside]
        assert [n["text"] for n in hit["neighbors"]] == [c["content"] for c in beside]
    plain = (await corpus("hybrid_search", query="free plan", artifact_uid=uid))["results"]
    assert all(hit["neighbors"] == [] for hit in plain)


def uid_of(sql: psycopg.Connection, source_id: str) -> str:
    row = sql.execute(
        "SELECT artifact_uid FROM artifact_revision WHERE source_id = %s", [source_id]
    ).fetchone()
    assert row is not None
    return str(row[0])


# --- filters ---------------------------------------------------------------------------------


def matching(**wanted: Any) -> set[str]:
    """Source ids of the sample's latest revisions that match, read off the manifest."""
    latest = {document["source_id"]: document for document in MANIFEST}
    # beta-scope ends with its first revision restored, and keeps that revision's own date.
    latest["doc-beta-scope"] = next(d for d in MANIFEST if d["file"].endswith("beta-scope.r1.md"))
    return {
        source_id
        for source_id, document in latest.items()
        if all(document[name] == value for name, value in wanted.items())
    }


@pytest.mark.parametrize("tool", ["artifact_search", "hybrid_search"])
@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"artifact_type": "email"}, matching(artifact_type="email")),
        ({"artifact_type": "transcript"}, matching(artifact_type="transcript")),
        ({"source_system": "slack"}, matching(source_system="slack")),
        (
            {"artifact_type": "doc", "source_system": "google_drive"},
            matching(artifact_type="doc", source_system="google_drive"),
        ),
        ({"artifact_type": "doc", "source_system": "slack"}, set()),
        ({"source_system": "no such system"}, set()),
        (
            {"time_from": "2026-03-27", "time_to": "2026-03-31"},
            {"rec-20260327-brightwater", "note-beta-voices-w1"},
        ),
        # Both ends belong to the interval, and offsets are understood.
        (
            {"time_from": "2026-01-14T15:03:00+01:00", "time_to": "2026-01-14T14:03:00Z"},
            {"lantern-pricing-2026-01-14"},
        ),
        ({"time_from": "2027-01-01"}, set()),
        ({"time_from": "2026-04-01", "time_to": "2026-01-01"}, set()),
    ],
)
async def test_filters(
    corpus: ToolClient, tool: str, filters: dict[str, str], expected: set[str]
) -> None:
    found = await source_ids(corpus, tool, "beta pricing sign-in", limit=50, **filters)

    assert set(found) == expected


async def test_type_is_another_name_for_artifact_type(corpus: ToolClient) -> None:
    by_type = await corpus("artifact_search", query="beta", type="note")
    by_artifact_type = await corpus("artifact_search", query="beta", artifact_type="note")

    assert by_type == by_artifact_type
    assert {hit["artifact_type"] for hit in by_type["results"]} == {"note"}


# --- any query is a fair query ---------------------------------------------------------------


async def test_operators_of_web_search(corpus: ToolClient) -> None:
    async def by_words(query: str) -> set[str]:
        hits = (await corpus("hybrid_search", query=query, limit=50))["results"]
        return {hit["text"] for hit in hits if "full_text" in hit["sources"]}

    phrase = await by_words('"top drawer"')
    without = await by_words("passkey -beta")
    either = await by_words("parking OR Keyhaven")

    assert phrase
    assert all("top drawer" in text for text in phrase)
    assert without
    assert all("beta" not in text.lower() for text in without)
    assert any("parking" in text for text in either)
    assert any("Keyhaven" in text for text in either)


async def test_what_a_query_excludes_does_not_come_back_by_its_meaning(tools: ToolClient) -> None:
    """Nor does what is near to a phrase and does not have it; memories as well."""
    await note(tools, "The otters moved into the boathouse.", source_id="one")
    await note(tools, "The otters moved into the garden.", source_id="two")
    await tools("memory_store", content="Otters like the boathouse", type="fact", confidence=1)
    await tools("memory_store", content="Otters like eels", type="fact", confidence=1)

    without = await found_texts(tools, "otters -boathouse")
    phrase = await found_texts(tools, '"otters moved into the boathouse"')
    only = await found_texts(tools, "-boathouse")

    assert set(without) == {"The otters moved into the garden.", "Otters like eels"}
    assert phrase == ["The otters moved into the boathouse."]
    assert set(only) == set(without)


async def test_a_hyphen_between_words_excludes_nothing(tools: ToolClient) -> None:
    await note(tools, "The otters moved into the boathouse.")

    [hit] = (await tools("hybrid_search", query="otters - boathouse"))["results"]

    assert "full_text" in hit["sources"]


async def test_all_words_come_before_some_however_old(
    tools: ToolClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of common words the newest are ranked alone."""
    monkeypatch.setattr(words, "_RANKED_MATCHES", 2)
    for number in range(8):
        text = "Otters sleep by the river." if number % 2 else "Otters and badgers sleep."
        await note(tools, f"{text} {number}", source_id=f"{number}", ts=f"2026-01-0{number + 1}")
    old = "Otters and badgers sleep by the river."
    await note(tools, old, source_id="old", ts="2020-01-01")

    for query in ("otters badgers river", "do otters and badgers sleep by the river?"):
        hits = (await tools("hybrid_search", query=query, limit=50))["results"]
        by_words = [hit["text"] for hit in hits if "full_text" in hit["sources"]]
        assert by_words[0] == old
        assert len(by_words) == 3


@pytest.mark.parametrize("unknown", ["zorgle", "zorgle frobnicated quuxly"])
async def test_words_that_are_nowhere_hide_nothing(tools: ToolClient, unknown: str) -> None:
    await note(tools, "The otters moved into the boathouse.")

    [hit] = (await tools("hybrid_search", query=f"{unknown} otters"))["results"]

    assert "full_text" in hit["sources"]


@pytest.mark.parametrize(
    "query",
    [
        *("...", "!!!", "&", "|", "!", "(", ")", "<->", ":*", "'", '"', '""', "\\", "%", "_", "-"),
        *("a & b", "a | !b", "!(a", "'unclosed", '"unclosed', "\\'", "a:*b", "a <2> b", "'a' & "),
        *("👍", "👩‍👩‍👧‍👦", "\u200f", "\ufeff", "\u0301", "   ", "\n\t", "the", "and or not"),
        *("null", "true", '{"a": 1}', "[1, 2]", "1; DROP TABLE memory", "%(query)s", "{}", "%s"),
        *("https://a.example/?x=1&y=2!z", "a@b.example", "C++ & C#", "x" * 500, "🦊" * 500),
        *("<|endoftext|>", "OR", "-beta", "--", "OR OR", '" OR "'),
    ],
)
async def test_no_query_is_an_error(corpus: ToolClient, query: str) -> None:
    for tool in ("hybrid_search", "artifact_search", "memory_search"):
        await corpus(tool, query=query, limit=2)


# --- memories --------------------------------------------------------------------------------


async def test_memories_are_found_beside_documents(tools: ToolClient) -> None:
    memory = await tools(
        "memory_store", content="Otters are fond of eels", type="fact", confidence=1
    )
    await note(tools, "The otters moved into the boathouse.")

    both = (await tools("hybrid_search", query="otters"))["results"]
    documents = (await tools("hybrid_search", query="otters", include_memory=False))["results"]

    assert {hit["kind"] for hit in both} == {"memory", "artifact"}
    [found] = [hit for hit in both if hit["kind"] == "memory"]
    assert (found["memory_id"], found["memory_type"]) == (memory["memory_id"], "fact")
    assert found["text"] == "Otters are fond of eels"
    assert set(found["sources"]) == {"memory_full_text", "dense_memory"}
    assert (found["artifact_uid"], found["start_char"]) == (None, None)
    assert {hit["kind"] for hit in documents} == {"artifact"}


async def test_a_filtered_search_leaves_memories_out(tools: ToolClient) -> None:
    await tools("memory_store", content="Otters are fond of eels", type="fact", confidence=1)
    await note(tools, "The otters moved into the boathouse.")

    hits = (await tools("hybrid_search", query="otters", artifact_type="note"))["results"]

    assert {hit["kind"] for hit in hits} == {"artifact"}


# --- only what is latest, whatever Chroma says ------------------------------------------------


async def note(tools: ToolClient, content: str, **changes: Any) -> Json:
    document = {
        "artifact_type": "note",
        "source_system": "notes",
        "source_id": "otters",
        "content": content,
    }
    return await tools("artifact_ingest", **{**document, **changes})


async def found_texts(tools: ToolClient, query: str) -> list[str]:
    return [hit["text"] for hit in (await tools("hybrid_search", query=query, limit=50))["results"]]


async def test_superseded_text_is_not_found(tools: ToolClient) -> None:
    await note(tools, "The otters moved into the boathouse.")
    await note(tools, "The badgers stayed in the garden.")

    assert await found_texts(tools, "otters boathouse") == ["The badgers stayed in the garden."]


@pytest.mark.parametrize("length", [1, 60], ids=["short", "long"])
async def test_only_chunks_of_latest_revisions_are_gone_through(
    tools: ToolClient, sql: psycopg.Connection, length: int
) -> None:
    def entries() -> list[tuple[str, int]]:
        return sql.execute(
            "SELECT revision_id, count(*) FROM chunk_entry GROUP BY revision_id"
        ).fetchall()

    first, second = "The otters moved into the boathouse. ", "Badgers stayed in the garden. "
    for content in (first, second, first, second):
        stored = await note(tools, content * 15 * length)
        assert entries() == [(stored["revision_id"], max(stored["num_chunks"], 1))]

    await tools("artifact_delete", artifact_uid=stored["artifact_uid"])
    assert entries() == []


@pytest.mark.parametrize("length", [1, 60], ids=["short", "long"])
async def test_superseded_vectors_are_ignored_also_when_chroma_takes_them_for_latest(
    tools: ToolClient, runtime: Runtime, length: int
) -> None:
    old = await note(tools, "The otters moved into the boathouse. " * 15 * length)
    await note(tools, "The badgers stayed in the garden.")
    await runtime.vectors.set_latest(CollectionName.ARTIFACTS, [old["artifact_id"]], latest=True)
    if old["is_chunked"]:
        await runtime.vectors.set_latest(CollectionName.CHUNKS, old["stored_ids"][1:], latest=True)

    assert await found_texts(tools, "otters boathouse") == ["The badgers stayed in the garden."]


async def test_entries_of_revisions_that_postgres_does_not_have_are_ignored(
    tools: ToolClient, runtime: Runtime
) -> None:
    [vector] = await runtime.embedder.embed(["The otters moved into the boathouse."])
    written = parse_time("ts", "2026-01-01")
    assert written is not None
    orphan = Entry(
        id="art_orphan",
        vector=vector,
        document="The otters moved into the boathouse.",
        metadata=entry_metadata(
            uid="uid_orphan",
            revision="rev_orphan",
            artifact_id="art_orphan",
            artifact_type="note",
            source_system="notes",
            time=written,
            latest=True,
        ),
    )
    await runtime.vectors.upsert(CollectionName.ARTIFACTS, [orphan])
    await runtime.vectors.upsert(CollectionName.CHUNKS, [orphan])

    assert await found_texts(tools, "otters boathouse") == []
    assert (await tools("artifact_search", query="otters boathouse"))["results"] == []


async def test_a_hit_in_text_with_null_characters_is_exact(tools: ToolClient) -> None:
    content = "".join(f"Otter {n}\x00 swam past.\r\n" for n in range(700))
    stored = await note(tools, content)
    assert stored["is_chunked"]

    for hit in (await tools("hybrid_search", query="otter 345", limit=50))["results"]:
        assert content[hit["start_char"] : hit["end_char"]] == hit["text"]


async def test_documents_without_a_date_are_filtered_by_their_arrival(tools: ToolClient) -> None:
    await note(tools, "The otters moved into the boathouse.")

    now = await tools("hybrid_search", query="otters", time_from="2020-01-01")
    then = await tools("hybrid_search", query="otters", time_to="2020-01-01")

    assert len(now["results"]) == 1
    assert set(now["results"][0]["sources"]) == {"full_text", "dense_artifacts"}
    assert then["results"] == []


async def test_an_empty_memory_has_no_hits(tools: ToolClient) -> None:
    assert await tools("hybrid_search", query="anything") == {"results": []}
    assert await tools("artifact_search", query="anything") == {"results": []}


@pytest.mark.parametrize(
    ("compared", "named", "nearest"),
    [
        pytest.param(300, 10_000, (600, 3_000), id="few are compared"),
        pytest.param(0, 10_000, (600, 3_000), id="some are named"),
        pytest.param(-1, 0, (600, 3_000), id="of many, the nearest"),
        pytest.param(-1, 0, (5, 3_000), id="and more of these"),
    ],
)
@pytest.mark.parametrize("long", [False, True], ids=["short", "long"])
async def test_filters_leave_what_is_meant_however_much_is_nearer(
    tools: ToolClient,
    monkeypatch: pytest.MonkeyPatch,
    compared: int,
    named: int,
    nearest: tuple[int, int],
    long: bool,
) -> None:
    monkeypatch.setattr(VectorStore, "comparable", compared)
    monkeypatch.setattr(meaning, "_NAMED", named)
    monkeypatch.setattr(meaning, "_NEAREST", nearest)
    wanted = "Customers complained about the invoice. " * (300 if long else 1)
    for number in range(12):
        await note(tools, f"Client billing complaint {number}.", source_id=f"nearer {number}")
    stored = await note(tools, wanted, source_id="meant", source_system="mail")

    by_source = await tools("hybrid_search", query="client billing", source_system="mail")
    in_document = await tools(
        "hybrid_search", query="client billing", artifact_uid=stored["artifact_uid"]
    )

    dense = "dense_chunks" if long else "dense_artifacts"
    for found in (by_source, in_document):
        assert {hit["artifact_uid"] for hit in found["results"]} == {stored["artifact_uid"]}
        assert dense in {source for hit in found["results"] for source in hit["sources"]}
