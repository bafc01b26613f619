"""Tasks are ended whatever they make of their first cancellation."""

import asyncio
import contextlib

from memory_core.kernel.end_tasks import end_tasks
from tests.patience import PATIENCE


async def test_a_task_that_misses_its_cancellation_is_asked_again() -> None:
    heard = 0

    async def hard_of_hearing() -> None:
        nonlocal heard
        for _ in range(2):
            with contextlib.suppress(asyncio.CancelledError):
                heard += 1
                await asyncio.sleep(600)
        await asyncio.sleep(600)

    task = asyncio.create_task(hard_of_hearing())
    await asyncio.sleep(0)
    await asyncio.wait_for(end_tasks(task), timeout=PATIENCE)
    assert task.cancelled()
    assert heard == 2


async def test_what_each_task_returned_or_raised_is_given_in_order() -> None:
    async def returns() -> str:
        return "done"

    async def raises() -> None:
        raise ZeroDivisionError

    tasks = [asyncio.create_task(returns()), asyncio.create_task(raises())]
    await asyncio.wait(tasks)

    done, failed = await end_tasks(*tasks)

    assert done == "done"
    assert isinstance(failed, ZeroDivisionError)
