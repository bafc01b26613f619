"""Names and their short forms: which aliases can be derived from a name, and which ones a text must
state."""

import re

from memory_core.extraction.alignment.words import find_words, fold_words

# What may separate two names that a text equates: "Alice Chen (AC)", "Alice Chen, aka Al". A slash
# or a bar does not equate: it also separates two people.
_EQUATING = re.compile(
    r"\s*[(<\[=]\s*[\"'“‘@<]*|"
    r"[\s,(\"'“”‘’]*(?:is\s+)?(?:also\s+|formerly\s+|better\s+)?"
    r"(?:aka|a\.k\.a\.?|alias|née|known\s+as|goes\s+by|nicknamed)[\s:,\"'“‘@]*|"
    r"[\s,(]*(?:(?:is|was)\s+(?:also\s+)?|also\s+)called[\s:,\"'“‘@]*",
    re.IGNORECASE,
)
_LONGEST_BETWEEN = 40
TITLES = frozenset(
    ("dr", "mr", "mrs", "ms", "miss", "mx", "prof", "professor", "sir", "dame", "herr", "frau")
)
# At most this many occurrences of a name are checked: a hostile passage may repeat it.
_PLACES = 50


def words_of(name: str) -> list[str]:
    """The folded words of a name."""
    words = find_words(name, 0, len(name))
    return fold_words(words).split(" ") if words else []


def is_short_form(alias: str, name: str) -> bool:
    """Whether the alias follows from the name alone: a part of it, its initials, or its mail
    address."""
    parts = words_of(name)
    if "@" in alias.strip("@"):
        local = "".join(words_of(alias.partition("@")[0]))
        return bool(parts) and (local in _initials(parts) or parts[-1] in local)
    short = [word for word in words_of(alias) if word not in TITLES]
    if not short or not parts:
        return False
    if len(short) == 1 and short[0] in _initials(parts):
        return True
    return all(any(word == part or _is_initial(word, part) for part in parts) for word in short)


def _is_initial(word: str, part: str) -> bool:
    return len(word) == 1 and part.startswith(word)


def _initials(parts: list[str]) -> set[str]:
    """The initials: amc and ac for Alice Maria Chen."""
    return {"".join(part[0] for part in parts), parts[0][0] + parts[-1][0]}


def is_full_name(alias: str, name: str) -> bool:
    """Whether the alias could be the full name of another person."""
    return len(words_of(alias)) > 1 and "@" not in alias and not is_short_form(alias, name)


def equates(text: str, name: str, alias: str) -> bool:
    """Whether the text equates the two names, one directly after the other."""
    return _follows(text, name, alias) or _follows(text, alias, name)


def _follows(text: str, first: str, second: str) -> bool:
    at = -1
    for _ in range(_PLACES):
        at = text.find(first, at + 1)
        if at < 0:
            return False
        end = at + len(first)
        between = _EQUATING.match(text, end, end + _LONGEST_BETWEEN)
        if between and text.startswith(second, between.end()):
            return True
    return False
