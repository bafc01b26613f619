"""artifact_search and hybrid_search: the right passage, at its exact place, of what is latest."""

import itertools
import json
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
import pytest

from memory_core.index.generation import CollectionName
from memory_core.index.store import VectorStore
from memory_core.runtime import Runtime
from memory_core.search import passage_meaning, passages
from memory_core.search.passage import Passage
from memory_core.search.passage_filters import Filters
from memory_core.search.similarity import NO_TEXT_HAS_A_WORD
from memory_core.search.windows import WINDOW_CHARS
from tests.indexing import plant
from tests.integration.searched_text import DEMO, MANIFEST, found_texts, note
from tests.tool_client import Json, ToolClient

REVIEW = "rec-20260210-lantern-review"  # the one that is long enough for chunks
SOURCES = {"full_text", "dense_chunks", "dense_artifacts", "memory_full_text", "dense_memory"}


async def source_ids(tools: ToolClient, tool: str, query: str, **filters: Any) -> list[str]:
    """The documents found, best first."""
    ids = []
    for hit in (await tools(tool, query=query, **filters))["results"]:
        if hit["artifact_uid"] is not None:
            document = await tools("artifact_get", artifact_uid=hit["artifact_uid"])
            ids.append(document["source_id"])
    return ids


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

    ids = await source_ids(corpus, "artifact_search", question["question"])

    assert len(answering & set(ids[:5])) >= 2


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
    for chunk in {hit["chunk_id"] for hit in hits}:
        spans = sorted(
            (hit["start_char"], hit["end_char"]) for hit in hits if hit["chunk_id"] == chunk
        )
        assert all(one[1] <= other[0] for one, other in itertools.pairwise(spans)), "nothing twice"
    assert "free plan" in hits[0]["text"]


async def test_whole_chunks_are_shown_once_each(
    corpus: ToolClient, sql: psycopg.Connection
) -> None:
    uid = uid_of(sql, REVIEW)
    text = (await corpus("artifact_get", artifact_uid=uid))["content"]

    hits = (
        await corpus(
            "hybrid_search", query="free plan", artifact_uid=uid, limit=50, full_chunks=True
        )
    )["results"]

    spans = sorted((hit["start_char"], hit["end_char"]) for hit in hits)
    assert len({hit["chunk_id"] for hit in hits}) == len(hits)
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(spans)), "nothing twice"
    assert all(text[hit["start_char"] : hit["end_char"]] == hit["text"] for hit in hits)
    assert max(len(hit["text"]) for hit in hits) > 1_000


@pytest.mark.parametrize("full_chunks", [False, True])
async def test_a_hit_says_which_part_of_it_answers(corpus: ToolClient, full_chunks: bool) -> None:
    hits = (await corpus("hybrid_search", query="passkey sign-in", full_chunks=full_chunks))[
        "results"
    ]

    for hit in hits:
        if hit["kind"] != "memory":
            shown = hit["highlight"]
            assert hit["start_char"] <= shown["start_char"] < shown["end_char"] <= hit["end_char"]


@pytest.mark.parametrize(
    ("tool", "text"), [("artifact_search", "passage"), ("hybrid_search", "text")]
)
async def test_ten_hits_are_a_small_answer(corpus: ToolClient, tool: str, text: str) -> None:
    hits = (await corpus(tool, query="passkey sign-in"))["results"]

    assert sum(len(hit[text]) for hit in hits) < 6_000


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
        around = [c for c in chunks if abs(c["chunk_index"] - index) == 1]
        assert [n["chunk_id"] for n in hit["neighbors"]] == [c["chunk_id"] for c in around]
        assert [n["text"] for n in hit["neighbors"]] == [c["content"] for c in around]
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
    ],
)
async def test_filters(
    corpus: ToolClient, tool: str, filters: dict[str, str], expected: set[str]
) -> None:
    ids = await source_ids(corpus, tool, "beta pricing sign-in", limit=50, **filters)

    assert set(ids) == expected


async def test_type_is_another_name_for_artifact_type(corpus: ToolClient) -> None:
    by_type = await corpus("artifact_search", query="beta", type="note")
    by_artifact_type = await corpus("artifact_search", query="beta", artifact_type="note")

    assert by_type == by_artifact_type
    assert {hit["artifact_type"] for hit in by_type["results"]} == {"note"}


# --- memories --------------------------------------------------------------------------------


async def test_memories_are_found_together_with_documents(tools: ToolClient) -> None:
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
async def test_superseded_vectors_are_ignored_also_while_chroma_has_them(
    tools: ToolClient, runtime: Runtime, length: int
) -> None:
    old = await note(tools, "The otters moved into the boathouse. " * 15 * length)
    await note(tools, "The badgers stayed in the garden.")
    await plant(runtime, CollectionName.ARTIFACTS, old["artifact_id"], "otters boathouse")
    for id_ in old["stored_ids"][1:]:
        await plant(runtime, CollectionName.CHUNKS, id_, "otters boathouse")

    assert await found_texts(tools, "otters boathouse") == ["The badgers stayed in the garden."]


