"""Units: where a passage may begin and end. They follow turns, lines and sentences.

A unit is the smallest part of a text that is worth showing alone: a message, or a few sentences.
"""

import re
from collections.abc import Collection

# The approximate maximum length of a unit.
UNIT_CHARS = 300
# A shorter turn is no unit of its own: "Mm-hmm" says nothing alone.
LEAST_TURN_CHARS = 60
# One set of characters first: this is five times as fast as three alternatives.
_BOUNDARY = re.compile(
    r"[\n.!?…。！？](?:(?<=\n)\n*|(?<=[.!?…])[\"'”’)\]]*(?:\n+|\s+)|(?<=[。！？]))"
)

Span = tuple[int, int]


def units(text: str, turns: Collection[int] = ()) -> list[Span]:
    """Consecutive spans that cover the whole text. `turns`: where turns begin; a unit ends there,
    unless it would be too short."""
    spans: list[Span] = []
    turns = frozenset(turns)
    start = previous = 0
    for end in _edges(text, turns):
        if end - start > UNIT_CHARS and previous > start:
            spans.append((start, previous))
            start = previous
        while end - start > 2 * UNIT_CHARS:
            middle = _last_space(text, start, start + UNIT_CHARS)
            spans.append((start, middle))
            start = middle
        previous = end
        if end in turns and end - start >= LEAST_TURN_CHARS:
            spans.append((start, end))
            start = end
    if start < len(text):
        spans.append((start, len(text)))
    return spans


def _edges(text: str, turns: Collection[int]) -> list[int]:
    edges = {match.end() for match in _BOUNDARY.finditer(text)}
    edges.update(start for start in turns if start > 0)
    edges.add(len(text))
    return sorted(edges)


def _last_space(text: str, start: int, end: int) -> int:
    """Just after the last space of a part without any boundary, or else its end."""
    place = max(text.rfind(" ", start + 1, end), text.rfind("\t", start + 1, end))
    return place + 1 if place > start else end
