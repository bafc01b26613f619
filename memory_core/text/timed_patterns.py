"""Patterns with a time limit: a safety net for rules that should take linear time.

Used like `re`. A match that takes longer than the limit raises TimeoutError. The caller skips that
part of the text, and counts it.
"""

from functools import lru_cache, partial

import regex
from regex import DOTALL, IGNORECASE, VERBOSE, Match, escape

__all__ = ["DOTALL", "IGNORECASE", "VERBOSE", "Match", "Pattern", "compile", "escape"]

# Seconds per match. Matching a line takes microseconds.
LIMIT = 1.0


class Pattern:
    """A compiled pattern with those methods of `re.Pattern` that rules use. They are bound once,
    because rules match thousands of times per page."""

    __slots__ = ("findall", "finditer", "fullmatch", "match", "search", "split", "sub")

    def __init__(self, source: str, flags: int) -> None:
        pattern: regex.Pattern[str] = regex.compile(source, flags)
        self.search = partial(pattern.search, timeout=LIMIT)
        self.match = partial(pattern.match, timeout=LIMIT)
        self.fullmatch = partial(pattern.fullmatch, timeout=LIMIT)
        self.finditer = partial(pattern.finditer, timeout=LIMIT)
        self.findall = partial(pattern.findall, timeout=LIMIT)
        self.split = partial(pattern.split, timeout=LIMIT)
        self.sub = partial(pattern.sub, timeout=LIMIT)


@lru_cache(1024)
def compile(source: str, flags: int = 0) -> Pattern:
    return Pattern(source, flags)
