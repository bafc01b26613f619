"""Chunks tile the text, keep their bounds, end where the author paused, and survive edits."""

import difflib
import random
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core.text.chunk import Chunk
from memory_core.text.chunking import ChunkingLimits, split
from memory_core.text.tokens import count_tokens

DEFAULTS = ChunkingLimits()
# Small enough that a short drawn text has many chunks.
SMALL = ChunkingLimits(single_piece_max_tokens=60, target_tokens=45, overlap_tokens=6)

SAMPLE_CORPUS = Path(__file__).resolve().parents[3] / "shared" / "sample" / "corpus"

LONGEST_TOKEN_CHARS = 128
REQUIRED_SHARE_KEPT = 0.8

FRAGMENTS = (
    "word ",
    "A sentence ends. ",
    "\r\n",
    "\n\n",
    "\r",
    "## Title\n",
    "Alice: yes\n",
    "\x00",
    "<|endoftext|>",
    "é\u0301\u0302",
    "👨‍👩‍👧‍👦",
    "👍🏽",
    "🇩🇪🇫🇷",
    "שלום עולם. ",
    "مرحبا؟ ",
    "漢字かな。",
    "\u3000",
    "\u2028",
    "aaaaaaaaaaaaaaaa",
    "1234567890",
    "            ",
    "........",
    "\U0010fffd",
)


def long_texts() -> st.SearchStrategy[str]:
    """Long documents, cheaply: a few drawn fragments, strewn by a drawn seed."""
    fragment = st.sampled_from(FRAGMENTS) | st.text(min_size=1, max_size=12)

    def strew(fragments: list[str], length: int, seed: int) -> str:
        return "".join(random.Random(seed).choices(fragments, k=length))

    return st.builds(
        strew, st.lists(fragment, min_size=1, max_size=6), st.integers(1, 400), st.integers(0, 999)
    )


def assert_tiles(text: str, chunks: list[Chunk]) -> None:
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    assert chunks[0].start_char == 0
    assert chunks[-1].end_char == len(text)
    for chunk in chunks:
        assert text[chunk.start_char : chunk.end_char] == chunk.text
        assert chunk.token_count == count_tokens(chunk.text)
    for previous, chunk in pairwise(chunks):
        assert previous.start_char < chunk.start_char <= previous.end_char < chunk.end_char


def overlaps(text: str, chunks: list[Chunk]) -> list[int]:
    return [count_tokens(text[b.start_char : a.end_char]) for a, b in pairwise(chunks)]


def assert_within_upper_bounds(text: str, chunks: list[Chunk], limits: ChunkingLimits) -> None:
    if len(chunks) > 1:
        assert max(chunk.token_count for chunk in chunks) <= limits.target_tokens * 4 // 3
        assert max(overlaps(text, chunks)) <= limits.overlap_tokens * 3 // 2


# --- any text ---------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(long_texts())
def test_chunks_of_any_text_tile_it_within_bounds(text: str) -> None:
    chunks = split(text, SMALL)

    assert_tiles(text, chunks)
    assert_within_upper_bounds(text, chunks, SMALL)
    assert chunks == split(text, SMALL)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=400))
def test_chunks_of_arbitrary_unicode_tile_it_within_bounds(text: str) -> None:
    chunks = split(text, SMALL)

    assert_tiles(text, chunks)
    assert_within_upper_bounds(text, chunks, SMALL)


@settings(max_examples=100, deadline=None)
@given(long_texts(), st.integers(36, 200), st.integers(0, 50), st.integers(0, 300))
def test_any_valid_limits_hold(text: str, target: int, overlap: int, single: int) -> None:
    limits = ChunkingLimits(single, target, min(overlap, target // 4))

    chunks = split(text, limits)

    assert_tiles(text, chunks)
    assert_within_upper_bounds(text, chunks, limits)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a" * 200_000, id="one letter"),
        pytest.param("\n" * 200_000, id="line breaks"),
        pytest.param(" " * 200_000 + "x", id="spaces"),
        pytest.param("." * 100_000, id="full stops"),
        pytest.param("\x00" * 20_000, id="NUL"),
        pytest.param("漢字" * 10_000, id="ideographs"),
        pytest.param("👨‍👩‍👧‍👦" * 3_000, id="joined emoji"),
        pytest.param("a" + "\u0301" * 20_000, id="endless combining marks"),
        pytest.param("\r\n" * 50_000, id="CRLF"),
        pytest.param("# " * 50_000, id="hashes"),
        pytest.param("Same again. " * 5_000, id="one sentence"),
    ],
)
def test_monotonous_text_is_divided_within_bounds(text: str) -> None:
    chunks = split(text)

    assert len(chunks) > 1
    assert_tiles(text, chunks)
    assert_within_upper_bounds(text, chunks, DEFAULTS)


def test_prose_keeps_the_lower_bounds_too() -> None:
    text = prose(seed=1, paragraphs=300)

    chunks = split(text)

    assert_within_upper_bounds(text, chunks, DEFAULTS)
    assert min(chunk.token_count for chunk in chunks) >= DEFAULTS.target_tokens // 3
    # A seam may join two tokens that were counted apart.
    assert min(overlaps(text, chunks)) >= DEFAULTS.overlap_tokens // 2 - 2


