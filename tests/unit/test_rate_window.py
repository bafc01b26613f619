"""A sliding window of calls: in no 60 seconds more than the limit, and not much less."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.access.calls_at_once import CallsAtOnce
from memory_core.access.credential import RateLimited
from memory_core.access.rate_limits import SLOT_SECONDS, WINDOW_SECONDS, CallWindow
from memory_core.kernel.principal import Principal

ALICE, BOB = Principal(user="alice"), Principal(user="bob")


def let_in(moments: list[float], limit: int) -> list[float]:
    window = CallWindow()
    passed = []
    for moment in moments:
        if window.calls(moment) + 1 <= limit:
            window.count(moment)
            passed.append(moment)
    return passed


@given(
    pauses=st.lists(st.floats(0.01, 20), max_size=200),
    begun=st.floats(0, 100),
    limit=st.integers(1, 20),
)
def test_in_no_minute_more_than_the_limit(pauses: list[float], begun: float, limit: int) -> None:
    passed = let_in([begun + at for at in accumulate(pauses)], limit)
    for moment in passed:
        assert len([one for one in passed if moment - WINDOW_SECONDS < one <= moment]) <= limit


@given(limit=st.integers(1, 50), begun=st.floats(0, 100))
def test_who_stays_below_it_is_never_refused(limit: int, begun: float) -> None:
    # A little more than the limit asks for: sums of floats are not exact.
    pause = (WINDOW_SECONDS + SLOT_SECONDS) / limit + 0.001
    moments = [begun + number * pause for number in range(3 * limit)]
    assert let_in(moments, limit) == moments


@given(calls=st.lists(st.floats(0, 59.9), min_size=1, max_size=30), limit=st.integers(1, 10))
def test_who_waits_as_told_is_let_in_and_not_a_second_earlier(
    calls: list[float], limit: int
) -> None:
    window = CallWindow()
    for moment in sorted(calls):
        window.count(moment)
    if window.calls(59.9) < limit:
        return
    seconds = window.seconds_until(limit, 59.9)
    assert window.calls(59.9 + seconds) < limit
    assert seconds == 1 or window.calls(59.9 + seconds - 1) >= limit


def test_what_is_long_past_is_forgotten() -> None:
    window = CallWindow(own={1: 5, 20: 1}, sent={1: 5}, others={1: 2})
    window.forget(10)
    assert (window.own, window.sent, window.others) == ({20: 1}, {}, {})
    assert window.unsent() == {20: 1}


@pytest.fixture
async def at_once() -> CallsAtOnce:
    return CallsAtOnce(2, wait_seconds=0)


async def test_calls_of_one_beyond_the_limit_are_refused_and_others_go_on(
    at_once: CallsAtOnce,
) -> None:
    async with at_once.call(ALICE), at_once.call(ALICE):
        with pytest.raises(RateLimited) as refused:
            async with at_once.call(ALICE):
                pass
        assert refused.value.retry_after == 1
        async with at_once.call(BOB), at_once.stream(ALICE):
            pass
    async with at_once.call(ALICE), at_once.call(ALICE):
        pass
