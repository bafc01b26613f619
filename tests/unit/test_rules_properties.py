"""What holds for every text, and for the hostile ones."""

from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core.extraction.ledger import Ledger
from memory_core.extraction.model import MAX_QUOTE_WORDS, DocumentContext, Extractor, Proposal
from memory_core.extraction.rules import VERSION, RulesExtractor, propose
from memory_core.extraction.rules.narrative import MAX_NARRATIVE
from memory_core.text.chunk import Chunk

TYPES = ("email", "doc", "chat", "transcript", "note")

# Pieces that reach deep into the rules, so that random texts are not all prose.
PIECES = st.sampled_from(
    [
        "We decided to use Postgres. ", "Ann Lee will send it by Friday. ", "## Decisions\n",
        "\n- ", "- [ ] ", "\n\n", "\r\n", "Action: ", "@bob ", "**", "`", "```\n", "> ", "| ",
        "|---|---|\n", "Owner: Ann Lee", "[10:32] Ann: ", "From: A <a@b.c>\nTo: d\n\n", "\x00",
        "I'll fix it tomorrow; ", "On Mon Bob wrote:\n", "\u202e", "👩🏽‍🔧 ", "Attendees: ",
        "(", "](",
        "Users reported that it is slow ", "12 March ", "\u2028", "e\u0301 ", '"', "“",
        "Status: Accepted",
    ]
)  # fmt: skip
TEXTS = st.one_of(st.text(max_size=300), st.lists(PIECES, max_size=25).map("".join))
CONTEXTS = st.builds(
    DocumentContext,
    artifact_type=st.sampled_from(TYPES),
    title=st.none() | st.text(max_size=40),
    author=st.none() | st.text(max_size=40),
    participants=st.lists(st.text(max_size=30), max_size=3).map(tuple),
    date=st.none() | st.datetimes(),
)


def check(text: str, proposal: Proposal) -> None:
    for event in proposal.events:
        start, end = event.quote.start_char, event.quote.end_char
        assert text[start:end] == event.quote.quote
        assert event.quote.quote == event.quote.quote.strip()
        assert 1 <= len(event.quote.quote.split()) <= MAX_QUOTE_WORDS
        assert 0.5 <= event.confidence <= 1
        assert 0 < len(event.narrative) <= MAX_NARRATIVE
        assert event.subject.ref.strip()
        assert all(actor.ref.strip() for actor in event.actors)
        assert event.event_time is None or event.event_time.utcoffset() is not None
        assert event.due is None or event.due.time.utcoffset() is not None
    categories_at = [(e.category, e.quote.start_char, e.subject.ref) for e in proposal.events]
    assert len(categories_at) == len(set(categories_at))
    assert all(entity.name.strip() for entity in proposal.entities)


@settings(max_examples=250, deadline=None)
@given(text=TEXTS, context=CONTEXTS)
def test_every_proposal_is_proved_and_repeatable(text: str, context: DocumentContext) -> None:
    proposal = propose(text, context)
    check(text, proposal)
    assert propose(text, context) == proposal


HOSTILE = [
    pytest.param("a" * 200_000, id="one long word"),
    pytest.param("Aa, " * 5_000, id="names without end"),
    pytest.param("A'" * 10_000, id="apostrophes"),
    pytest.param("[" * 20_000, id="brackets"),
    pytest.param("](" * 10_000, id="broken links"),
    pytest.param('"a ' * 7_000, id="open quotes"),
    pytest.param("*" * 20_000, id="stars"),
    pytest.param("ignore the " * 2_000, id="half an injection"),
    pytest.param("changed from a " * 1_500, id="from without to"),
    pytest.param("the end of " * 2_000, id="half a date"),
    pytest.param("> " * 10_000, id="quote marks"),
    pytest.param("<!--" * 5_000, id="open comments"),
    pytest.param("| a " * 5_000, id="one wide row"),
    pytest.param("\n- x" * 3_000, id="many items"),
    pytest.param("\x00" * 20_000, id="NUL"),
    pytest.param("\u202eאב גד " * 3_000, id="right to left"),
    pytest.param("👩🏽‍🔧" * 4_000, id="emoji"),
    pytest.param("We will send it " * 1_500, id="no full stop"),
]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("kind", ["note", "chat"])
def test_hostile_text_is_survived(text: str, kind: str) -> None:
    check(text, propose(text, DocumentContext(kind)))


UNICODE = [
    pytest.param("🙂 We decided to use Postgres.", id="emoji before"),
    pytest.param("日本語。We decided to use Postgres.", id="cjk before"),
    pytest.param("נועה We decided to use Postgres.", id="hebrew before"),
    pytest.param("First.\r\nWe decided to use Postgres.\r\n", id="crlf"),
    pytest.param("We decided to\r\nuse Postgres.", id="wrapped"),
    pytest.param("**We** decided to [use](http://x.y) Postgres.", id="marks inside"),
    pytest.param("We’ve decided to use Postgres.", id="curly apostrophe"),
    pytest.param("We\u00a0decided to use Postgres.", id="no-break space"),
]


@pytest.mark.parametrize("text", UNICODE)
def test_offsets_are_code_points(text: str) -> None:
    (event,) = propose(text, DocumentContext("note")).events
    assert text[event.quote.start_char : event.quote.end_char] == event.quote.quote
    assert "decided" in event.quote.quote


def test_long_sentence_is_quoted_around_its_cue() -> None:
    text = f"{'So ' * 30}, after all that, we decided to use Postgres{' and more' * 30}."
    (event,) = propose(text, DocumentContext("note")).events
    assert len(event.quote.quote.split()) <= MAX_QUOTE_WORDS
    assert "we decided to use Postgres" in event.quote.quote


def test_narrative_has_no_marks() -> None:
    (event,) = propose("We **decided** to use [`pg`](http://x.y).", DocumentContext("note")).events
    assert event.narrative == "The team decided to use pg."


async def test_extractor_gives_the_proposal_of_the_chunk() -> None:
    text = "We decided to use Postgres."
    extractor: Extractor = RulesExtractor()
    ledger = Ledger(uuid4(), 1)
    proposal = await extractor.extract(
        Chunk(0, 0, len(text), text, 6), DocumentContext("note"), ledger=ledger
    )
    assert proposal == propose(text, DocumentContext("note"))
    assert ledger.calls == []


def test_version_names_the_extractor() -> None:
    assert RulesExtractor.version == VERSION == "6-rules"
