"""`mcp-memory worker`: hosts the projections of the log until it is stopped."""

import asyncio
import logging
import signal

from mcp_server.cli.configuration import read_settings
from memory_core.kernel.errors import MemoryFault
from memory_core.kernel.logging_setup import log_to_stderr
from memory_core.kernel.timed_wait import is_set_within
from memory_core.runtime import Runtime
from stack.connection import joined_runtime

log = logging.getLogger(__name__)

# How often it checks whether the joined stack still runs.
_LOOK_SECONDS = 2.0


def run() -> None:
    settings = read_settings()
    log_to_stderr(settings.log_level, settings.log_format)
    asyncio.run(_serve(joined_runtime(settings, worker="always")))


async def _serve(runtime: Runtime) -> None:
    stop = asyncio.Event()
    for signal_ in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signal_, stop.set)
    try:
        await runtime.open()
        log.info("the worker follows the log")
        while not stop.is_set():
            await is_set_within(stop, _LOOK_SECONDS)
            try:
                await runtime.open()
            except MemoryFault as fault:
                log.warning("the worker waits for the stack: %s", fault.message)
    finally:
        # The next worker continues from the checkpoints.
        await runtime.close(catch_up=False)
