"""Cleaning foreign text (a provider's message, a model's refusal) before it is stored or shown."""

import unicodedata

# Controls, formats (bidi, zero width), surrogates, private use, unassigned.
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn"}


def printable(text: str, limit: int) -> str:
    """The text without U+0000 and lone surrogates, which Postgres refuses, cut to `limit`."""
    return text[:limit].encode(errors="replace").decode().replace("\x00", "�")


def visible(text: str) -> str:
    """The text without control characters, including those that reorder or hide text. Line breaks
    stay."""
    return "".join(
        character if character == "\n" or not character.isspace() else " "
        for character in text.encode(errors="replace").decode()
        if character.isspace() or unicodedata.category(character) not in _UNSEEN
    )


def single_line(text: str, limit: int) -> str:
    """The visible characters, on one line."""
    return " ".join(visible(text[: limit * 4]).split())[:limit]


def in_markdown(text: str) -> str:
    """Escape text of documents, so that none of it is read as our Markdown."""
    for mark in "\\`*_[]<>|#!":
        text = text.replace(mark, f"\\{mark}")
    return text
