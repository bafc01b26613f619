"""Texts that share no word with a query: how near in meaning they must be, and how an answer says
that there are only such."""

from collections.abc import Callable, Sequence
from typing import TypeVar

# Below this cosine a text without a word of the query is left out, unless there is nothing else.
# Measured with the local embedder: of the ten nearest such texts, 99 of 100 events and 95 to 99 of
# 100 chunks are below it when the question is foreign to all documents, and of 1,354 questions
# with a known answer only three had one without any of their words (docs/performance.md).
LEAST_SIMILARITY = 0.28

NO_TEXT_HAS_A_WORD = "No text has a word of the query: these are the nearest in meaning."
NO_EVENT_HAS_THE_WORDS = "No event has the words of the query: these are near in meaning."

T = TypeVar("T")


def near_enough(ranked: Sequence[T], is_far: Callable[[T], bool]) -> list[T]:
    """What is far is left out, unless there is nothing else."""
    return [item for item in ranked if not is_far(item)] or list(ranked)
