"""What fits into a day."""

import pytest

from memory_core.backfill.budget import Budget, fit


@pytest.mark.parametrize(
    ("left", "costs", "today", "too_large", "exhausted"),
    [
        (100, [40, 40], [0, 1], [], False),
        (100, [40, 70, 10], [0], [], True),  # the order is kept, though the last would fit
        (100, [150, 40], [1], [0], False),  # never fits: looked past
        (0, [0, 0], [0, 1], [], False),  # free work needs no budget
        (100, [60, 60, 0], [0], [], True),  # nothing goes past the one that waits
        (100, [], [], [], False),
    ],
)
def test_the_first_that_must_wait_ends_the_day(
    left: int, costs: list[int], today: list[int], too_large: list[int], exhausted: bool
) -> None:
    fitting = fit(Budget(left, 0, 0), list(enumerate(costs)))

    assert (fitting.today, fitting.too_large, fitting.exhausted) == (today, too_large, exhausted)


def test_what_is_reserved_is_as_good_as_used() -> None:
    assert Budget(100, 30, 50).left == 20
    assert Budget(100, 90, 50).left == 0
    assert fit(Budget(100, 30, 50), [("a", 20), ("b", 1)]).today == ["a"]


def test_without_a_budget_nothing_that_costs_ever_fits() -> None:
    fitting = fit(Budget(0, 0, 0), [("a", 1), ("b", 0)])

    assert (fitting.today, fitting.too_large, fitting.exhausted) == (["b"], ["a"], False)
