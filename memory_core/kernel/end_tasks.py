"""Ending tasks."""

import asyncio
from typing import Any

_AGAIN_SECONDS = 1.0


async def end_tasks(*tasks: asyncio.Task[Any]) -> list[Any]:
    """Cancel tasks until each has ended; what they returned or raised, in order.

    One cancellation may be lost: psycopg's pool waits with `asyncio.wait_for`, which in Python 3.11
    forgets a cancellation that arrives together with what it waited for. So it is repeated.
    """
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=_AGAIN_SECONDS)
    return await asyncio.gather(*tasks, return_exceptions=True)
