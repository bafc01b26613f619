"""Words of others (a provider's message, a model's refusal) made fit to be stored and shown."""

import unicodedata

# Controls, formats (bidi, zero width), surrogates, private use, unassigned.
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn"}


def printable(text: str, limit: int) -> str:
    """Without U+0000 and lone surrogates, which Postgres refuses, and not longer than that."""
    return text[:limit].encode(errors="replace").decode().replace("\x00", "�")


def single_line(text: str, limit: int) -> str:
    """On one line, without controls: also none that reorder or hide what a person reads."""
    shown = "".join(
        " " if character.isspace() else character
        for character in text[: limit * 4].encode(errors="replace").decode()
        if character.isspace() or unicodedata.category(character) not in _UNSEEN
    )
    return " ".join(shown.split())[:limit]
