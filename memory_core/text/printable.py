"""Words of others (a provider's message, a model's refusal) made fit to be stored and shown."""

import unicodedata

# Controls, formats (bidi, zero width), surrogates, private use, unassigned.
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn"}


def printable(text: str, limit: int) -> str:
    """Without U+0000 and lone surrogates, which Postgres refuses, and not longer than that."""
    return text[:limit].encode(errors="replace").decode().replace("\x00", "�")


def visible(text: str) -> str:
    """Without controls, also without those that reorder or hide what a person reads. Lines stay."""
    return "".join(
        character if character == "\n" or not character.isspace() else " "
        for character in text.encode(errors="replace").decode()
        if character.isspace() or unicodedata.category(character) not in _UNSEEN
    )


def single_line(text: str, limit: int) -> str:
    """What is visible of it, on one line."""
    return " ".join(visible(text[: limit * 4]).split())[:limit]
