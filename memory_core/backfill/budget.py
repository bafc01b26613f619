"""The tokens a backfill may use in a day, and what fits into what is left of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Budget:
    per_day: int
    used: int  # today, by what backfills were billed
    reserved: int  # by estimate, for what was asked for and is not done

    @property
    def left(self) -> int:
        return max(self.per_day - self.used - self.reserved, 0)


@dataclass(frozen=True, slots=True)
class Fit(Generic[T]):
    """In order: what fits today, and what does not even fit into a whole day."""

    today: list[T]
    too_large: list[T]
    exhausted: bool  # something that would fit into a day had to wait


def fit(budget: Budget, priced: Sequence[tuple[T, int]]) -> Fit[T]:
    """What costs nothing always fits. The order is kept: the first that must wait for tomorrow ends
    the day, so that the newest are not overtaken by whatever happens to be small."""
    left = budget.left
    today: list[T] = []
    too_large: list[T] = []
    exhausted = False
    for item, tokens in priced:
        if tokens > budget.per_day:
            too_large.append(item)
        elif tokens == 0 and not exhausted:
            today.append(item)
        elif tokens <= left and not exhausted:
            left -= tokens
            today.append(item)
        else:
            exhausted = True
    return Fit(today, too_large, exhausted)
