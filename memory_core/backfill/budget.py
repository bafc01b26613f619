"""The daily token budget of a backfill, and which revisions fit into the rest of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Budget:
    per_day: int
    used: int  # tokens billed today for backfills
    reserved: int  # estimated tokens of revisions that are requested and not done

    @property
    def left(self) -> int:
        return max(self.per_day - self.used - self.reserved, 0)


@dataclass(frozen=True, slots=True)
class FittingItems(Generic[T]):
    """The items that fit today, in order, and those that are larger than a whole day's budget."""

    today: list[T]
    too_large: list[T]
    exhausted: bool  # an item that is smaller than a day's budget had to wait


def fit(budget: Budget, priced: Sequence[tuple[T, int]]) -> FittingItems[T]:
    """Items that cost nothing always fit. The order is kept: the first item that must wait until
    tomorrow ends the day, so that small older revisions do not overtake the newest."""
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
    return FittingItems(today, too_large, exhausted)
