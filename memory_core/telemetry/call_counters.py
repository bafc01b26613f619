"""Counts and durations of the calls that this process answered, by outcome.

Plain numbers, so that a process without /metrics imports no metrics library.
"""

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field

# Seconds; the last bucket has no upper bound.
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


@dataclass(slots=True)
class Durations:
    """A histogram."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds


# By kind, name and outcome. Names are our own tools and routes, so a client cannot add to them.
by_call: Counter[tuple[str, str, str]] = Counter()
by_name: dict[tuple[str, str], Durations] = {}


def observe(kind: str, name: str, outcome: str, seconds: float) -> None:
    by_call[kind, name, outcome] += 1
    by_name.setdefault((kind, name), Durations()).add(seconds)