def test_without_overlap_chunks_only_meet() -> None:
    chunks = split(prose(seed=2, paragraphs=100), ChunkingLimits(overlap_tokens=0))

    assert all(a.end_char == b.start_char for a, b in pairwise(chunks))


@pytest.mark.parametrize(
    "values",
    [
        {"target_tokens": 35},
        {"overlap_tokens": -1},
        {"overlap_tokens": 226},
        {"single_piece_max_tokens": -1},
    ],
)
def test_impossible_limits_are_refused(values: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="tokens must"):
        ChunkingLimits(**values)


# --- one piece or several ---------------------------------------------------------------------


def test_up_to_the_limit_a_text_is_one_piece() -> None:
    text = " word" * 1200
    assert count_tokens(text) == 1200

    assert split(text) == [Chunk(0, 0, len(text), text, 1200)]


def test_one_token_more_is_divided() -> None:
    text = " word" * 1201
    assert count_tokens(text) == 1201

    assert len(split(text)) == 2


def test_empty_text_is_one_empty_piece() -> None:
    assert split("") == [Chunk(0, 0, 0, "", 0)]


def test_the_longest_tokens_still_count_as_one_piece() -> None:
    text = " " * (1200 * LONGEST_TOKEN_CHARS)

    assert len(split(text)) == 1


# --- where cuts fall --------------------------------------------------------------------------

WORDS = [
    *("budget", "review", "harbour", "engine", "window", "answer", "winter", "paper"),
    *("silver", "garden", "market", "signal", "bridge", "doctor", "letter", "season"),
    *("travel", "number", "corner", "yellow", "finger", "planet", "copper", "island"),
]


def sentence(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(5, 18))).capitalize() + "."


def paragraph(rng: random.Random) -> str:
    return " ".join(sentence(rng) for _ in range(rng.randint(2, 7)))


def prose(seed: int, paragraphs: int) -> str:
    rng = random.Random(seed)
    return "\n\n".join(paragraph(rng) for _ in range(paragraphs))


def cut_contexts(text: str, chunks: Iterable[Chunk]) -> list[tuple[str, str]]:
    """The text before and after each inner chunk end."""
    ends = [chunk.end_char for chunk in chunks][:-1]
    return [(text[:end], text[end:]) for end in ends]


def assert_cuts_before(text: str, beginnings: tuple[str, ...]) -> None:
    contexts = cut_contexts(text, split(text))
    assert contexts
    for _, after in contexts:
        assert after.startswith(beginnings), after[:40]


def test_cuts_prefer_paragraphs_to_sentences() -> None:
    text = prose(seed=3, paragraphs=150)

    assert all(before.endswith("\n\n") for before, _ in cut_contexts(text, split(text)))


def test_cuts_prefer_headings_to_paragraphs() -> None:
    rng = random.Random(4)
    sections = [f"## Part {n}\n\n{paragraph(rng)}\n\n{paragraph(rng)}" for n in range(100)]

    assert_cuts_before("\n\n".join(sections), ("## Part",))


def test_underlined_headings_are_headings() -> None:
    rng = random.Random(5)
    sections = [f"Part {n}\n=======\n\n{paragraph(rng)}\n\n{paragraph(rng)}" for n in range(100)]

    assert_cuts_before("\n\n".join(sections), ("Part ",))


def test_a_heading_stays_with_the_text_below_it() -> None:
    rng = random.Random(6)
    text = "\n\n".join(f"## Part {n}\n\n{paragraph(rng)}" for n in range(100))

    for before, _ in cut_contexts(text, split(text)):
        assert not before.rstrip().rsplit("\n", 1)[-1].startswith("##")


def test_a_comment_in_a_listing_is_no_heading() -> None:
    rng = random.Random(7)
    listing = "$ run\n# a comment\n$ stop"
    text = "\n\n".join(f"{paragraph(rng)}\n\n{listing}" for _ in range(100))

    assert not any(after.startswith("# ") for _, after in cut_contexts(text, split(text)))


@pytest.mark.parametrize(
    "speaker", ["{}: ", "**{}**: ", "**{}:** ", "[10:32] {}: ", "10:32:07 {} Smith: ", "<{}> "]
)
def test_cuts_fall_between_speaker_turns(speaker: str) -> None:
    rng = random.Random(8)
    turns = [speaker.format(rng.choice(["Alice", "Bob"])) + paragraph(rng) for _ in range(150)]

    assert_cuts_before("\n".join(turns), tuple(speaker.format(name) for name in ("Alice", "Bob")))


def test_cuts_fall_between_sentences_of_one_endless_paragraph() -> None:
    rng = random.Random(9)
    text = " ".join(sentence(rng) for _ in range(500))

    chunks = split(text)

    assert len(chunks) > 3
    assert all(before.endswith(". ") for before, _ in cut_contexts(text, chunks))
    assert all(chunk.text[0].isupper() for chunk in chunks)