async def test_entries_of_revisions_that_postgres_does_not_have_are_ignored(
    tools: ToolClient, runtime: Runtime
) -> None:
    for name in (CollectionName.ARTIFACTS, CollectionName.CHUNKS):
        await plant(runtime, name, "art_orphan", "The otters moved into the boathouse.")

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


@pytest.mark.parametrize("tool", ["hybrid_search", "artifact_search"])
async def test_what_has_no_word_of_the_query_is_offered_as_such(
    tools: ToolClient, tool: str
) -> None:
    await note(tools, "The kittens sleep in the boiler room.", source_id="1")
    await note(tools, "Invoices are paid within thirty days.", source_id="2")

    nothing = await tools(tool, query="zzzqqq")
    something = await tools(tool, query="kittens zzzqqq")

    assert len(nothing["results"]) == 2
    assert nothing["note"] == NO_TEXT_HAS_A_WORD
    # The other note has no word of the query and is far in meaning.
    [hit] = something["results"]
    assert "kittens" in (hit["text"] if tool == "hybrid_search" else hit["passage"])
    assert something["note"] == ""


async def test_artifact_search_gives_as_many_documents_as_it_is_asked_for(
    tools: ToolClient,
) -> None:
    """However many places of the first ones answer."""
    long = "\n\n".join(
        f"The otter of river {n} sleeps. " + "Nothing else. " * 60 for n in range(60)
    )
    for number in range(2):
        await note(tools, f"{long} {number}", source_id=f"long {number}")
    for number in range(3):
        await note(tools, f"Someone saw an otter, on {number} days in all.", source_id=str(number))

    found = await tools("artifact_search", query="otter sleeps", limit=5)

    assert len({hit["artifact_uid"] for hit in found["results"]}) == 5


async def test_a_document_without_a_title_is_found_by_the_words_of_its_path(
    tools: ToolClient,
) -> None:
    text = "Every team names what it needs, and the owner agrees or says why not. Budget: {}."
    for name in ("2024/budget-of-the-harbour.md", "2024/travel_rules.md"):
        await note(tools, text.format(len(name)), source_id=name)

    found = await tools("artifact_search", query="harbour budget")

    first = await tools("artifact_get", artifact_uid=found["results"][0]["artifact_uid"])
    assert first["source_id"] == "2024/budget-of-the-harbour.md"


@pytest.mark.parametrize("search", [passages.hybrid_search, passages.artifact_search])
async def test_ranked_by_ranks_hits_are_the_parts_that_answer_too(
    tools: ToolClient,
    runtime: Runtime,
    search: Callable[..., Awaitable[list[Passage]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ranked_so = runtime.settings.model_copy(update={"ranking": "rrf"})
    monkeypatch.setattr(runtime, "settings", ranked_so)
    answer = "The otters moved into the boathouse."
    text = "Nothing of interest was said. " * 60 + answer + " Nothing at all." * 60
    await note(tools, text)
    options = {} if search is passages.artifact_search else {"include_memory": False}

    [part] = await search(runtime, "otters boathouse", Filters(), limit=10, **options)
    [whole] = await search(
        runtime, "otters boathouse", Filters(), limit=10, full_chunks=True, **options
    )

    assert answer in part.text
    assert len(part.text) <= WINDOW_CHARS
    assert text[part.start_char : part.end_char] == part.text
    assert answer in text[slice(*part.highlight or ())]
    assert whole.text == text


async def test_an_empty_memory_has_no_hits(tools: ToolClient) -> None:
    assert await tools("hybrid_search", query="anything") == {"results": [], "note": ""}
    assert await tools("artifact_search", query="anything") == {"results": [], "note": ""}


@pytest.mark.parametrize(
    ("compared", "named", "first_nearest"),
    [
        pytest.param(300, 10_000, 600, id="few are compared"),
        pytest.param(0, 10_000, 600, id="some are named"),
        pytest.param(-1, 0, 600, id="of many, the nearest"),
        pytest.param(-1, 0, 5, id="and more of these"),
    ],
)
@pytest.mark.parametrize("long", [False, True], ids=["short", "long"])
async def test_filters_leave_what_is_meant_however_much_is_nearer(
    tools: ToolClient,
    monkeypatch: pytest.MonkeyPatch,
    compared: int,
    named: int,
    first_nearest: int,
    long: bool,
) -> None:
    monkeypatch.setattr(VectorStore, "comparable", compared)
    monkeypatch.setattr(passage_meaning, "NAMED", named)
    monkeypatch.setattr(passage_meaning, "FIRST_NEAREST", first_nearest)
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
