"""What an extractor is not sure of is kept as rejected, not shown."""

from memory_core.extraction.model import DocumentContext
from memory_core.extraction.proof import part_by_confidence
from memory_core.extraction.rules import propose
from memory_core.text.chunk import Chunk

TEXT = "- [ ] Send the report\n- [ ] Ann: book the room\n"
PROPOSED = propose(TEXT, DocumentContext("note")).events
CHUNK = Chunk(3, 0, len(TEXT), TEXT, 12)


def test_a_less_sure_event_is_rejected_with_what_it_was() -> None:
    sure, rejected = part_by_confidence(CHUNK, PROPOSED, 0.7)

    assert [event.narrative for event in sure] == ["Ann will book the room."]
    [kept] = rejected
    assert (kept.reason, kept.chunk_index) == ("LOW_CONFIDENCE", 3)
    assert kept.detail == "Commitment, 0.65 of 0.70: 'Send the report'"


def test_a_limit_of_nothing_lets_everything_through() -> None:
    assert part_by_confidence(CHUNK, PROPOSED, 0.0) == (list(PROPOSED), [])