def test_cuts_fall_between_ideographic_sentences() -> None:
    rng = random.Random(10)
    text = "".join("".join(rng.choices("漢字仮名交文章例", k=15)) + "。" for _ in range(300))

    chunks = split(text)

    assert len(chunks) > 3
    assert all(chunk.text.endswith("。") for chunk in chunks)


def test_cuts_fall_between_words_where_no_sentence_ends() -> None:
    text = " ".join(random.Random(11).choices(WORDS, k=5000))

    chunks = split(text)

    assert len(chunks) > 3
    assert all(before.endswith(" ") for before, _ in cut_contexts(text, chunks))


@pytest.mark.parametrize(
    ("unit", "count"),
    [("👨‍👩‍👧‍👦", 2000), ("e\u0301\u0323", 3000), ("\r\n", 60_000), ("👍🏽", 3000), ("각", 5000)],
)
def test_no_grapheme_is_torn(unit: str, count: int) -> None:
    chunks = split(unit * count)

    assert len(chunks) > 1
    for chunk in chunks:
        assert chunk.start_char % len(unit) == 0
        assert chunk.end_char % len(unit) == 0


# --- edits ------------------------------------------------------------------------------------


Span = tuple[int, int]


def untouched_and_kept(old: str, new: str, changes: list[Span]) -> tuple[int, int]:
    """How many chunks of `new` no change touches, and how many of those `old` has too."""

    def is_touched(chunk: Chunk) -> bool:
        # A deletion is an empty span: it touches a chunk that has text on both sides of it.
        return any(start < chunk.end_char and chunk.start_char < end for start, end in changes)

    texts = {chunk.text for chunk in split(old)}
    untouched = [chunk for chunk in split(new) if not is_touched(chunk)]
    return len(untouched), sum(chunk.text in texts for chunk in untouched)


def edit(text: str, unit: str, operation: str, rng: random.Random) -> tuple[str, Span]:
    """The text with one word, sentence or paragraph put in, taken out or replaced."""
    separator = {"word": " ", "sentence": ". ", "paragraph": "\n\n"}[unit]
    make = {"word": lambda r: r.choice(WORDS), "sentence": sentence, "paragraph": paragraph}[unit]
    pieces = text.split(separator)
    at = rng.randrange(len(pieces) - 1)
    start = sum(len(piece) + len(separator) for piece in pieces[:at])
    old_end = start if operation == "insert" else start + len(pieces[at]) + len(separator)
    added = "" if operation == "delete" else make(rng).rstrip(".") + separator
    return text[:start] + added + text[old_end:], (start, start + len(added))


@pytest.mark.parametrize("operation", ["insert", "delete", "replace"])
@pytest.mark.parametrize("unit", ["word", "sentence", "paragraph"])
def test_an_edit_leaves_the_other_chunks_as_they_were(unit: str, operation: str) -> None:
    rng = random.Random(f"{unit} {operation}")
    untouched = kept = 0
    for paragraphs in (100, 100, 100, 100, 300, 300):
        text = prose(seed=rng.randrange(10**6), paragraphs=paragraphs)
        edited, change = edit(text, unit, operation, rng)
        counts = untouched_and_kept(text, edited, [change])
        untouched, kept = untouched + counts[0], kept + counts[1]

    assert untouched > 50
    assert kept >= REQUIRED_SHARE_KEPT * untouched


def test_an_edit_in_unbroken_text_leaves_most_chunks_as_they_were() -> None:
    rng = random.Random(12)
    text = "".join(rng.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=60_000))
    edited = text[:20_000] + "inserted" + text[20_000:]

    untouched, kept = untouched_and_kept(text, edited, [(20_000, 20_008)])

    assert untouched > 20
    assert kept >= REQUIRED_SHARE_KEPT * untouched


def changed_lines(old: str, new: str) -> list[Span]:
    old_lines, new_lines = old.splitlines(keepends=True), new.splitlines(keepends=True)
    starts = [0]
    for line in new_lines:
        starts.append(starts[-1] + len(line))
    opcodes = difflib.SequenceMatcher(None, old_lines, new_lines, autojunk=False).get_opcodes()
    return [(starts[b1], starts[b2]) for tag, _, _, b1, b2 in opcodes if tag != "equal"]


def test_real_revisions_share_the_chunks_no_edit_touches() -> None:
    if not SAMPLE_CORPUS.is_dir():
        pytest.skip("sample corpus not present")
    untouched = 0
    for chain in sorted(SAMPLE_CORPUS.glob("*/revisions/*")):
        revisions = [path.read_text("utf-8") for path in sorted(chain.iterdir())]
        counts = [
            untouched_and_kept(old, new, changed_lines(old, new))
            for old, new in pairwise(revisions)
        ]
        chain_untouched = sum(count for count, _ in counts)
        assert sum(kept for _, kept in counts) >= REQUIRED_SHARE_KEPT * chain_untouched, chain.name
        untouched += chain_untouched
    assert untouched > 0
