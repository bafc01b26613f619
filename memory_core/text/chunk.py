"""A chunk: a span of a revision's text with exact offsets."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Chunk:
    """`text == revision_text[start_char:end_char]`, in code points."""

    index: int
    start_char: int
    end_char: int
    text: str
    token_count: int
