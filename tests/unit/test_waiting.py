"""Waiting for an event, for a while: a cancellation is never lost."""

import asyncio

import pytest

from memory_core.kernel.timed_wait import is_set_within


async def test_says_whether_the_event_came() -> None:
    event = asyncio.Event()
    assert not await is_set_within(event, 0)
    event.set()
    assert await is_set_within(event, 0)


@pytest.mark.parametrize("event_first", [True, False], ids=["event first", "cancellation first"])
async def test_a_cancellation_that_comes_with_the_event_cancels(event_first: bool) -> None:
    event = asyncio.Event()
    task = asyncio.create_task(is_set_within(event, 60))
    await asyncio.sleep(0)
    steps = [event.set, task.cancel]
    for step in steps if event_first else reversed(steps):
        step()

    with pytest.raises(asyncio.CancelledError):
        await task
