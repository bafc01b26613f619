"""BM25: a relevance score from the words that a text and a query share.

A rare word counts more than a common one, the second occurrence less than the first, and a word in
a short text more than in a long one.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

# How fast further occurrences stop counting, and how much the length of a text matters.
K1 = 1.2
B = 0.75
# ts_rank of one lexeme with equal weights is H(n) / ZETA2, where n is the number of occurrences and
# H(n) the sum of 1/k² up to n. Postgres stores at most 255 positions of a lexeme.
_ZETA2 = 1.64493406685
_MOST_PLACES = 255


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics over all searched passages. Lengths are in characters."""

    passages: float
    average_length: float
    # The number of passages with a lexeme; at least one, since the query's words were counted.
    frequencies: Mapping[str, float]

    def weight(self, lexeme: str) -> float:
        """The inverse document frequency."""
        frequency = min(self.frequencies.get(lexeme, 0.0), self.passages)
        return math.log(1 + (self.passages - frequency + 0.5) / (frequency + 0.5))


def score(
    counts: Mapping[str, int], length: float, average_length: float, weights: Mapping[str, float]
) -> float:
    """`counts`: occurrences of each lexeme in the text; `weights`: of the query's lexemes."""
    damping = K1 * (1 - B + B * length / max(average_length, 1.0))
    total = 0.0
    for lexeme, count in counts.items():
        weight = weights.get(lexeme)
        if weight is not None and count:
            total += weight * count * (K1 + 1) / (count + damping)
    return total


@cache
def occurrence_thresholds() -> str:
    """An array for `width_bucket`, in Postgres syntax, that maps the `ts_rank` of a single lexeme
    to its number of occurrences."""
    sums = [0.0]
    for number in range(1, _MOST_PLACES + 1):
        sums.append(sums[-1] + 1 / number**2)
    ranks = [total / _ZETA2 for total in sums]
    return "{" + ",".join(str((lower + upper) / 2) for lower, upper in pairwise(ranks)) + "}"
