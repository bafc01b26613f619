"""Occurrences of one string in another, and which of several to prefer."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

# Checking a refused occurrence takes time as well, and a text of one repeated word has very many.
MAX_REFUSED = 200
# `str.rfind` compares naively: a long needle in a repetitive text would take minutes.
MAX_BACKWARD_NEEDLE = 400
# How many occurrences of a short, common string are checked: more than any document has.
MAX_PLACES = 2000


@dataclass(frozen=True, slots=True)
class Preference:
    """Prefers occurrences inside `low..high`, then those nearest to `pivot`, then the first.

    It only decides between equally good occurrences. Its numbers are positions in the string that
    it was made for.
    """

    low: int
    high: int
    pivot: int | None

    def rank(self, start: int, end: int) -> tuple[bool, int, int]:
        inside = self.low <= start and end <= self.high
        return not inside, 0 if self.pivot is None else abs(start - self.pivot), start


def find_preferred(
    haystack: str,
    needle: str,
    preference: Preference,
    accept: Callable[[int], bool] = lambda _: True,
) -> int:
    """The start of the preferred accepted occurrence, or -1."""
    low, high = max(0, preference.low), min(len(haystack), preference.high)
    place = _find_within(haystack, needle, low, high, preference.pivot, accept)
    if place < 0 and (low, high) != (0, len(haystack)):
        place = _find_within(haystack, needle, 0, len(haystack), preference.pivot, accept)
    return place


def _find_within(
    haystack: str,
    needle: str,
    low: int,
    high: int,
    pivot: int | None,
    accept: Callable[[int], bool],
) -> int:
    if pivot is None or len(needle) > MAX_BACKWARD_NEEDLE:
        return _first(forward(haystack, needle, low, high), accept)
    pivot = min(max(pivot, low), high)
    after = _first(forward(haystack, needle, pivot, high), accept)
    # Up to one character before the pivot, where the search above began.
    before_end = min(high, pivot - 1 + len(needle))
    before = _first(backward(haystack, needle, low, before_end), accept)
    if before < 0 or after < 0:
        return max(before, after)
    return before if pivot - before <= after - pivot else after


def _first(places: Iterator[int], accept: Callable[[int], bool]) -> int:
    for _, place in zip(range(MAX_REFUSED), places, strict=False):
        if accept(place):
            return place
    return -1


def forward(haystack: str, needle: str, low: int, high: int) -> Iterator[int]:
    place = haystack.find(needle, low, high)
    while place >= 0:
        yield place
        place = haystack.find(needle, place + 1, high)


def backward(haystack: str, needle: str, low: int, high: int) -> Iterator[int]:
    place = haystack.rfind(needle, low, high)
    while place >= 0:
        yield place
        place = haystack.rfind(needle, low, place + len(needle) - 1)


def places(haystack: str, needle: str, preference: Preference) -> Iterator[int]:
    """The first occurrences inside the preferred stretch, then the first in the whole text."""
    low, high = max(0, preference.low), min(len(haystack), preference.high)
    inside = forward(haystack, needle, low, high)
    anywhere = forward(haystack, needle, 0, len(haystack))
    for _, place in zip(range(MAX_PLACES), inside, strict=False):
        yield place
    if (low, high) != (0, len(haystack)):
        for _, place in zip(range(MAX_PLACES), anywhere, strict=False):
            yield place
