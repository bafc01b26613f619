"""What people type into a text search: sentences, operators, commands, anything."""

import pytest

from memory_core.search.similarity import NO_TEXT_HAS_THE_PHRASE
from tests.integration.searched_text import found_texts, note
from tests.tool_client import ToolClient


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


async def test_all_words_come_before_some_however_old(tools: ToolClient) -> None:
    for number in range(8):
        text = "Otters sleep by the river." if number % 2 else "Otters and badgers sleep."
        await note(tools, f"{text} {number}", source_id=f"{number}", ts=f"2026-01-0{number + 1}")
    old = "Otters and badgers sleep by the river."
    await note(tools, old, source_id="old", ts="2020-01-01")

    for query in ("otters badgers river", "do otters and badgers sleep by the river?"):
        hits = (await tools("hybrid_search", query=query, limit=50))["results"]
        by_words = [hit["text"] for hit in hits if "full_text" in hit["sources"]]
        assert by_words[0] == old


@pytest.mark.parametrize("unknown", ["zorgle", "zorgle frobnicated quuxly"])
async def test_words_that_are_nowhere_hide_nothing(tools: ToolClient, unknown: str) -> None:
    await note(tools, "The otters moved into the boathouse.")

    [hit] = (await tools("hybrid_search", query=f"{unknown} otters"))["results"]

    assert "full_text" in hit["sources"]


@pytest.mark.parametrize(
    "query",
    [
        "who decided to move the otters or the badgers",
        '"boathouse otters" moved',
        'what did "the otters" do in "the garden house"',
        "otters -m boathouse",
        "otters --verbose",
        "pip install -e otters",
    ],
)
async def test_what_is_no_operator_hides_nothing(tools: ToolClient, query: str) -> None:
    """Sentences have "or" in them, commands options; and few quote exactly."""
    await note(tools, "The otters moved into the boathouse.")

    [hit] = (await tools("hybrid_search", query=query))["results"]

    assert "full_text" in hit["sources"]


@pytest.mark.parametrize("tool", ["hybrid_search", "artifact_search"])
async def test_a_phrase_that_no_text_has_is_said_to_be_missing(
    tools: ToolClient, tool: str
) -> None:
    await note(tools, "The otters moved into the boathouse.")

    missing = await tools(tool, query='"boathouse otters"')
    there = await tools(tool, query='"otters moved"')

    assert len(missing["results"]) == len(there["results"]) == 1
    assert (missing["note"], there["note"]) == (NO_TEXT_HAS_THE_PHRASE, "")


@pytest.mark.parametrize(
    ("query", "text"),
    [
        # Stemmers of different versions make different stems of these.
        ("emergency", "In emergencies use the back door."),
        ("evening", "Evenings are quiet."),
        ("adding", "A column was added."),
        ("universities", "She went to the university."),
        ("organisation or organization", "Organized by nobody."),
        ("internal", "It stays internal."),
        # Parts of addresses.
        ("github.com", "See https://github.com/otters/river/pull/17#comment-3 for it."),
        ("10.1.0.0", "The network is 10.1.0.0/16."),
        ("function2.__name__", "It prints function2.__name__ here."),
    ],
)
async def test_what_postgres_finds_is_seen_in_the_text(
    tools: ToolClient, query: str, text: str
) -> None:
    filler = "Figures of the third quarter were quoted. " * 40
    await note(tools, f"{filler}\n{text}\n{filler}")
    await note(tools, "The otters moved into the boathouse.", source_id="other")

    answer = await tools("hybrid_search", query=query)

    assert text in answer["results"][0]["text"]
    assert "full_text" in answer["results"][0]["sources"]
    assert answer["note"] == ""


async def test_a_memory_is_found_by_words_that_no_document_has(tools: ToolClient) -> None:
    await note(tools, "Quarterly figures of the harbour.")
    for number in range(50):
        content = f"The gardener likes plant {number} and its colour in spring"
        await tools("memory_store", content=content, type="fact", confidence=1)
    await tools(
        "memory_store", content="Passport XK4471 expires in 2031", type="fact", confidence=1
    )

    [first, *_] = (await tools("hybrid_search", query="when does passport XK4471 expire"))[
        "results"
    ]

    assert "XK4471" in first["text"]
    assert "memory_full_text" in first["sources"]


async def test_a_document_that_is_called_so_is_found_by_it_however_old(tools: ToolClient) -> None:
    await note(
        tools,
        "We go to Rotterdam.",
        source_id="old",
        title="Office move",
        ts="2020-01-01",
    )
    for number in range(8):
        text = f"Log {number}: the team will move item {number} to the office."
        await note(tools, text, source_id=f"{number}", ts=f"2026-01-0{number + 1}")

    hits = (await tools("hybrid_search", query="office move"))["results"]

    [called_so] = [hit for hit in hits if hit["title"] == "Office move"]
    assert "full_text" in called_so["sources"]


async def test_what_only_excludes_finds_the_newest_without(tools: ToolClient) -> None:
    """Also where all that is near has the word."""
    for number in range(12):
        await note(tools, f"beta entry {number}", source_id=f"beta {number}")
    await note(tools, "Something else", source_id="else", ts="2020-01-01")

    hits = (await tools("hybrid_search", query="-beta", limit=1))["results"]

    assert [hit["text"] for hit in hits] == ["Something else"]


async def test_what_only_excludes_leaves_nothing_else_out(tools: ToolClient) -> None:
    """What is far in meaning has no less of the query than what is near."""
    texts = {"The boat house is a house for boats.", "Figures of the third quarter."}
    for text in texts:
        await note(tools, text, source_id=text)
    await note(tools, "The boathouse by the lake.", source_id="boathouse")

    answer = await tools("hybrid_search", query="-boathouse")

    assert {hit["text"] for hit in answer["results"]} == texts
    assert all("full_text" in hit["sources"] for hit in answer["results"])
    assert answer["note"] == ""


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
