"""U+0000, which Postgres cannot store in text.

Each one is stored as U+2400 (the picture of it), and its position is stored separately. So the text
comes back exactly and no offset moves. Searches and extractors see the stored form.
"""

from collections.abc import Sequence

_NUL, _STAND_IN = "\x00", "\u2400"


def to_storable(text: str) -> tuple[str, list[int]]:
    if _NUL not in text:
        return text, []
    positions = [index for index, character in enumerate(text) if character == _NUL]
    return text.replace(_NUL, _STAND_IN), positions


def from_storable(text: str, positions: Sequence[int]) -> str:
    if not positions:
        return text
    characters = list(text)
    for position in positions:
        characters[position] = _NUL
    return "".join(characters)
