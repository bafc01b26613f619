"""Fragments: the parts of a quote with an ellipsis ("We will … by Friday")."""

import re
from enum import Enum

from memory_core.extraction.alignment.occurrence import Preference, places

# A person would not write more fragments, so a quote with more is refused.
MAX_FRAGMENTS = 6
# The omitted text belongs to the same passage: at most about 35 words.
MAX_GAP_CHARS = 200
# "the … of" occurs in every document.
MIN_WORDS = 4
MIN_LONGEST_WORDS = 2

_ELLIPSIS = re.compile(r"[\[(]\s*(?:\.{3,}|…+)\s*[\])]|\.{3,}|…+|\. \. \.")


class FragmentFailure(Enum):
    """Why the fragments cannot be parts of one passage."""

    TOO_FEW_WORDS = "too few words"
    TOO_MANY = "too many fragments"
    MISSING = "a fragment is missing"
    OUT_OF_ORDER = "not in this order"
    TOO_FAR = "too far apart"


def split_fragments(quote: str) -> list[str]:
    return _ELLIPSIS.split(quote)


def find_fragments(
    folded: str, fragments: list[str], preference: Preference
) -> tuple[int, int] | FragmentFailure:
    """The shortest stretch that contains the folded fragments in order and near each other."""
    if len(fragments) > MAX_FRAGMENTS:
        return FragmentFailure.TOO_MANY
    lengths = [fragment.count(" ") + 1 for fragment in fragments]
    if sum(lengths) < MIN_WORDS or max(lengths) < MIN_LONGEST_WORDS:
        return FragmentFailure.TOO_FEW_WORDS
    # The longest fragment is the rarest; the others are searched around it.
    anchor = max(range(len(fragments)), key=lambda i: len(fragments[i]))
    spans = set()
    for place in places(folded, f" {fragments[anchor]} ", preference):
        start = _extend_left(folded, fragments[:anchor], place)
        end = _extend_right(folded, fragments[anchor + 1 :], place + len(fragments[anchor]) + 1)
        if start >= 0 and end >= 0:
            spans.add((start + 1, end))
    if spans:
        return min(spans, key=lambda span: _rank(span, preference))
    return _failure(folded, fragments)


def _rank(span: tuple[int, int], preference: Preference) -> tuple[bool, int, int, int]:
    outside, distance, start = preference.rank(*span)
    return outside, span[1] - span[0], distance, start


def _extend_left(folded: str, fragments: list[str], place: int) -> int:
    """The blank before the first fragment, or -1. `place` is the blank before the anchor."""
    for fragment in reversed(fragments):
        needle = f" {fragment} "
        place = folded.rfind(needle, max(0, place - MAX_GAP_CHARS - len(needle)), place + 1)
        if place < 0:
            break
    return place


def _extend_right(folded: str, fragments: list[str], place: int) -> int:
    """The blank after the last fragment, or -1. `place` is the blank after the anchor."""
    for fragment in fragments:
        needle = f" {fragment} "
        start = folded.find(needle, place, place + MAX_GAP_CHARS + len(needle))
        if start < 0:
            return -1
        place = start + len(needle) - 1
    return place


def _failure(folded: str, fragments: list[str]) -> FragmentFailure:
    if any(f" {fragment} " not in folded for fragment in fragments):
        return FragmentFailure.MISSING
    place = 0
    for fragment in fragments:
        start = folded.find(f" {fragment} ", place)
        if start < 0:
            return FragmentFailure.OUT_OF_ORDER
        place = start + len(fragment) + 1
    return FragmentFailure.TOO_FAR
