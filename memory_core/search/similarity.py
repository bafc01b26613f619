"""Texts that share no word with a query: how near in meaning they must be, and the notes of answers
that have less than was asked for."""

from collections.abc import Callable, Sequence
from typing import TypeVar

# Below this cosine a text without a word of the query is left out, unless there is nothing else.
# Measured with the local embedder: when no document answers the question, 99 of 100 of the ten
# nearest such events are below it, and 90 to 99 of 100 chunks. Of 1,354 questions only three had no
# word in common with the document that answers them (docs/performance.md).
LEAST_SIMILARITY = 0.28

NO_TEXT_HAS_A_WORD = "No text has a word of the query: these are the nearest in meaning."
NO_TEXT_HAS_THE_PHRASE = "No text has the phrase of the query: these have words of it."
NO_EVENT_HAS_THE_WORDS = "No event has the words of the query: these are near in meaning."

T = TypeVar("T")


def near_enough(ranked: Sequence[T], is_far: Callable[[T], bool]) -> list[T]:
    """The texts that are not far; all of them if every text is far."""
    return [item for item in ranked if not is_far(item)] or list(ranked)
