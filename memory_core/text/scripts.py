"""Scripts without spaces between words. Their texts are searched by pairs of neighbouring
characters."""

import re
from itertools import pairwise

# Thai, Lao, Burmese, Khmer, Japanese, Chinese, Korean: the same ranges as the SQL function
# `in_pairs`.
_SCRIPTS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_RUN = re.compile(f"[{_SCRIPTS}]{{1,100}}")
_PAIR = re.compile(f"[{_SCRIPTS}]{{1,2}}")
_EVERY_PAIR = re.compile(f"(?=([{_SCRIPTS}]{{2}}))")
_EXCLUDED = re.compile(rf'(?<!\S)-([^\s"]*[{_SCRIPTS}][^\s"]*)')


def in_pairs(text: str) -> str:
    """東京都 becomes 東京 京都."""
    return _RUN.sub(_pairs, text)


def query_in_pairs(query: str) -> str:
    """The same for a typed query. A hyphen excludes one word: -東京都 becomes -"東京 京都"."""
    return in_pairs(_EXCLUDED.sub(r'-"\1"', query))


def blank_pairs(text: str) -> str:
    """The text with blanks in place of these scripts, at the same offsets."""
    return _RUN.sub(lambda run: " " * len(run[0]), text)


def pairs_of(text: str) -> list[tuple[int, str]]:
    """All pairs of a text, with their places."""
    return [(match.start(), match[1]) for match in _EVERY_PAIR.finditer(text)]


def is_pair(lexeme: str) -> bool:
    return _PAIR.fullmatch(lexeme) is not None


def _pairs(run: re.Match[str]) -> str:
    characters = run[0]
    if len(characters) == 1:
        return f" {characters} "
    return f" {' '.join(one + other for one, other in pairwise(characters))} "
