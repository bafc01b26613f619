"""Waiting for an event, for a while."""

import asyncio


async def is_set_within(event: asyncio.Event, seconds: float) -> bool:
    """True as soon as the event is set; False after `seconds`.

    Not `asyncio.wait_for`: that of Python 3.11 loses a cancellation that comes together with the
    event, and a task that was told to stop goes on.
    """
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return event.is_set()
    return True
