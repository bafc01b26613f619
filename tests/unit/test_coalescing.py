"""Many on one trip: an outage fails for all, a fault of one for that one alone."""

import asyncio
from collections.abc import Sequence

import pytest

from memory_core.extraction.batched_calls import BatchedCalls
from memory_core.kernel.errors import ChromaUnavailable


class Trips:
    def __init__(self) -> None:
        self.batches: list[list[int]] = []

    async def __call__(self, items: Sequence[int]) -> list[int]:
        self.batches.append(list(items))
        await asyncio.sleep(0)
        if 13 in items:
            raise ValueError("nobody likes thirteen")
        if 99 in items:
            raise ChromaUnavailable("away")
        return [item * 2 for item in items]


async def travel(trips: Trips, *items: int) -> list[int | BaseException]:
    together = BatchedCalls(trips)
    return await asyncio.gather(*(together(item) for item in items), return_exceptions=True)


async def test_who_comes_while_a_trip_is_under_way_goes_with_the_next() -> None:
    trips = Trips()

    assert await travel(trips, 1, 2, 3) == [2, 4, 6]
    assert sum(map(len, trips.batches)) == 3
    assert len(trips.batches) < 3


async def test_one_at_fault_fails_alone() -> None:
    answers = await travel(Trips(), 1, 13, 3, 4)

    assert [answers[0], *answers[2:]] == [2, 6, 8]
    assert isinstance(answers[1], ValueError)


async def test_an_outage_is_not_tried_once_for_each() -> None:
    trips = Trips()
    answers = await travel(trips, 99, 2, 3)

    assert all(isinstance(answer, ChromaUnavailable) for answer in answers)
    assert len(trips.batches) == 1


@pytest.mark.parametrize("count", [250])
async def test_a_crowd_is_answered_one_by_one_in_few_trips(count: int) -> None:
    trips = Trips()

    items = [item + 100 for item in range(count)]
    assert await travel(trips, *items) == [item * 2 for item in items]
    assert len(trips.batches) < 6
