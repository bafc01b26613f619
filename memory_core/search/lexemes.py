"""Lexemes: words as Postgres' full-text search stores them, and as its queries quote them."""

import re
from collections.abc import Iterable

import Stemmer

_QUOTED = re.compile(r"'((?:''|[^'])*)'")
# Named as Postgres' configuration `english`; it may be of another version.
_STEMMER = Stemmer.Stemmer("english")


def stem(word: str) -> str:
    lexeme: str = _STEMMER.stemWord(word)
    return lexeme


def lexemes_of(queries: Iterable[str]) -> list[str]:
    """The lexemes of tsqueries, each once, in order."""
    lexemes = [item.replace("''", "'") for query in queries for item in _QUOTED.findall(query)]
    return list(dict.fromkeys(lexemes))


def quoted(lexeme: str) -> str:
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"
