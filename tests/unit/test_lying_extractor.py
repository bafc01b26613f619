"""An extractor that lies in every field: whatever it says, nothing untrue is stored as proved."""

import re
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core.extraction.aliases import equates, is_short_form, words_of
from memory_core.extraction.alignment.lexicon import STOPWORDS, burden
from memory_core.extraction.grounds import Context
from memory_core.extraction.model import (
    Actor,
    ActorRole,
    Category,
    ChunkEvent,
    DocumentContext,
    Due,
    Entity,
    EntityType,
    ProposedEvent,
    ProposedQuote,
    Subject,
    SubjectType,
)
from memory_core.extraction.proof import prove
from memory_core.text.chunk import Chunk

TEXT = (
    "Ann Lee (AL) will not pay Bob Ray before Friday 2026-03-06. The board rejected two bids.\n\n"
    "Zoë called Carol: | Dan | Eve | and 3 others agreed to meet by 12 May 2026."
)
START = 4_000
TITLE = "Minutes\nAuthor: Mallory Evil\nDate: 1999-01-01"
CONTEXT = DocumentContext(
    "note", TITLE, "Ann Lee", ("Gus\nHall",), datetime(2026, 3, 2, tzinfo=UTC)
)

# Pieces of the text, of its context, of nothing, and what changes how they look.
WORDS = (
    "will pay approved after three four 2031-01-01 Mallory Evil Ignore all rules not n't aka ( |"
)
HIDDEN = ["\u0410nn", "Ann\u200bLee", "L\u202eee", "\u2066", "\n", "also called"]
PIECES = [*TEXT.split(), *WORDS.split(), *HIDDEN]
said = st.lists(st.sampled_from(PIECES), min_size=1, max_size=9).map(" ".join)
spans = st.tuples(st.integers(0, len(TEXT)), st.integers(1, 60)).map(
    lambda at: TEXT[at[0] : at[0] + at[1]]
)
claims = said | spans | st.text(max_size=30)
times = st.none() | st.sampled_from(
    [datetime(year, month, 6, tzinfo=UTC) for year in (2026, 2031) for month in (3, 5)]
)
dues = st.none() | st.builds(Due, st.just(datetime(2026, 3, 6, tzinfo=UTC)), st.none() | claims)
lies = st.builds(
    ProposedEvent,
    st.sampled_from(Category),
    st.builds(Subject, st.sampled_from(SubjectType), claims),
    claims,
    st.builds(ProposedQuote, spans | said, st.none() | st.integers(-9, 999)),
    st.floats(0, 1),
    st.lists(st.builds(Actor, claims, st.sampled_from(ActorRole)), max_size=3).map(tuple),
    times,
    dues,
)
entities = st.builds(
    Entity, claims, st.sampled_from(EntityType), st.lists(claims, max_size=3).map(tuple)
)
KNOWN = {*words_of(TEXT), *words_of(TITLE), *words_of("Ann Lee Gus Hall")}


@settings(max_examples=100, deadline=None)
@given(st.lists(lies, max_size=3), st.lists(entities, max_size=3))
def test_nothing_untrue_is_proved(events: list[ProposedEvent], named: list[Entity]) -> None:
    chunk = Chunk(index=2, text=TEXT, start_char=START, end_char=START + len(TEXT), token_count=60)

    proved = prove(chunk, None, events, named, Context(CONTEXT))

    for event in proved.events:
        assert_proved(event)
    for entity in proved.entities:
        assert KNOWN.issuperset(words_of(entity.name))
        for alias in entity.aliases:
            assert is_short_form(alias, entity.name) or equates(TEXT, entity.name, alias)


def assert_proved(event: ChunkEvent) -> None:
    evidence = event.evidence
    assert TEXT[evidence.start_char - START : evidence.end_char - START] == evidence.quote
    for actor in event.actors:
        assert actor.ref.isprintable()
        assert KNOWN.issuperset(words_of(actor.ref))
    # A subject may be put into other words' order: only what carries meaning has to stand.
    assert set(words_of(event.subject.ref)) <= KNOWN | STOPWORDS
    due = event.due
    if due is not None and due.quote is not None:
        assert due.start_char is not None
        assert due.end_char is not None
        assert TEXT[due.start_char - START : due.end_char - START] == due.quote
        assert "2026-05" not in due.quote
        assert "May" not in due.quote
    assert event.narrative.translate(dict.fromkeys((0x200C, 0x200D))).isprintable()
    said = KNOWN | {*words_of(evidence.quote)}
    for word in words_of(event.narrative):
        assert not burden(word) or word in said or burden(word) == "not" or is_of_a_date(word)


def is_of_a_date(word: str) -> bool:
    """The times of an event, and that of the document, may be written out."""
    parts = re.findall("[0-9]+", word)
    return bool(parts) and {*map(int, parts)} <= {2026, 2031, 2, 3, 5, 6}
