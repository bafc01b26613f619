"""Waiting for an event with a time limit."""

import asyncio


async def is_set_within(event: asyncio.Event, seconds: float) -> bool:
    """True as soon as the event is set; False after `seconds`.

    Not `asyncio.wait_for`: in Python 3.11 it loses a cancellation that arrives together with the
    event, so a cancelled task would go on.
    """
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return event.is_set()
    return True
