"""When steps of a backfill are taken."""

import pytest

from memory_assets.backfill import crons

DAY = 24 * 60


def starts(minutes: int) -> list[int]:
    """Minutes of the day."""
    moments = []
    for cron in crons(minutes):
        minute, hour, *others = cron.split()
        assert others == ["*"] * 3
        moments += [60 * h + m for h in values(hour, 24) for m in values(minute, 60)]
    return sorted(moments)


def values(field: str, limit: int) -> list[int]:
    if field.startswith("*"):
        return list(range(0, limit, int(field[2:] or 1)))
    return [int(value) for value in field.split(",")]


@pytest.mark.parametrize("minutes", range(1, 61))
def test_steps_are_that_many_minutes_apart(minutes: int) -> None:
    assert starts(minutes) == list(range(0, DAY, minutes))


def test_what_goes_into_an_hour_is_one_line() -> None:
    assert [crons(minutes) for minutes in (1, 20, 60)] == [
        ["*/1 * * * *"],
        ["*/20 * * * *"],
        ["0 * * * *"],
    ]
