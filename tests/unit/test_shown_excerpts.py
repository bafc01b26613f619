"""What is shown of a chunk: the window, with its surroundings, and nothing twice."""

from memory_core.search.excerpts import excerpts, whole_chunks
from memory_core.search.passage import FoundChunk
from memory_core.search.ranking import FoundWindow
from memory_core.search.windows import WINDOW_CHARS, Window

QUESTION = "User: Where did we put the spare key of the boat house last autumn?\n"
ANSWER = "Assistant: " + "There are many places for a key. " * 30 + "\n"
TEXT = ANSWER + QUESTION + ANSWER


def chunk(text: str = TEXT, start: int = 0, number: int = 0) -> FoundChunk:
    return FoundChunk(
        chunk_id=f"chunk_{number}", artifact_uid="uid_1", revision_id="rev_1", artifact_id="art_1",
        start_char=start, end_char=start + len(text), is_chunked=True, title="Chat",
        artifact_type="chat", source_system="test", source_ts=None, text=text, nul_positions=[],
        is_opening=start == 0, chunk_count=2, source_id="chat",
    )  # fmt: skip


def found(row: FoundChunk, start: int, end: int, score: float = 1.0) -> FoundWindow:
    return FoundWindow(row, Window(start, end, 1.0, 0.0), score, ("full_text",))


def test_a_short_message_is_shown_with_what_is_around_it() -> None:
    place = TEXT.index(QUESTION)

    [passage] = excerpts([found(chunk(), place, place + len(QUESTION))], 10)

    assert passage.highlight == (place, place + len(QUESTION))
    assert QUESTION in passage.text
    assert len(QUESTION) < len(passage.text) <= WINDOW_CHARS
    assert passage.text == TEXT[passage.start_char : passage.end_char]


def test_nothing_is_shown_twice_where_chunks_overlap() -> None:
    overlap = 200
    other = chunk(TEXT[len(ANSWER) - overlap :], start=len(ANSWER) - overlap, number=1)
    ranked = [
        found(chunk(), len(ANSWER) - overlap, len(ANSWER) + len(QUESTION)),
        found(other, 0, overlap + len(QUESTION)),
        found(other, overlap + len(QUESTION) + 100, overlap + len(QUESTION) + 700),
    ]

    passages = excerpts(ranked, 10)

    places = [
        place
        for passage in passages
        for place in range(passage.start_char or 0, passage.end_char or 0)
    ]
    assert len(passages) == 2
    assert len(places) == len(set(places))


def test_a_whole_chunk_leaves_out_what_an_earlier_one_has_shown() -> None:
    other = chunk(TEXT[500:], start=500, number=1)

    first, *rest = whole_chunks([found(chunk(), 0, 100), found(other, 0, 100)])

    assert first.text == TEXT
    assert rest == []
